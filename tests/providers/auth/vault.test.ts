import { randomBytes } from 'node:crypto'
import { inspect } from 'node:util'
import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { createVault } from '../../../src/providers/auth/vault.ts'
import { systemRandom } from '../../../src/runtime/random.ts'
import { SealError, type SealingKey } from '../../../src/runtime/sealer.ts'
import { Secret } from '../../../src/runtime/secret.ts'

const random = systemRandom()
const keyOf = (id: string): SealingKey => ({ id, key: new Secret<Uint8Array>(randomBytes(32)) })
const vault = createVault({ current: keyOf('k1'), random })

function reasonOf(run: () => unknown): string {
  try {
    run()
  } catch (error) {
    if (error instanceof SealError) return error.reason
    throw error
  }
  return 'opened'
}

describe('the vault', () => {
  test('a credential that was encrypted for an account and an ID can be decrypted for them', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), fc.string(), fc.string(), (text, account, id) => {
        const sealed = vault.seal(account, id, new Secret(text))
        expect(sealed).toMatch(/^v1\.k1\.[\w-]{16}\.[\w-]+$/)
        expect(vault.open(account, id, sealed).reveal()).toBe(text.toWellFormed())
      }),
    )
  })

  test('it cannot be decrypted for another account or ID, however similar', () => {
    fc.assert(
      fc.property(fc.string(), fc.string(), fc.string(), fc.string(), (account, id, otherAccount, otherId) => {
        fc.pre(account !== otherAccount || id !== otherId)
        const sealed = vault.seal(account, id, new Secret('made-up'))
        expect(reasonOf(() => vault.open(otherAccount, otherId, sealed))).toBe('not_authentic')
      }),
    )
    const sealed = vault.seal('a', 'bc', new Secret('made-up'))
    for (const [account, id] of [
      ['ab', 'c'],
      ['bc', 'a'],
      ['a","bc', ''],
      ['', 'abc'],
    ] as const) {
      expect(reasonOf(() => vault.open(account, id, sealed))).toBe('not_authentic')
    }
  })

  test('changing any single bit is detected', () => {
    const sealed = vault.seal('acc_1', 'ups_1', new Secret('made-up-credential'))
    const bytes = Buffer.from(sealed, 'latin1')
    for (let bit = 0; bit < bytes.length * 8; bit++) {
      const changed = Buffer.from(bytes)
      changed[bit >> 3]! ^= 1 << (bit & 7)
      expect(reasonOf(() => vault.open('acc_1', 'ups_1', changed.toString('latin1')))).not.toBe('opened')
    }
  })

  test('parts of two encrypted texts cannot be combined, and truncated or foreign texts are malformed', () => {
    const [one, two] = ['one', 'two'].map((text) => vault.seal('acc_1', 'ups_1', new Secret(text)).split('.'))
    expect(reasonOf(() => vault.open('acc_1', 'ups_1', [one![0], one![1], one![2], two![3]].join('.')))).toBe(
      'not_authentic',
    )
    for (const text of [
      '',
      'v1',
      'v1.k1',
      'v1.k1..',
      'v2.k1.AAAAAAAAAAAAAAAA.AAAAAAAAAAAAAAAAAAAAAA',
      `${one!.join('.')}.`,
      one!.join('.').slice(0, 40),
      `${one!.join('.')}=`,
      'x'.repeat(40_000),
    ]) {
      expect(reasonOf(() => vault.open('acc_1', 'ups_1', text))).toBe('malformed')
    }
  })

  test('encrypting the same secret twice gives different texts', () => {
    const texts = Array.from({ length: 100 }, () => vault.seal('acc_1', 'ups_1', new Secret('same')))
    expect(new Set(texts).size).toBe(100)
  })

  test('after a rotation, the previous key decrypts, the current key encrypts, and an unknown key decrypts nothing', () => {
    const [first, second, third] = [keyOf('k1'), keyOf('k2'), keyOf('k3')]
    const old = createVault({ current: first, random }).seal('acc_1', 'ups_1', new Secret('made-up'))
    const rotated = createVault({ current: second, previous: first, random })
    expect(rotated.open('acc_1', 'ups_1', old).reveal()).toBe('made-up')
    const fresh = rotated.seal('acc_1', 'ups_1', rotated.open('acc_1', 'ups_1', old))
    expect([old.split('.')[1], fresh.split('.')[1]]).toEqual(['k1', 'k2'])
    expect(reasonOf(() => createVault({ current: third, random }).open('acc_1', 'ups_1', old))).toBe('unknown_key')
    // The same ID with another key: the keys were mixed up, not their names.
    expect(reasonOf(() => createVault({ current: keyOf('k1'), random }).open('acc_1', 'ups_1', old))).toBe(
      'not_authentic',
    )
    expect(reasonOf(() => rotated.open('acc_1', 'ups_1', old.replace('.k1.', '.k2.')))).toBe('not_authentic')
  })

  test('a key of the wrong length, an invalid ID, and two keys with one ID are rejected', () => {
    expect(() => createVault({ current: { id: 'k', key: new Secret(new Uint8Array(16)) }, random })).toThrow(TypeError)
    expect(() => createVault({ current: keyOf('a.b'), random })).toThrow(TypeError)
    expect(() => createVault({ current: keyOf('k'), previous: keyOf('k'), random })).toThrow(TypeError)
  })

  test('neither the secret nor the key can be printed', () => {
    const opened = vault.open('acc_1', 'ups_1', vault.seal('acc_1', 'ups_1', new Secret('made-up-credential')))
    expect([inspect(opened), JSON.stringify({ opened }), String(opened)].join()).not.toContain('made-up')
  })
})
