/** The maximum length of an address with a port. */
const maxEntryCharacters = 60
/** Some proxies append the port of the connection. */
const withPort = /^(?:\[([^\]]*)\](?::\d+)?|([\d.]+):\d+)$/

/**
 * The address of the client: the peer of the connection or, with trusted proxies, the address that the first of them
 * saw. The client can forge earlier entries of `X-Forwarded-For` (contract 3.20).
 */
export function clientAddress(peerAddress: string, forwardedFor: string | null, trustedProxies: number): string {
  if (trustedProxies === 0) return peerAddress
  const told = (forwardedFor ?? '').split(',').map((entry) => entry.trim())
  const entry = told.at(-trustedProxies) ?? ''
  if (entry === '' || entry.length > maxEntryCharacters) return peerAddress
  const [, bracketed, plain] = withPort.exec(entry) ?? []
  return bracketed ?? plain ?? entry
}
