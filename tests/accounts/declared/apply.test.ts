import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import * as fc from 'fast-check'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { createAccount, changePlan, suspendAccount } from '../../../src/accounts/accounts.ts'
import { controlBackend } from '../../../src/accounts/backends/backend-controls.ts'
import { PlanOutdated } from '../../../src/accounts/declared/apply.ts'
import { createKey, limitKey, revokeKey, rotateKey } from '../../../src/accounts/keys.ts'
import { openPostgres } from '../../../src/storage/postgres/open-postgres.ts'
import { createStore, type Store } from '../../../src/storage/store.ts'
import { loadText } from '../../config/config-load.ts'
import { openEmptySqlite } from '../../empty-database.ts'
import { hasPostgres, startPostgres, type TestPostgres } from '../../postgres.ts'
import { DeclaredWorld, linesOf } from './declared-world.ts'

let folder: string
let store: Store
let world: DeclaredWorld
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'svc-router-declared-'))
  store = createStore(await openEmptySqlite(folder))
  world = new DeclaredWorld(store, loadText('mode: local\n', { env: { OPENAI_API_KEY: 'made-up' } }))
})
afterEach(async () => {
  await store.close()
  rmSync(folder, { recursive: true, force: true })
})

const file = {
  version: 1,
  plans: { team: { name: 'Team', requests_per_minute: 60, requests_per_month: 5_000 } },
  backends: { spare: { provider: 'ollama', model: 'llama3', timeouts: { connect: '1s' } } },
  profiles: { 'my/fast': { description: 'Fast', backends: ['spare'] } },
  accounts: {
    acme: {
      plan: 'team',
      suspended: false,
      keys: { ci: { profiles: ['my/fast'], requests_per_minute: 30, addresses: ['203.0.113.7'] }, dev: {} },
    },
  },
}

/** Random states. Every account is declared completely, so that a file determines its state. */
const states = fc.record({
  plans: fc.dictionary(
    fc.constantFrom('free', 'team', 'gold'),
    fc.record({
      name: fc.constantFrom('One', 'Two "quoted"', 'ü: yes'),
      requests_per_minute: fc.integer({ min: 50, max: 100 }),
      requests_per_month: fc.integer({ min: 1, max: 1_000 }),
      premium: fc.boolean(),
    }),
  ),
  backends: fc.dictionary(
    fc.constantFrom('alpha', 'beta'),
    fc.record({
      provider: fc.constant('ollama'),
      model: fc.constantFrom('llama3', 'qwen3'),
      reasoning: fc.boolean(),
      use: fc.constantFrom('active', 'drained', 'quarantined'),
    }),
  ),
  profile: fc.option(
    fc.record({ quota_units: fc.integer({ min: 1, max: 3 }), premium: fc.boolean() }, { requiredKeys: [] }),
    { nil: undefined },
  ),
  accounts: fc.dictionary(
    fc.constantFrom('acme', 'a.b c', 'ünï', '1'),
    fc.record({
      plan: fc.constantFrom('pro', 'max'),
      suspended: fc.boolean(),
      keys: fc.dictionary(
        fc.constantFrom('ci', 'my laptop', 'x.y'),
        fc.record(
          {
            profiles: fc.constantFrom(['svc-router/frontier'], ['svc-router/fusion', 'svc-router/frontier']),
            requests_per_minute: fc.integer({ min: 1, max: 50 }),
            addresses: fc.constantFrom(['203.0.113.0/24'], ['2001:DB8::1', '203.0.113.7/32']),
          },
          { requiredKeys: [] },
        ),
      ),
    }),
  ),
})

function fileOf({
  plans,
  backends,
  profile,
  accounts,
}: typeof states extends fc.Arbitrary<infer State> ? State : never): object {
  const profiles =
    profile === undefined ? {} : { 'my/fast': { ...profile, backends: Object.keys(backends).toSorted() } }
  return { version: 1, plans, backends, profiles, accounts }
}

test('after any file replaced any other, the state equals the file, and applying it or its export changes no value', async () => {
  await fc.assert(
    fc.asyncProperty(states, states, async (first, second) => {
      await world.apply(fileOf(first), true)
      const target = fileOf(second)
      const planned = await world.plan(target, true)
      const applied = await world.apply(target, true, planned.id)
      expect(applied.changes).toEqual(planned.changes)
      const exported = await world.export()
      expect(linesOf(await world.apply(target, true))).toEqual([])
      const { changes } = await world.apply(exported, true)
      for (const change of changes) expect(change).toMatchObject({ fields: [], source: 'configuration' })
      const { sequence } = await store.auditHead()
      expect(linesOf(await world.apply(exported, true))).toEqual([])
      expect(await world.export()).toBe(exported)
      expect((await store.auditHead()).sequence).toBe(sequence)
      // What the first file had is gone: a new database with the second file has the same state.
      expect(Object.keys(second.accounts).toSorted()).toEqual(
        (await store.listAccounts(100)).map(({ name }) => name).toSorted(),
      )
    }),
    { numRuns: 15 },
  )
})

