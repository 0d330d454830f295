import { promises as dns } from 'node:dns'
import type { LookupFunction } from 'node:net'
import { isPublicAddress } from './public-address.ts'

/** Together less than the limit of a connection. */
const timeoutMs = 750
const tries = 2

/** No public address has this name. */
class NoPublicAddress extends Error {
  override readonly name = 'NoPublicAddress'
  readonly code = 'ENOTFOUND'
}

/**
 * Looks up public addresses with the machine's name servers directly. The system's own lookup would occupy one of the four threads that all of
 * Node's lookups and file accesses share, for as long as a name server takes that somebody else controls.
 */
export function resolverLookup(servers?: readonly string[]): LookupFunction {
  return (hostname, { all }, callback) => {
    const resolver = new dns.Resolver({ timeout: timeoutMs, tries })
    if (servers !== undefined) resolver.setServers([...servers])
    void publicAddresses(resolver, hostname).then((found) => {
      const [first] = found
      if (first === undefined) callback(new NoPublicAddress(), [])
      else if (all === true) callback(null, found)
      else callback(null, first.address, first.family)
    })
  }
}

/** Never rejects. */
async function publicAddresses(resolver: dns.Resolver, hostname: string) {
  const [v4, v6] = await Promise.allSettled([resolver.resolve4(hostname), resolver.resolve6(hostname)])
  const addresses = [
    ...(v4.status === 'fulfilled' ? v4.value.map((address) => ({ address, family: 4 })) : []),
    ...(v6.status === 'fulfilled' ? v6.value.map((address) => ({ address, family: 6 })) : []),
  ]
  return addresses.filter(({ address }) => isPublicAddress(address))
}
