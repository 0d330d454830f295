/** Loopback host names. */
const loopbackNames = ['localhost', '127.0.0.1', '[::1]']

/**
 * Whether the app accepts this `Host`: that of its URL or, in local mode, any loopback name. Any other name can be a
 * DNS rebinding attack from a foreign page (contract 20.1).
 */
export function isOwnHost(host: string, appUrl: string, mode: 'local' | 'production'): boolean {
  if (host.toLowerCase() === new URL(appUrl).host) return true
  if (mode === 'production' || !URL.canParse(`http://${host}`)) return false
  const { hostname, username, password, pathname, search, hash } = new URL(`http://${host}`)
  return loopbackNames.includes(hostname) && `${username}${password}${search}${hash}` === '' && pathname === '/'
}

/** Our origin from the point of view of a browser that requested this host. */
export function originOf(host: string, appUrl: string): string {
  return `${new URL(appUrl).protocol}//${host.toLowerCase()}`
}

/** Whether a peer address is this machine. */
export function isLoopback(address: string): boolean {
  return address === '::1' || /^(::ffff:)?127\./.test(address)
}