test('creating everything reports each new key once, and the second time nothing happens', async () => {
  const first = await world.apply(file)
  expect(first.created.map(({ accountName, stored }) => `${accountName}/${stored.name}`)).toEqual([
    'acme/ci',
    'acme/dev',
  ])
  const [head, revision] = [await store.auditHead(), await store.revision()]
  const second = await world.apply(file)
  expect(second).toMatchObject({ changes: [], created: [] })
  expect(await store.auditHead()).toEqual(head)
  expect(await store.revision()).toBe(revision)
})

test('names that objects inherit are names like others', async () => {
  const named = {
    version: 1,
    backends: { constructor: { provider: 'ollama', model: 'llama3' } },
    accounts: { toString: { plan: 'free', keys: { valueOf: {} } } },
  }
  await world.apply(named)
  expect(linesOf(await world.plan(named))).toEqual([])
  await expect(createAccount(world.deps, '__proto__', 'free', world.config.plans)).rejects.toThrow('name_invalid')
})

/** What an operator can change in the console, and the lines that the next diff must contain. */
const drifts: readonly [what: string, change: () => Promise<unknown>, lines: readonly string[]][] = [
  ['a plan', () => changeAccountPlan('pro'), ['update accounts.acme plan']],
  ['a suspension', async () => suspendAccount(world.deps, await accountId()), ['update accounts.acme suspended']],
  ['a revoked key', async () => revokeKey(world.deps, await keyId('dev')), ['create accounts.acme.keys.dev']],
  [
    'a removed limit',
    () => limit({ profiles: null, perMinute: 30, addresses: ['203.0.113.7'] }),
    ['update accounts.acme.keys.ci profiles'],
  ],
  [
    'another rate',
    () => limit({ profiles: ['my/fast'], perMinute: 31, addresses: ['203.0.113.7'] }),
    ['update accounts.acme.keys.ci requests_per_minute'],
  ],
  [
    'another address',
    () => limit({ profiles: ['my/fast'], perMinute: 30, addresses: ['203.0.113.8'] }),
    ['update accounts.acme.keys.ci addresses'],
  ],
  [
    'two keys of one name',
    async () => createKey(world.deps, await accountId(), 'dev'),
    ['problem accounts.acme.keys.dev'],
  ],
]

test.each(drifts)('drift is named by its field: %s', async (_, change, lines) => {
  await world.apply(file)
  await change()
  const found = await world
    .plan(file)
    .then(linesOf, (error: { problems: { path: string[] }[] }) =>
      error.problems.map(({ path }) => `problem ${path.join('.')}`),
    )
  expect(found).toEqual(lines)
})

test('every field of a setting that another file changed is named', async () => {
  await world.apply(file)
  await world.apply({
    version: 1,
    plans: {
      team: { name: 'T', requests_per_minute: 61, requests_per_month: 5_001, premium: true, fusions_at_once: 3 },
    },
    backends: {
      spare: {
        provider: 'openai',
        model: 'm',
        credential_env: 'OPENAI_API_KEY',
        timeouts: { connect: '2s' },
        quality: 7,
      },
    },
    profiles: { 'my/fast': { backends: ['spare'], premium: true, quota_units: 2, reports_model: true } },
  })
  expect(linesOf(await world.plan(file))).toEqual([
    ...['fusions_at_once', 'name', 'premium', 'requests_per_minute', 'requests_per_month'].map(
      (field) => `update plans.team ${field}`,
    ),
    ...['credential_env', 'model', 'provider', 'quality', 'timeouts.connect'].map(
      (field) => `update backends.spare ${field}`,
    ),
    ...['description', 'premium', 'quota_units', 'reports_model'].map((field) => `update profiles.my/fast ${field}`),
  ])
})

