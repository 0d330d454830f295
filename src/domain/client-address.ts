/** The longest entry that can be an address with a port. */
const maxEntryCharacters = 60
/** Some proxies write the port of the connection, too. */
const withPort = /^(?:\[([^\]]*)\](?::\d+)?|([\d.]+):\d+)$/

/**
 * Where a request really comes from: the other end of the connection, or behind so many proxies of the operator's own what
 * the first of them saw. What stands before that in `X-Forwarded-For` the caller may have written.
 */
export function clientAddress(peerAddress: string, forwardedFor: string | null, trustedProxies: number): string {
  if (trustedProxies === 0) return peerAddress
  const told = (forwardedFor ?? '').split(',').map((entry) => entry.trim())
  const entry = told.at(-trustedProxies) ?? ''
  if (entry === '' || entry.length > maxEntryCharacters) return peerAddress
  const [, bracketed, plain] = withPort.exec(entry) ?? []
  return bracketed ?? plain ?? entry
}
