import { beforeEach, describe, expect, test } from 'vitest'
import { changePlan, createAccount, findAccount } from '../../src/accounts/accounts.ts'
import type { AccountsDeps } from '../../src/accounts/control-plane.ts'
import { createKey, effectiveState, maxKeysPerAccount, revokeKey, rotateKey } from '../../src/accounts/keys.ts'
import {
  addUpstream,
  maxUpstreamsPerAccount,
  removeUpstream,
  type UpstreamDraft,
} from '../../src/accounts/upstreams.ts'
import { isWellFormedKey, keyDigest } from '../../src/domain/keys.ts'
import { defaultPlans } from '../../src/domain/plans.ts'
import { systemRandom } from '../../src/runtime/random.ts'
import { Secret } from '../../src/runtime/secret.ts'
import { MemoryStore } from './memory-store.ts'

const startMs = Date.UTC(2026, 10, 20)
const hourMs = 3_600_000
let nowMs = startMs
let store: MemoryStore
let deps: AccountsDeps
let accountId: string

beforeEach(async () => {
  nowMs = startMs
  store = new MemoryStore()
  deps = {
    store,
    clock: { nowMs: () => nowMs },
    random: systemRandom(),
    pepper: new Secret('made-up-pepper-of-the-tests'),
    actor: { kind: 'cli' },
  }
  accountId = (await createAccount(deps, ' local ', 'max', defaultPlans)).id
})

const refusal = (code: string): object => expect.objectContaining({ name: 'AccountsError', code }) as object

describe('accounts', () => {
  test('an account has an ID, a trimmed name, and a plan, and is found by its ID or name', async () => {
    expect(store.accounts[0]).toEqual({
      id: accountId,
      name: 'local',
      planId: 'max',
      suspended: false,
      createdAtMs: startMs,
    })
    expect(accountId).toMatch(/^acc_/)
    expect(await findAccount(deps, accountId)).toBe(await findAccount(deps, 'local'))
    await expect(findAccount(deps, 'nobody')).rejects.toEqual(refusal('account_unknown'))
  })

  test('the plan and the account of a plan change must exist', async () => {
    await changePlan(deps, accountId, 'pro', defaultPlans)
    expect(store.accounts[0]?.planId).toBe('pro')
    await expect(changePlan(deps, accountId, 'gold', defaultPlans)).rejects.toEqual(refusal('plan_unknown'))
    await expect(changePlan(deps, 'acc_x', 'pro', defaultPlans)).rejects.toEqual(refusal('account_unknown'))
  })

  test('account names are unique, because the command line identifies accounts by name', async () => {
    await expect(createAccount(deps, 'local', 'free', defaultPlans)).rejects.toEqual(refusal('account_name_taken'))
  })

  test.each([
    '',
    '   ',
    'x'.repeat(101),
    'two\nlines',
    'two\u2028lines',
    '\u202Edesrever',
    'half\ud83d',
    '\u200B\u3164',
  ])('a name of 1 to 100 visible characters, not %j', async (name) => {
    await expect(createAccount(deps, name, 'free', defaultPlans)).rejects.toEqual(refusal('name_invalid'))
    await expect(createKey(deps, accountId, name)).rejects.toEqual(refusal('name_invalid'))
  })
})