test('what the file does not have is named and stays; only what a file declared before can be pruned', async () => {
  await world.apply(file)
  const other = await createAccount(world.deps, 'visitor', 'free', world.config.plans)
  await createKey(world.deps, other.id, 'own')
  await createKey(world.deps, await accountId(), 'made in the console')
  await controlBackend(world.deps, { step: 'drained', backend: 'spare', reason: 'failing' })
  const smaller = { ...file, accounts: { acme: { plan: 'team', keys: { ci: file.accounts.acme.keys.ci } } } }
  const kept = await world.plan(smaller)
  expect(kept.changes).toEqual([])
  expect(kept.undeclared.map(({ path, isManaged, note }) => [path.join('.'), isManaged, note])).toEqual([
    ['backends.spare.use', false, 'drained'],
    ['accounts.acme.keys.dev', true, undefined],
    ['accounts.acme.keys.made in the console', false, undefined],
    ['accounts.visitor', false, undefined],
  ])
  expect(linesOf(await world.apply(smaller, true))).toEqual(['delete accounts.acme.keys.dev'])
  const empty = { version: 1, plans: {}, backends: {}, profiles: {}, accounts: {} }
  expect(linesOf(await world.apply(empty, true))).toEqual([
    'delete accounts.acme keys',
    'delete accounts.acme plan',
    'delete profiles.my/fast backends',
    'delete profiles.my/fast description',
    ...['model', 'provider', 'timeouts.connect'].map((field) => `delete backends.spare ${field}`),
    ...['name', 'requests_per_minute', 'requests_per_month'].map((field) => `delete plans.team ${field}`),
  ])
  expect((await store.listAccounts(10)).map(({ name }) => name)).toEqual(['visitor'])
})

test('all problems with the limits of a key are reported together', async () => {
  const keys = { ci: { profiles: ['none/x'], requests_per_minute: 1_000, addresses: ['300.1.1.1'] } }
  const problems = ['profiles', 'requests_per_minute', 'addresses'].map((field) => ({
    path: ['accounts', 'acme', 'keys', 'ci', field],
  }))
  await expect(world.plan({ ...file, accounts: { acme: { plan: 'team', keys } } })).rejects.toMatchObject({ problems })
  // Without a plan, the requests per minute have no bound.
  const [profiles, , addresses] = problems
  await expect(world.plan({ version: 1, accounts: { acme: { plan: 'nope', keys } } })).rejects.toMatchObject({
    problems: [{ path: ['accounts', 'acme', 'plan'] }, profiles, addresses],
  })
})

test('a new limit of a key in an unchanged account whose plan was removed is rejected with the plan', async () => {
  const pro = new DeclaredWorld(
    store,
    loadText('mode: local\nplans: {old: {name: Old, requests_per_minute: 60, requests_per_month: 9}}\n'),
  )
  const withKeys = (keys: object): object => ({ version: 1, accounts: { acme: { plan: 'old', keys } } })
  await pro.apply(withKeys({ dev: {} }))
  await expect(
    world.plan(withKeys({ dev: {}, ci: { requests_per_minute: 60 }, cd: { requests_per_minute: 70 } })),
  ).rejects.toMatchObject({ problems: [{ path: ['accounts', 'acme', 'plan'] }] })
})

test('a rotated key stays declared, and the diff stays empty', async () => {
  await world.apply(file)
  await rotateKey(world.deps, await keyId('ci'), '1h')
  expect(linesOf(await world.plan(file))).toEqual([])
})

test('an approved plan is made exactly, or not at all', async () => {
  const { id } = await world.plan(file)
  await world.apply({ version: 1, plans: file.plans })
  const head = await store.auditHead()
  await expect(world.apply(file, false, id)).rejects.toThrow(PlanOutdated)
  expect(await store.auditHead()).toEqual(head)
})

test('a change that fails undoes the whole apply', async () => {
  await world.apply(file)
  for (let count = 0; count < 98; count++) await createKey(world.deps, await accountId(), `key ${count}`)
  const head = await store.auditHead()
  const more = { ...file, plans: { ...file.plans, late: { ...file.plans.team, name: 'Late' } } }
  const crowded = { ...more, accounts: { acme: { ...file.accounts.acme, keys: { one: {}, two: {} } } } }
  await expect(world.apply(crowded)).rejects.toMatchObject({ code: 'key_limit' })
  expect(await store.auditHead()).toEqual(head)
  expect((await store.listSettings()).map(({ name }) => name)).not.toContain('late')
})

test('the audit log has the actor, each field before and after, and no free text', async () => {
  await world.apply(file)
  await world.apply({
    ...file,
    plans: { team: { ...file.plans.team, name: 'A secret plan', requests_per_minute: 90 } },
  })
  const entries = await store.listAudit({ limit: 3 })
  expect(entries.map(({ actor }) => actor.kind)).toEqual(['cli', 'cli', 'cli'])
  expect(entries.map(({ event }) => event)).toMatchObject([
    { type: 'settings.applied', changes: 1 },
    { type: 'setting.changed', setting: 'plans.team', field: 'requests_per_minute', before: '60', after: '90' },
    {
      type: 'setting.changed',
      setting: 'plans.team',
      field: 'name',
      before: 'Team',
      after: expect.stringMatching(/^sha256-[0-9a-f]{16}$/),
    },
  ])
})

