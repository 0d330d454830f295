import { BlockList, isIP } from 'node:net'

const bitsOf = { 4: 32, 6: 128 } as const
const mapped = new BlockList()
mapped.addSubnet('::ffff:0:0', 96, 'ipv6')

/**
 * One address or network in the form that is stored (`203.0.113.7`, `10.0.0.0/8`, `2001:db8::/32`); undefined for
 * anything else. IPv4-mapped IPv6 addresses must be written as IPv4.
 */
export function readNetwork(text: string): string | undefined {
  const [, address = '', bits] = /^([^/%\s]{1,45})(?:\/(\d{1,3}))?$/.exec(text.trim()) ?? []
  const family = isIP(address)
  if (family !== 4 && family !== 6) return undefined
  if (family === 6 && mapped.check(address, 'ipv6')) return undefined
  if (bits !== undefined && Number(bits) > bitsOf[family]) return undefined
  return address.toLowerCase() + (bits === undefined ? '' : `/${Number(bits)}`)
}

/** A list of addresses and networks. An IPv4-mapped IPv6 address is checked as IPv4 (contract 3.20). */
export class Networks {
  readonly #ipv4 = new BlockList()
  readonly #ipv6 = new BlockList()

  /** `networks` must come from `readNetwork`. */
  constructor(networks: readonly string[]) {
    for (const network of networks) {
      const [address = '', bits] = network.split('/')
      const family = isIP(address)
      if (family === 4) this.#ipv4.addSubnet(address, Number(bits ?? bitsOf[4]), 'ipv4')
      else this.#ipv6.addSubnet(address, Number(bits ?? bitsOf[6]), 'ipv6')
    }
  }

  /** Whether an address is in one of them; false for anything that is not an address. */
  has(address: string): boolean {
    const [plain = ''] = address.split('%', 1)
    const family = isIP(plain)
    if (family === 4) return this.#ipv4.check(plain, 'ipv4')
    if (family !== 6) return false
    return mapped.check(plain, 'ipv6') ? this.#ipv4.check(plain, 'ipv6') : this.#ipv6.check(plain, 'ipv6')
  }
}

/** An address as people write it: IPv4-mapped IPv6 as IPv4, without the interface; undefined for anything else. */
export function plainAddress(address: string): string | undefined {
  const [plain = ''] = address.split('%', 1)
  const family = isIP(plain)
  if (family === 0) return undefined
  const [, inside] = /^::ffff:(\d[\d.]+)$/i.exec(plain) ?? []
  return inside ?? plain
}

/**
 * What counts as one client address for limits: an IPv4 address, or the /64 of an IPv6 address, because one line or
 * machine usually has a whole /64 (contract 29.3). Anything else is returned as is, truncated to 60 characters.
 */
export function addressGroup(address: string): string {
  // Most are IPv4 addresses. Reading them takes several microseconds.
  if (!address.includes(':') && !address.includes('%')) return address.slice(0, 60)
  const plain = plainAddress(address)
  if (plain === undefined) return address.slice(0, 60)
  if (!plain.includes(':')) return plain
  const [head = '', tail] = plain.toLowerCase().split('::')
  const before = head === '' ? [] : head.split(':')
  const after = tail === undefined || tail === '' ? [] : tail.split(':')
  const filled =
    tail === undefined
      ? before
      : [...before, ...Array<string>(Math.max(0, 8 - before.length - after.length)).fill('0'), ...after]
  return `${filled
    .slice(0, 4)
    .map((part) => part.replace(/^0+(?=.)/, ''))
    .join(':')}::/64`
}
