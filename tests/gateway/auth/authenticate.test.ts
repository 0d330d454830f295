import { expect, test } from 'vitest'
import type { ServiceError } from '../../../src/domain/errors.ts'
import { noLimits } from '../../../src/domain/key-limits.ts'
import { keyDigest, type KeyState, mintKey } from '../../../src/domain/keys.ts'
import { defaultPlans } from '../../../src/domain/plans.ts'
import { authenticate, type AuthenticationDeps } from '../../../src/gateway/auth/authenticate.ts'
import { DigestCache } from '../../../src/gateway/auth/digest-cache.ts'
import { KeyCache } from '../../../src/gateway/auth/key-cache.ts'
import type { KeyEntry } from '../../../src/gateway/ports.ts'
import { systemRandom } from '../../../src/runtime/random.ts'
import { Secret } from '../../../src/runtime/secret.ts'
import { ManualClock } from '../manual-clock.ts'

const random = systemRandom()
const plan = defaultPlans[0]!
const peppers = [new Secret('made-up-pepper-now'), new Secret('made-up-pepper-before')] as const

/** A store with one key, stored under the previous pepper. */
async function opened(changes: { readonly state?: KeyState; readonly suspended?: boolean } = {}) {
  const key = mintKey(random).reveal()
  const digest = keyDigest(key, peppers[1])
  const entry: KeyEntry = {
    key: {
      id: 'key_1',
      accountId: 'acc_1',
      name: '',
      hint: '',
      state: changes.state ?? 'active',
      endsAtMs: null,
      createdAtMs: 0,
      revokedAtMs: null,
      limits: noLimits,
    },
    account: { id: 'acc_1', name: 'a', planId: plan.id, suspended: changes.suspended ?? false, createdAtMs: 0 },
  }
  const asked: string[] = []
  const store = {
    find: (wanted: string) => {
      asked.push(wanted)
      return Promise.resolve(wanted === digest ? entry : undefined)
    },
    revision: () => Promise.resolve(1),
  }
  const clock = new ManualClock()
  const keys = new KeyCache(
    store,
    clock,
    () => {},
    () => {},
  )
  await keys.start()
  const digests = new DigestCache(peppers)
  const deps: AuthenticationDeps = {
    keys,
    digests,
    planById: () => plan,
    findAccount: () => Promise.resolve(undefined),
    nowMs: () => clock.nowMs(),
  }
  return {
    key,
    digest,
    asked,
    digests,
    clock,
    present: (text: string) => authenticate(`Bearer ${text}`, undefined, deps),
  }
}

test('an existing key is cached under the digest that finds it, and is then returned synchronously', async () => {
  const { key, digest, asked, digests, clock, present } = await opened()
  expect(await present(key)).toMatchObject({ accountId: 'acc_1', keyId: 'key_1' })
  expect(digests.get(key)?.[0]).toBe(digest)
  // Long after the cache entry that says the other digest is unknown has expired.
  await clock.advance(60_000)
  const before = asked.length
  expect(present(key)).not.toBeInstanceOf(Promise)
  expect(asked.length).toBe(before)
})

test('a well-formed key that does not exist is rejected and not cached', async () => {
  const { digests, present } = await opened()
  const madeUp = mintKey(random).reveal()
  await expect(Promise.resolve(present(madeUp))).rejects.toMatchObject({ code: 'key_inactive' })
  expect(digests.get(madeUp)).toBeUndefined()
})

test.each([
  ['key_revoked', { state: 'revoked' }],
  ['key_inactive', { state: 'disabled' }],
  ['key_inactive', { suspended: true }],
] as const)('%s names the key’s owner only if the key exists: %o', async (code, changes) => {
  const { key, present } = await opened(changes)
  const owner = { accountId: 'acc_1', keyId: 'key_1' }
  await expect(Promise.resolve(present(key))).rejects.toMatchObject({ code, facts: { owner } })
  const unknown = await Promise.resolve(present(mintKey(random).reveal())).catch((error: unknown) => error)
  expect(unknown).toMatchObject({ code: 'key_inactive', facts: {} })
  expect((unknown as ServiceError).facts.owner).toBeUndefined()
})