test('budgets are set as the operator’s, once, and those that the file omits stay', async () => {
  const acme = (budgets: object) => ({
    version: 1,
    accounts: { acme: { plan: 'pro', keys: { ci: {} }, budgets } },
  })
  const declared = { 'usd month': 20.5, 'tokens day key ci': 5_000, 'usd week calendar profile svc-router/frontier': 3 }
  const first = await world.apply(acme(declared))
  expect(linesOf(first).filter((line) => line.includes('budgets'))).toEqual([
    'create accounts.acme.budgets.tokens day key ci limit',
    'create accounts.acme.budgets.usd month limit',
    'create accounts.acme.budgets.usd week calendar profile svc-router/frontier limit',
  ])
  expect(linesOf(await world.apply(acme(declared)))).toEqual([])
  const defaultPlans = ['create plans.free', 'create plans.max', 'create plans.pro']
  expect(linesOf(await world.apply(await world.export()))).toEqual(defaultPlans)
  const stored = await store.listBudgets(await accountId())
  expect(stored.map(({ setBy, scope, limit }) => [setBy, scope, limit])).toEqual(
    expect.arrayContaining([
      ['operator', 'account', 20_500_000_000],
      ['operator', 'key', 5_000],
      ['operator', 'profile', 3_000_000_000],
    ]),
  )
  const changed = await world.apply(acme({ 'usd month calendar': 30 }), true)
  expect(linesOf(changed)).toEqual(['update accounts.acme.budgets.usd month calendar limit'])
  expect(changed.undeclared.map(({ path }) => path.at(-1))).toEqual(
    expect.arrayContaining(['tokens day key ci', 'usd week calendar profile svc-router/frontier']),
  )
  expect(await store.listBudgets(await accountId())).toHaveLength(3)
})

test.each([
  [{ 'usd month key gone': 1 }, 'the account has no key "gone"'],
  [{ 'usd month profile no/such': 1 }, 'there is no profile "no/such"'],
  [{ 'usd month': 0.001 }, 'the budget is too small or too large'],
  [{ 'usd month': 0.010_000_000_000_1 }, 'the budget must be an amount such as 20 or 0.50'],
  [{ 'tokens month': 1_000.5 }, 'the budget is too small or too large'],
  [{ 'euro month': 1 }, 'a budget such as'],
])('a file with the budget %o is rejected', async (budgets, problem) => {
  const file = { version: 1, accounts: { acme: { plan: 'pro', keys: { ci: {} }, budgets } } }
  await expect((async () => world.apply(file))()).rejects.toThrow(problem)
})

describe.runIf(hasPostgres('applying a file'))('on PostgreSQL', () => {
  let server: TestPostgres
  beforeAll(async () => {
    server = await startPostgres()
  })
  afterAll(() => server.stop())

  test('a file is applied once, also by two nodes at the same time', async () => {
    const url = await server.createDatabase()
    const stores = [createStore(await openPostgres(url)), createStore(await openPostgres(url))]
    try {
      const worlds = stores.map((each) => new DeclaredWorld(each))
      const applied = await Promise.all(worlds.map((each) => each.apply(file)))
      expect(applied.map(({ changes }) => changes.length).toSorted((a, b) => a - b)).toEqual([0, 6])
      const exported = await worlds[1]!.export()
      expect((await worlds[0]!.apply(exported, true)).changes.map(({ source }) => source)).toEqual(
        Array.from({ length: 3 }, () => 'configuration'),
      )
      expect(linesOf(await worlds[0]!.apply(exported, true))).toEqual([])
    } finally {
      await Promise.all(stores.map((each) => each.close()))
    }
  })
})

async function accountId(): Promise<string> {
  return (await store.listAccounts(10)).find(({ name }) => name === 'acme')!.id
}

async function keyId(name: string): Promise<string> {
  return (await store.listKeys(await accountId(), 10)).find((key) => key.name === name)!.id
}

async function changeAccountPlan(plan: string): Promise<void> {
  await changePlan(world.deps, await accountId(), plan, world.config.plans)
}

async function limit(limits: Parameters<typeof limitKey>[2]): Promise<void> {
  await limitKey(world.deps, await keyId('ci'), limits)
}
