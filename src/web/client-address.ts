/** The longest entry that can be an address. */
const maxAddressCharacters = 45

/**
 * Where a request really comes from: the other end of the connection, or behind so many proxies of the operator's own what
 * the first of them saw. What stands before that in `X-Forwarded-For` the caller may have written.
 */
export function clientAddress(peerAddress: string, headers: Headers, trustedProxies: number): string {
  if (trustedProxies === 0) return peerAddress
  const told = (headers.get('x-forwarded-for') ?? '').split(',').map((entry) => entry.trim())
  const address = told.at(-trustedProxies) ?? ''
  return address === '' || address.length > maxAddressCharacters ? peerAddress : address
}
