import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { FairShare } from '../../src/runtime/fair-share.ts'
import { addressGroup } from '../../src/runtime/networks.ts'

describe('a fair share', () => {
  test('gives one holder four fifths, and the next one four fifths of the rest', () => {
    const share = new FairShare(4_000)
    expect(takeAll(share, 'a')).toBe(3_200)
    expect(takeAll(share, 'b')).toBe(640)
    expect(takeAll(share, 'c')).toBe(128)
  })

  test.each([1, 2, 3, 10])('makes a limit of %i usable and never exceeds it', (limit) => {
    const share = new FairShare(limit)
    expect(takeAll(share, 'a')).toBeGreaterThanOrEqual(1)
    expect(share.used).toBeLessThanOrEqual(limit)
  })

  test('frees released amounts for every holder', () => {
    const share = new FairShare(10)
    expect(share.take('account', 8, 'address')).toBe(true)
    expect(share.take('account', 1, 'address')).toBe(false)
    share.give('account', 8, 'address')
    expect([share.used, share.heldBy('account'), share.heldBy('address')]).toEqual([0, 0, 0])
    expect(share.take('other', 8, 'address')).toBe(true)
  })

  test('holders that keep what they have are counted while thousands of others come and go', () => {
    const share = new FairShare(10)
    expect(share.take('stays', 3)).toBe(true)
    for (let other = 0; other < 5_000; other += 1) {
      expect(share.take(`other ${other}`, 2)).toBe(true)
      share.give(`other ${other}`, 2)
    }
    expect([share.used, share.heldBy('stays'), share.heldBy('other 4999'), share.heldBy('other 0')]).toEqual([
      3, 3, 0, 0,
    ])
    expect(share.take('other 0', 2)).toBe(true)
    expect([share.used, share.heldBy('other 0')]).toEqual([5, 2])
  })

  test("leaves room for others of a holder's group, and for other groups", () => {
    const share = new FairShare(4_000)
    expect(takeAll(share, 'hostile', 'address')).toBe(3_200)
    expect(takeAll(share, 'neighbor', 'address')).toBeGreaterThanOrEqual(400)
    for (let greedy = 0; greedy < 50; greedy += 1) takeAll(share, `greedy ${greedy}`, 'address')
    expect(share.heldBy('address')).toBeLessThanOrEqual(3_800)
    expect(takeAll(share, 'elsewhere', 'another')).toBeGreaterThanOrEqual(100)
  })

  test('always leaves something for a new holder, however greedy the others are', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 20 }), fc.infiniteStream(fc.nat()), (greedy, picks) => {
        const share = new FairShare(4_000)
        for (let turn = 0; turn < 20_000; turn += 1) share.take(`greedy ${picks.next().value! % greedy}`)
        expect(share.take('newcomer')).toBe(true)
        expect(takeAll(share, 'newcomer') + 1).toBeGreaterThanOrEqual(Math.floor((4_000 / (4 * greedy + 1)) * 0.5))
      }),
      { numRuns: 20 },
    )
  })
})

describe('the group of an address', () => {
  test.each([
    ['203.0.113.7', '203.0.113.7'],
    ['::ffff:203.0.113.7', '203.0.113.7'],
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
    ['2001:0DB8:0001:2::9', '2001:db8:1:2::/64'],
    ['::1', '0:0:0:0::/64'],
    ['fe80::1%eth0', 'fe80:0:0:0::/64'],
    ['not an address', 'not an address'],
  ])('of %s is %s', (address, group) => {
    expect(addressGroup(address)).toBe(group)
  })
})

function takeAll(share: FairShare, holder: string, group?: string): number {
  let taken = 0
  while (share.take(holder, 1, group)) taken += 1
  return taken
}
