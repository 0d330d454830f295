import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { createAccount } from '../../../src/accounts/accounts.ts'
import { firstRun, type FirstKeyFile, type FirstRunDeps } from '../../../src/accounts/identity/first-run.ts'
import { revokeKey, rotateKey } from '../../../src/accounts/keys.ts'
import { isWellFormedKey, keyDigest } from '../../../src/domain/keys.ts'
import { defaultPlans } from '../../../src/domain/plans.ts'
import { systemRandom } from '../../../src/runtime/random.ts'
import { Secret } from '../../../src/runtime/secret.ts'
import { openSqlite } from '../../../src/storage/sqlite/open-sqlite.ts'
import { createStore, type Store } from '../../../src/storage/store.ts'
import { placeEmptyDatabase } from '../../empty-database.ts'

let folder: string
let store: Store
let deps: FirstRunDeps
let kept: string | undefined
const file: FirstKeyFile = {
  read: () => kept,
  write(key) {
    kept = `${key.reveal()}\n`
  },
}

beforeEach(async () => {
  kept = undefined
  folder = mkdtempSync(join(tmpdir(), 'svc-router-first-run-'))
  await placeEmptyDatabase(folder)
  store = createStore(await openSqlite(folder))
  deps = {
    store,
    transactions: store.declared,
    clock: { nowMs: () => 1_000_000 },
    random: systemRandom(),
    pepper: new Secret('made-up-pepper-of-the-tests'),
    actor: { kind: 'cli' },
  }
})
afterEach(async () => {
  await store.close()
  rmSync(folder, { recursive: true, force: true })
})

const settings = { plans: defaultPlans, localPlan: 'max' }
const accounts = () => store.listAccounts(10)
const keys = async () => (await Promise.all((await accounts()).map(({ id }) => store.listKeys(id, 10)))).flat()

test('the first run creates the account "local" and a key that is shown and stored', async () => {
  const first = await firstRun(deps, settings, file)
  expect(await accounts()).toMatchObject([{ name: 'local', planId: 'max' }])
  const stored = await keys()
  expect(stored).toMatchObject([{ name: 'first key', state: 'active' }])
  expect(isWellFormedKey(first.key?.reveal() ?? '')).toBe(true)
  expect(kept).toBe(`${first.key?.reveal()}\n`)
  expect(await store.findKeyByDigest(keyDigest(first.key!.reveal(), deps.pepper))).toEqual(stored[0])
})

test('later runs create nothing and detect that the stored key works', async () => {
  await firstRun(deps, settings, file)
  const before = [kept, await store.revision(), await store.auditHead()]
  const second = await firstRun(deps, settings, file)
  expect(second).toMatchObject({ key: undefined, fileKeyWorks: true })
  expect([kept, await store.revision(), await store.auditHead()]).toEqual(before)
})

test('the account gets the plan that is meant for it', async () => {
  await firstRun(deps, { plans: defaultPlans, localPlan: 'pro' }, file)
  expect((await accounts())[0]?.planId).toBe('pro')
})

test('a run that ended between account and key is completed by the next run', async () => {
  await createAccount(deps, 'local', 'max', defaultPlans)
  const first = await firstRun(deps, settings, file)
  expect(await accounts()).toHaveLength(1)
  expect(kept?.trim()).toBe(first.key?.reveal())
})

test('if the key file cannot be written, nothing is stored', async () => {
  const full: FirstKeyFile = {
    read: () => undefined,
    write() {
      throw new Error('no space')
    },
  }
  await expect(firstRun(deps, settings, full)).rejects.toThrow('no space')
  expect(await accounts()).toEqual([])
})

test('nothing is created if an operator already created accounts', async () => {
  await createAccount(deps, 'team', 'free', defaultPlans)
  expect(await firstRun(deps, settings, file)).toMatchObject({ key: undefined, fileKeyWorks: false })
  expect([await keys(), kept]).toEqual([[], undefined])
})

test('a stored key that was revoked is detected, and a rotated one works during its overlap', async () => {
  await firstRun(deps, settings, file)
  const { id } = (await keys())[0]!
  await rotateKey(deps, id, '1h')
  expect(await firstRun(deps, settings, file)).toMatchObject({ key: undefined, fileKeyWorks: true })
  await revokeKey(deps, id)
  expect(await firstRun(deps, settings, file)).toMatchObject({ key: undefined, fileKeyWorks: false })
})

test('runs at the same time create one account and one key, and only the run that created it writes its file', async () => {
  const written: string[] = []
  const runs = Array.from({ length: 5 }, () =>
    firstRun(deps, settings, { read: () => kept, write: (key) => void written.push(key.reveal()) }),
  )
  const made = (await Promise.all(runs)).flatMap(({ key }) => key?.reveal() ?? [])
  expect(made).toHaveLength(1)
  expect(written).toEqual(made)
  expect([(await accounts()).length, (await keys()).length]).toEqual([1, 1])
})

test('while other processes keep changing the database, the first run gives up with what to do', async () => {
  const transactions: FirstRunDeps['transactions'] = {
    atRevision: (revision, work) => deps.transactions.atRevision(revision - 1, work),
  }
  await expect(firstRun({ ...deps, transactions }, settings, file)).rejects.toThrow('keep changing the database')
  expect(kept).toBeUndefined()
})
