import { generateKeyPairSync, sign } from 'node:crypto'
import { beforeEach, describe, expect, test } from 'vitest'
import { createAccount } from '../../../src/accounts/accounts.ts'
import type { AccountsDeps } from '../../../src/accounts/control-plane.ts'
import { createKey, rotateKey } from '../../../src/accounts/keys.ts'
import { type LeakNotice, revokeLeakedKeys } from '../../../src/accounts/leaked-keys/leaked-keys.ts'
import { Scanner } from '../../../src/accounts/leaked-keys/scanning-keys.ts'
import { findKeys, maxReportedKeys } from '../../../src/domain/find-keys.ts'
import { mintKey } from '../../../src/domain/keys.ts'
import { defaultPlans } from '../../../src/domain/plans.ts'
import {
  checkScanningSignature,
  readScanningKeys,
  readScanningMatches,
  scanningHeaders,
  type ScanningKey,
} from '../../../src/domain/secret-scanning.ts'
import { systemRandom } from '../../../src/runtime/random.ts'
import { Secret } from '../../../src/runtime/secret.ts'
import { MemoryStore } from '../memory-store.ts'

const random = systemRandom()
const mint = (): string => mintKey(random).reveal()

describe('keys in a text', () => {
  test('keys are found anywhere in a text, each once, and lookalikes are not', () => {
    const [first, second] = [mint(), mint()]
    const wrong = `${first.slice(0, -1)}${first.endsWith('0') ? '1' : '0'}`
    expect(findKeys([`a=${first}b sk_svc_ ${second}${first}`, wrong, `sk_svc_${second}`])).toEqual([first, second])
    expect(findKeys(['', 'sk_svc_'.repeat(1000), first.slice(0, -1)])).toEqual([])
  })

  test('the number of keys found is limited', () => {
    expect(findKeys([Array.from({ length: maxReportedKeys + 5 }, mint).join(' ')])).toHaveLength(maxReportedKeys)
  })
})

describe('leaked keys', () => {
  const pepper = new Secret('made-up-pepper-of-the-tests')
  let store: MemoryStore
  let deps: AccountsDeps
  let notices: LeakNotice[]
  let accountId: string

  beforeEach(async () => {
    store = new MemoryStore()
    deps = { store, clock: { nowMs: () => 5_000 }, random, pepper, actor: { kind: 'system' } }
    notices = []
    accountId = (await createAccount(deps, 'Ada', 'free', defaultPlans)).id
    store.records.length = 0
  })
  const revoke = (...texts: { text: string; foundAt?: string }[]) =>
    revokeLeakedKeys(
      {
        accountsDeps: deps,
        peppers: [pepper, new Secret('made-up-pepper-of-before')],
        notify: async (notice) => {
          if (notice.keys.some(({ keyName }) => keyName === 'unreachable')) throw new Error('made up')
          notices.push(notice)
        },
      },
      texts,
    )

  test('each leaked key is revoked with an audit event, and its owner learns which, when, and where', async () => {
    const { key, stored } = await createKey(deps, accountId, 'laptop')
    const old = await createKey({ ...deps, pepper: new Secret('made-up-pepper-of-before') }, accountId, 'older')
    const texts = [`export KEY=${key.reveal()}`, 'nothing here', old.key.reveal()]
    const foundAt = 'https://code.example/blob/main/.env'
    expect(await revoke({ text: texts[0]!, foundAt }, { text: texts[1]! }, { text: texts[2]! })).toEqual([
      { text: 0, state: 'revoked', keyId: stored.id },
      { text: 2, state: 'revoked', keyId: old.stored.id },
    ])
    expect(store.keys.map(({ state }) => state)).toEqual(['revoked', 'revoked'])
    const noticeOf = ({ id, name, hint }: typeof stored, at?: string) => ({
      keyId: id,
      keyName: name,
      keyHint: hint,
      foundAt: at,
    })
    expect(notices).toEqual([{ accountId, keys: [noticeOf(stored, foundAt), noticeOf(old.stored)] }])
    const leaked = store.records.slice(2).map(({ event }) => event)
    expect(leaked).toEqual(
      [stored, old.stored].map(({ id }) => ({ type: 'key.revoked', accountId, keyId: id, reason: 'leaked' })),
    )
    expect(JSON.stringify([notices, store.records])).not.toContain(key.reveal())
  })

  test('a retiring key is revoked, a key that was already revoked is reported as such, and a foreign key as unknown', async () => {
    const { key, stored } = await createKey(deps, accountId, 'laptop')
    await rotateKey(deps, stored.id, '7d')
    expect((await revoke({ text: key.reveal() }))[0]).toMatchObject({ state: 'revoked' })
    expect(await revoke({ text: `${key.reveal()} ${key.reveal()}` }, { text: key.reveal() })).toEqual([
      { text: 0, state: 'revoked_before', keyId: stored.id },
      { text: 1, state: 'revoked_before', keyId: stored.id },
    ])
    expect(await revoke({ text: mint() })).toEqual([{ text: 0, state: 'unknown', keyId: undefined }])
    expect(notices).toHaveLength(1)
  })

  test('owners are notified of revoked keys even if the store fails before the others are revoked', async () => {
    const [one, two] = [await createKey(deps, accountId, 'laptop'), await createKey(deps, accountId, 'server')]
    const find = store.findKeyByDigest.bind(store)
    let left = 1
    store.findKeyByDigest = (digest) => (left-- > 0 ? find(digest) : Promise.reject(new Error('made up')))
    await expect(revoke({ text: one.key.reveal() }, { text: two.key.reveal() })).rejects.toThrow('made up')
    expect(notices.map(({ keys }) => keys.map(({ keyName }) => keyName))).toEqual([['laptop']])
  })

  test('a key is revoked even if its owner cannot be notified', async () => {
    const { key, stored } = await createKey(deps, accountId, 'unreachable')
    expect(await revoke({ text: key.reveal() })).toEqual([{ text: 0, state: 'revoked', keyId: stored.id }])
    expect((await store.findKey(stored.id))?.state).toBe('revoked')
  })
})

