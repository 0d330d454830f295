import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { clientAddress } from '../../src/domain/client-address.ts'
import { Networks, readNetwork } from '../../src/runtime/networks.ts'

/** The bits of an address as one number, read from its numbers here and not by what is tested. */
const bitsOf = (parts: readonly number[], width: number): bigint =>
  parts.reduce((bits, part) => (bits << BigInt(width)) | BigInt(part), 0n)
const ipv4 = fc.array(fc.nat(255), { minLength: 4, maxLength: 4 })
const ipv6 = fc
  .array(fc.nat(0xffff), { minLength: 8, maxLength: 8 })
  .filter((parts) => !parts.slice(0, 5).every((part) => part === 0))
const write4 = (parts: readonly number[]): string => parts.join('.')
const write6 = (parts: readonly number[]): string => parts.map((part) => part.toString(16)).join(':')

/** One part changed in one bit, so that addresses near the edge of a network are tried too. */
function flip(parts: readonly number[], bit: number, width: number): number[] {
  const at = Math.floor(bit / width)
  return parts.map((part, index) => (index === at ? part ^ (1 << (width - 1 - (bit % width))) : part))
}

describe('networks', () => {
  test('an IPv4 address is in a network exactly if their first bits are equal, even if mapped to IPv6', () => {
    fc.assert(
      fc.property(ipv4, ipv4, fc.nat(32), fc.nat(31), (network, other, length, bit) => {
        const networks = new Networks([readNetwork(`${write4(network)}/${length}`)!])
        for (const address of [other, flip(network, bit, 8), network]) {
          const isIn = bitsOf(network, 8) >> BigInt(32 - length) === bitsOf(address, 8) >> BigInt(32 - length)
          expect(networks.has(write4(address))).toBe(isIn)
          expect(networks.has(`::ffff:${write4(address)}`)).toBe(isIn)
        }
      }),
    )
  })

  test('an IPv6 address is in a network exactly if their first bits are equal, and no IPv4 address is in an IPv6 network', () => {
    fc.assert(
      fc.property(ipv6, ipv6, ipv4, fc.nat(128), fc.nat(127), (network, other, foreign, length, bit) => {
        const networks = new Networks([readNetwork(`${write6(network)}/${length}`)!])
        for (const address of [other, flip(network, bit, 16), network]) {
          const isIn = bitsOf(network, 16) >> BigInt(128 - length) === bitsOf(address, 16) >> BigInt(128 - length)
          if (address.slice(0, 5).every((part) => part === 0)) continue
          expect(networks.has(write6(address))).toBe(isIn)
        }
        expect(networks.has(write4(foreign))).toBe(false)
        expect(networks.has(`::ffff:${write4(foreign)}`)).toBe(false)
      }),
    )
  })

  test('a single address matches only itself, and a list matches all its networks', () => {
    const networks = new Networks(['203.0.113.7', '2001:db8::1', '10.0.0.0/8'])
    expect(['203.0.113.7', '2001:db8:0::1', '10.255.0.1', '::ffff:203.0.113.7'].every((one) => networks.has(one))).toBe(
      true,
    )
    expect(['203.0.113.8', '2001:db8::2', '11.0.0.1'].some((one) => networks.has(one))).toBe(false)
  })

  test('a link-local address matches with its interface, and invalid addresses match nothing', () => {
    const everything = new Networks(['0.0.0.0/0', '::/0'])
    expect(everything.has('fe80::1%eth0')).toBe(true)
    for (const text of ['', 'unknown', '1.2.3', '1.2.3.4:80', '[::1]:80', '_hidden', 'localhost'])
      expect(everything.has(text)).toBe(false)
  })

  test.each([
    ['203.0.113.7', '203.0.113.7'],
    [' 10.0.0.0/8 ', '10.0.0.0/8'],
    ['10.1.2.3/08', '10.1.2.3/8'],
    ['2001:DB8::/32', '2001:db8::/32'],
    ['::1', '::1'],
  ])('%j is stored as %j', (text, kept) => expect(readNetwork(text)).toBe(kept))

  test.each([
    '',
    '10.0.0.0/33',
    '2001:db8::/129',
    '10.0.0',
    '010.0.0.1',
    '10.0.0.0/',
    '10.0.0.0/-1',
    '10.0.0.0/8/8',
    '10.0.0.0-10.0.0.9',
    '::ffff:10.0.0.1',
    '::ffff:0:0/96',
    'fe80::1%eth0',
    'example.com',
    '*',
  ])('%j is not a network', (text) => expect(readNetwork(text)).toBeUndefined())
})

describe('the client address', () => {
  test('is the peer of the connection if no proxy is trusted, whatever the headers say', () => {
    expect(clientAddress('192.0.2.1', '203.0.113.7', 0)).toBe('192.0.2.1')
  })

  test('is the address that the first trusted proxy saw; earlier entries are ignored', () => {
    expect(clientAddress('10.0.0.2', '6.6.6.6, 203.0.113.7', 1)).toBe('203.0.113.7')
    expect(clientAddress('10.0.0.2', '6.6.6.6, 203.0.113.7, 10.0.0.1', 2)).toBe('203.0.113.7')
    expect(clientAddress('10.0.0.2', null, 1)).toBe('10.0.0.2')
  })

  test.each([
    ['203.0.113.7:4711', '203.0.113.7'],
    ['[2001:db8::7]:4711', '2001:db8::7'],
    ['[2001:db8::7]', '2001:db8::7'],
    ['2001:db8::7', '2001:db8::7'],
    ['unknown', 'unknown'],
  ])('an entry of %s means %s', (written, meant) => {
    expect(clientAddress('10.0.0.2', written, 1)).toBe(meant)
  })
})
