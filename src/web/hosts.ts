/** Names under which a machine reaches itself. */
const loopbackNames = ['localhost', '127.0.0.1', '[::1]']

/**
 * Whether the app answers under this `Host`: that of its URL, or in local mode any name of this machine. Another name
 * means that somebody's page has its own name lead here (DNS rebinding), to read what only this machine may.
 */
export function isOwnHost(host: string, appUrl: string, mode: 'local' | 'production'): boolean {
  if (host.toLowerCase() === new URL(appUrl).host) return true
  if (mode === 'production' || !URL.canParse(`http://${host}`)) return false
  const { hostname, username, password, pathname, search, hash } = new URL(`http://${host}`)
  return loopbackNames.includes(hostname) && `${username}${password}${search}${hash}` === '' && pathname === '/'
}

/** The origin that a browser which asked for this host calls ours. */
export function originOf(host: string, appUrl: string): string {
  return `${new URL(appUrl).protocol}//${host.toLowerCase()}`
}

/** Whether the other end of a connection is this machine. */
export function isLoopback(address: string): boolean {
  return address === '::1' || /^(::ffff:)?127\./.test(address)
}