describe('keys', () => {
  test('only the digest and a hint of a key are stored', async () => {
    const { key, stored } = await createKey(deps, accountId, 'laptop')
    expect(isWellFormedKey(key.reveal())).toBe(true)
    expect(store.digests.get(stored.id)).toBe(keyDigest(key.reveal(), deps.pepper))
    expect(JSON.stringify([...store.keys, ...store.digests])).not.toContain(key.reveal())
    expect(stored).toMatchObject({ accountId, name: 'laptop', state: 'active', endsAtMs: null })
  })

  test('a key needs an existing account', async () => {
    await expect(createKey(deps, 'acc_x', 'laptop')).rejects.toEqual(refusal('account_unknown'))
  })

  test.each([
    ['1h', hourMs],
    ['24h', 24 * hourMs],
    ['7d', 168 * hourMs],
    [undefined, 24 * hourMs],
  ] as const)('after a rotation with overlap %s the old key works %d ms longer', async (overlap, ms) => {
    const old = await createKey(deps, accountId, 'laptop')
    const next = await rotateKey(deps, old.stored.id, overlap)
    const kept = (await store.findKey(old.stored.id))!
    expect(next.endsAtMs).toBe(startMs + ms)
    expect(next.stored).toMatchObject({ name: 'laptop', state: 'active' })
    expect(next.key.reveal()).not.toBe(old.key.reveal())
    expect([effectiveState(kept, startMs + ms - 1), effectiveState(kept, startMs + ms)]).toEqual([
      'retiring',
      'revoked',
    ])
  })

  test('a rotation without an overlap revokes the old key immediately', async () => {
    const old = await createKey(deps, accountId, 'laptop')
    await rotateKey(deps, old.stored.id, 'now')
    expect(await store.findKey(old.stored.id)).toMatchObject({ state: 'revoked', revokedAtMs: startMs })
  })

  test('only an existing, active key can be rotated', async () => {
    const old = await createKey(deps, accountId, 'laptop')
    await rotateKey(deps, old.stored.id)
    await expect(rotateKey(deps, old.stored.id)).rejects.toEqual(refusal('key_not_active'))
    await expect(rotateKey(deps, 'key_x')).rejects.toEqual(refusal('key_unknown'))
  })

  test('a revocation is permanent and happens once', async () => {
    const { stored } = await createKey(deps, accountId, 'laptop')
    await revokeKey(deps, stored.id)
    await expect(revokeKey(deps, stored.id)).rejects.toEqual(refusal('key_already_revoked'))
    await expect(rotateKey(deps, stored.id)).rejects.toEqual(refusal('key_not_active'))
    await expect(revokeKey(deps, 'key_x')).rejects.toEqual(refusal('key_unknown'))
  })

  test('an account has at most 100 usable keys, also after rotations, and a revoked key makes room', async () => {
    const [first] = await Promise.all(
      Array.from({ length: maxKeysPerAccount }, () => createKey(deps, accountId, 'key')),
    )
    await expect(createKey(deps, accountId, 'one more')).rejects.toEqual(refusal('key_limit'))
    await expect(rotateKey(deps, first!.stored.id)).rejects.toEqual(refusal('key_limit'))
    await rotateKey(deps, first!.stored.id, 'now')
    await revokeKey(deps, store.keys.at(-1)!.id)
    await createKey(deps, accountId, 'one more')
  })
})

describe('upstreams', () => {
  const credential = 'made-up-credential-of-the-tests'
  const draft: UpstreamDraft = {
    provider: 'openai',
    model: 'm',
    baseUrl: null,
    format: null,
    authHeader: null,
    credential: new Secret(credential),
  }
  const seal = (account: string, id: string, secret: Secret): string =>
    `sealed(${account},${id},${secret.reveal().length})`

  test('a credential is encrypted for its account and upstream, and shows only four characters', async () => {
    const { id } = await addUpstream(deps, accountId, draft, seal)
    expect(store.upstreams).toEqual([
      {
        id,
        accountId,
        provider: 'openai',
        model: 'm',
        baseUrl: null,
        format: null,
        authHeader: null,
        sealedCredential: seal(accountId, id, new Secret(credential)),
        credentialHint: 'ests',
        position: 0,
        createdAtMs: startMs,
      },
    ])
  })

  test('a short credential shows no characters, and an upstream without a credential stores none', async () => {
    await addUpstream(deps, accountId, { ...draft, credential: new Secret('short') }, seal)
    await addUpstream(deps, accountId, { ...draft, credential: undefined }, seal)
    expect(store.upstreams.map(({ credentialHint }) => credentialHint)).toEqual([null, null])
    expect(store.upstreams[1]?.sealedCredential).toBeNull()
  })

  test.each(['', 'two words', 'two\nlines', 'x'.repeat(8193)])(
    'a value that no header can contain is rejected as a credential',
    async (text) => {
      await expect(addUpstream(deps, accountId, { ...draft, credential: new Secret(text) }, seal)).rejects.toEqual(
        refusal('credential_invalid'),
      )
      expect(store.upstreams).toEqual([])
    },
  )

  test('an account has at most 20 upstreams', async () => {
    for (let count = 0; count < maxUpstreamsPerAccount; count++) await addUpstream(deps, accountId, draft, seal)
    await expect(addUpstream(deps, accountId, draft, seal)).rejects.toEqual(refusal('upstream_limit'))
  })

  test('only its own account can remove an upstream', async () => {
    const { id } = await addUpstream(deps, accountId, draft, seal)
    await expect(removeUpstream(deps, 'acc_other', id)).rejects.toEqual(refusal('upstream_unknown'))
    await removeUpstream(deps, accountId, id)
    expect(store.upstreams).toEqual([])
  })
})