describe("the scanner's messages", () => {
  const pair = (curve = 'P-256') => {
    const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: curve })
    return { pem: publicKey.export({ type: 'spki', format: 'pem' }), privateKey }
  }
  const own = pair()
  const keys: readonly ScanningKey[] = [{ id: 'current', pem: own.pem }]
  const body = Buffer.from(JSON.stringify([{ token: 'made up', type: 'svc_router_key', url: '', source: 'commit' }]))
  const signature = sign('sha256', body, own.privateKey).toString('base64')
  const message = { body, keyId: 'current', signature }

  test('a message is authentic only with its exact body and the key that it names', () => {
    expect(checkScanningSignature(message, keys)).toBe('authentic')
    const other = pair()
    const refused = [
      { ...message, body: Buffer.from(`${body.toString()} `) },
      { ...message, signature: sign('sha256', body, other.privateKey).toString('base64') },
      { ...message, signature: sign('sha512', body, own.privateKey).toString('base64') },
      { ...message, signature: '' },
      { ...message, signature: 'not base64 at all' },
      { ...message, signature: 'A'.repeat(100_000) },
      { ...message, signature: undefined },
      { ...message, keyId: undefined },
    ]
    for (const each of refused) expect(checkScanningSignature(each, keys)).toBe('refused')
    expect(checkScanningSignature({ ...message, keyId: 'older' }, keys)).toBe('unknown_key')
    expect(checkScanningSignature(message, [])).toBe('unknown_key')
    expect(checkScanningSignature(message, [{ id: 'current', pem: 'no key' }])).toBe('refused')
  })

  test('the sample that GitHub publishes is authentic', () => {
    const id = 'bcb53661c06b4728e59d897fb6165d5c9cda0fd9cdf9d09ead458168deb7518c'
    const base64 =
      'MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEYAGMWO8XgCamYKMJS6jc/qgvSlAdAjPuDPRcXU22YxgBrz+zoN19MzuRyW87qEt9/AmtoNP5GrobzUvQSyJFVw=='
    const pem = `-----BEGIN PUBLIC KEY-----\n${base64.slice(0, 64)}\n${base64.slice(64)}\n-----END PUBLIC KEY-----\n`
    const headers: Record<string, string> = {
      'github-public-key-identifier': id,
      'github-public-key-signature':
        'MEQCIQDaMKqrGnE27S0kgMrEK0eYBmyG0LeZismAEz/BgZyt7AIfXt9fErtRS4XaeSt/AO1RtBY66YcAdjxji410VQV4xg==',
    }
    const text =
      '[{"source":"commit","token":"some_token","type":"some_type","url":"https://example.com/base-repo-url/"}]'
    const sample = {
      body: Buffer.from(text),
      keyId: headers[scanningHeaders.keyId],
      signature: headers[scanningHeaders.signature],
    }
    const published = readScanningKeys(
      JSON.stringify({ public_keys: [{ key_identifier: id, key: pem, is_current: true }] }),
    )
    expect(checkScanningSignature(sample, published)).toBe('authentic')
    expect(readScanningMatches(sample.body)).toEqual([
      { text: 'some_token', type: 'some_type', url: 'https://example.com/base-repo-url/' },
    ])
  })

  test('the key list is parsed, and keys of other types are omitted', () => {
    const { pem } = pair('P-384')
    const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 }).publicKey.export({ type: 'spki', format: 'pem' })
    const listed = [
      { key_identifier: 'current', key: own.pem, is_current: true },
      { key_identifier: 'longer', key: pem, is_current: false },
      { key_identifier: 'rsa', key: rsa, is_current: false },
      { key_identifier: 7, key: own.pem },
      'nothing',
    ]
    expect(readScanningKeys(JSON.stringify({ public_keys: listed }))).toEqual(keys)
    for (const text of ['', '[]', '{}', '{"public_keys":7}']) expect(readScanningKeys(text)).toEqual([])
  })

  test('the matches are parsed, and only https locations are stored', () => {
    const matches = [
      { token: 'one', type: 't', url: 'https://code.example/a', source: 'commit' },
      { token: 'two', url: 'javascript:alert(1)' },
      { token: 'three', url: 'https://user:word@code.example/' },
      { token: 7 },
      null,
    ]
    expect(readScanningMatches(Buffer.from(JSON.stringify(matches)))).toEqual([
      { text: 'one', type: 't', url: 'https://code.example/a' },
      { text: 'two', type: '', url: undefined },
      { text: 'three', type: '', url: undefined },
    ])
    for (const text of ['', '{}', 'nothing']) expect(readScanningMatches(Buffer.from(text))).toBeUndefined()
  })

  describe('the cache of signing keys', () => {
    let nowMs: number
    let fetches: number
    let served: readonly ScanningKey[]
    let scanner: Scanner
    beforeEach(() => {
      nowMs = 1_000_000
      fetches = 0
      served = keys
      scanner = new Scanner({
        clock: { monotonicMs: () => nowMs },
        fetchKeys: async () => {
          fetches += 1
          if (served.length === 0) throw new Error('made up')
          return served
        },
      })
    })

    test('keys are fetched once an hour, and immediately for an unknown key ID, but at most every two minutes', async () => {
      expect(await Promise.all([scanner.isAuthentic(message), scanner.isAuthentic(message)])).toEqual([true, true])
      expect(fetches).toBe(1)
      for (let count = 0; count < 50; count++)
        expect(await scanner.isAuthentic({ ...message, keyId: 'next' })).toBe(false)
      expect(fetches).toBe(1)
      served = [{ id: 'next', pem: own.pem }]
      nowMs += 121_000
      expect(await scanner.isAuthentic({ ...message, keyId: 'next' })).toBe(true)
      expect(await scanner.isAuthentic(message)).toBe(false)
      expect(fetches).toBe(2)
      nowMs += 3_601_000
      await scanner.isAuthentic({ ...message, keyId: 'next' })
      expect(fetches).toBe(3)
    })

    test('an unsigned message does not cause a fetch', async () => {
      expect(await scanner.isAuthentic({ ...message, keyId: undefined })).toBe(false)
      expect(await scanner.isAuthentic({ ...message, signature: undefined })).toBe(false)
      expect(fetches).toBe(0)
    })

    test('while the fetch fails, messages get no verdict, and the retry interval increases', async () => {
      served = []
      const hourMs = 3_600_000
      for (const endMs = nowMs + hourMs; nowMs < endMs; nowMs += 1_000)
        await expect(scanner.isAuthentic(message)).rejects.toThrow('cannot be fetched')
      expect(fetches).toBeLessThanOrEqual(36)
      expect(fetches).toBeGreaterThan(25)
      served = keys
      nowMs += 120_000
      expect(await scanner.isAuthentic(message)).toBe(true)
    })

    test('any number of unknown key IDs causes at most 31 fetches an hour', async () => {
      for (const endMs = nowMs + 3_600_000; nowMs < endMs; nowMs += 500)
        await scanner.isAuthentic({ ...message, keyId: `made-up-${nowMs}` })
      expect(fetches).toBeLessThanOrEqual(31)
    })
  })
})
