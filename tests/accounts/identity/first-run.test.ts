import { beforeEach, expect, test } from 'vitest'
import { createAccount } from '../../../src/accounts/accounts.ts'
import type { AccountsDeps } from '../../../src/accounts/control-plane.ts'
import { firstRun, type FirstKeyFile } from '../../../src/accounts/identity/first-run.ts'
import { revokeKey, rotateKey } from '../../../src/accounts/keys.ts'
import { isWellFormedKey, keyDigest } from '../../../src/domain/keys.ts'
import { defaultPlans } from '../../../src/domain/plans.ts'
import { systemRandom } from '../../../src/runtime/random.ts'
import { Secret } from '../../../src/runtime/secret.ts'
import { MemoryStore } from '../memory-store.ts'

let store: MemoryStore
let deps: AccountsDeps
let kept: string | undefined
const file: FirstKeyFile = {
  read: () => kept,
  write(key) {
    kept = `${key.reveal()}\n`
  },
}

beforeEach(() => {
  kept = undefined
  store = new MemoryStore()
  deps = {
    store,
    clock: { nowMs: () => 1_000_000 },
    random: systemRandom(),
    pepper: new Secret('made-up-pepper-of-the-tests'),
    actor: { kind: 'cli' },
  }
})

test('the first run creates the account "local" on the max plan, and a key that is shown and stored', async () => {
  const first = await firstRun(deps, defaultPlans, file)
  expect(store.accounts).toMatchObject([{ name: 'local', planId: 'max' }])
  expect(store.keys).toMatchObject([{ name: 'first key', state: 'active' }])
  expect(isWellFormedKey(first.key?.reveal() ?? '')).toBe(true)
  expect(kept).toBe(`${first.key?.reveal()}\n`)
  expect(store.digests.get(store.keys[0]!.id)).toBe(keyDigest(first.key!.reveal(), deps.pepper))
})

test('later runs create nothing and detect that the stored key works', async () => {
  await firstRun(deps, defaultPlans, file)
  const before = [kept, JSON.stringify(store)]
  const second = await firstRun(deps, defaultPlans, file)
  expect(second).toMatchObject({ key: undefined, fileKeyWorks: true })
  expect([kept, JSON.stringify(store)]).toEqual(before)
})

test('without a max plan, the last plan is used', async () => {
  await firstRun(
    deps,
    [
      { ...defaultPlans[0]!, id: 'tiny' },
      { ...defaultPlans[0]!, id: 'huge' },
    ],
    file,
  )
  expect(store.accounts[0]?.planId).toBe('huge')
})

test('a run that ended between account and key is completed by the next run', async () => {
  await createAccount(deps, 'local', 'max', defaultPlans)
  const first = await firstRun(deps, defaultPlans, file)
  expect(store.accounts).toHaveLength(1)
  expect(kept?.trim()).toBe(first.key?.reveal())
})

test('if the key file cannot be written, no key is stored', async () => {
  const full: FirstKeyFile = {
    read: () => undefined,
    write() {
      throw new Error('no space')
    },
  }
  await expect(firstRun(deps, defaultPlans, full)).rejects.toThrow('no space')
  expect(store.keys).toEqual([])
})

test('nothing is created if an operator already created accounts', async () => {
  await createAccount(deps, 'team', 'free', defaultPlans)
  expect(await firstRun(deps, defaultPlans, file)).toMatchObject({ key: undefined, fileKeyWorks: false })
  expect([store.keys, kept]).toEqual([[], undefined])
})

test('a stored key that was revoked is detected, and a rotated one works during its overlap', async () => {
  await firstRun(deps, defaultPlans, file)
  const id = store.keys[0]!.id
  await rotateKey(deps, id, '1h')
  expect(await firstRun(deps, defaultPlans, file)).toMatchObject({ key: undefined, fileKeyWorks: true })
  await revokeKey(deps, id)
  expect(await firstRun(deps, defaultPlans, file)).toMatchObject({ key: undefined, fileKeyWorks: false })
})
