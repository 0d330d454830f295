import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { createAccount } from '../../../src/accounts/accounts.ts'
import { noSettings, settingsOf } from '../../../src/domain/declared.ts'
import { createStore, type Store } from '../../../src/storage/store.ts'
import { loadText, madeUpSealingKey } from '../../config/config-load.ts'
import { openEmptySqlite } from '../../empty-database.ts'
import { DeclaredWorld, linesOf } from './declared-world.ts'

let folder: string
let store: Store
/** Two nodes with different configuration files. */
let first: DeclaredWorld
let second: DeclaredWorld
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'svc-router-adopt-'))
  store = createStore(await openEmptySqlite(folder))
  first = new DeclaredWorld(store, loadText(configOf(10)))
  second = new DeclaredWorld(store, loadText(configOf(7)))
})
afterEach(async () => {
  await store.close()
  rmSync(folder, { recursive: true, force: true })
})

const tiny = { name: 'Tiny', requests_per_minute: 5, requests_per_month: 10 }
const backend = { provider: 'ollama', model: 'llama3' }
const file = {
  version: 1,
  plans: { tiny },
  backends: { own: backend },
  profiles: { 'my/own': { backends: ['own'] } },
}

function configOf(requestsPerMonth: number): string {
  return JSON.stringify({
    mode: 'local',
    plans: { tiny: { ...tiny, requests_per_month: requestsPerMonth } },
    backends: { own: backend },
    profiles: { 'my/own': { backends: ['own'] } },
  })
}

const storedOnes = async () =>
  (await store.listSettings()).map(({ kind, name, managed }) => `${kind}.${name}${managed ? ' managed' : ''}`)

test('a file owns what the configuration file has with the same values, and every node then uses it', async () => {
  const planned = await first.plan(file)
  expect(planned.changes).toMatchObject([
    { action: 'create', kind: 'plan', path: ['plans', 'tiny'], fields: [], source: 'configuration' },
    { action: 'create', kind: 'backend', path: ['backends', 'own'], fields: [], source: 'configuration' },
    { action: 'create', kind: 'profile', path: ['profiles', 'my/own'], fields: [], source: 'configuration' },
  ])
  expect(linesOf(await second.plan(file))).toContain('update plans.tiny requests_per_month')
  expect((await first.apply(file, false, planned.id)).changes).toEqual(planned.changes)
  expect(await storedOnes()).toEqual(['backends.own managed', 'plans.tiny managed', 'profiles.my/own managed'])
  const stored = settingsOf(await store.listSettings())
  expect(second.config.settings.serve(stored).plans).toMatchObject([{ id: 'tiny', requestsPerMonth: 10 }])
  const { sequence } = await store.auditHead()
  for (const world of [first, second]) expect(linesOf(await world.apply(file))).toEqual([])
  expect((await store.auditHead()).sequence).toBe(sequence)
})

test('the audit log names each object of the configuration that was stored, and its values', async () => {
  await first.apply({ version: 1, plans: { tiny } })
  const entries = await store.listAudit({ limit: 5 })
  const change = { type: 'setting.changed', setting: 'plans.tiny', before: 'none' }
  expect(entries.map(({ event }) => event)).toMatchObject([
    { type: 'settings.applied', changes: 1 },
    { ...change, field: 'requests_per_month', after: '10' },
    { ...change, field: 'requests_per_minute', after: '5' },
    { ...change, field: 'name', after: 'Tiny' },
    { type: 'setting.declared', setting: 'plans.tiny' },
  ])
})

test('a backend of the configuration file whose use a file declares is stored, too', async () => {
  const drained = { version: 1, backends: { own: { ...backend, use: 'drained' } } }
  expect((await first.apply(drained)).changes).toMatchObject([
    { action: 'create', fields: [{ field: 'use', after: 'drained' }], source: 'configuration' },
  ])
  expect(await storedOnes()).toEqual(['backends.own managed'])
  expect(linesOf(await second.apply(drained))).toEqual([])
})

test('the export of a fresh service stores its settings once and changes no value', async () => {
  const exported = await first.export()
  expect(linesOf(await first.apply(exported))).toEqual([
    'create plans.tiny',
    'create backends.own',
    'create profiles.my/own',
  ])
  expect(await first.export()).toBe(exported)
  expect(await second.export()).toBe(exported)
  expect(linesOf(await first.apply(exported))).toEqual([])
})

test('a service with every kind of setting serves the same after its export was applied', async () => {
  const example = readFileSync(new URL('../../../svc-router.example.yaml', import.meta.url), 'utf8')
  const text = example.replaceAll(/^#(?=[a-z]| {2,})/gm, '')
  const names = [...text.matchAll(/_env: (\w+)/g)].map(([, name]) => name!)
  const url = 'postgres://localhost/made-up'
  const env = Object.fromEntries(names.map((name) => [name, name.endsWith('_URL') ? url : `made-up-${name}`]))
  const keys = { SVC_ROUTER_SEALING_KEY: madeUpSealingKey, SVC_ROUTER_OLD_SEALING_KEY: madeUpSealingKey }
  const config = loadText(text, { env: { ...env, ...keys } })
  const world = new DeclaredWorld(store, config)
  await createAccount(world.deps, 'local', 'pro', config.plans)
  await world.apply(await world.export())
  const stored = settingsOf(await store.listSettings())
  expect(Object.keys(stored.backends).length).toBeGreaterThan(2)
  expect(config.settings.serve(stored)).toEqual(config.settings.serve(noSettings))
})

test('after a declared entry was pruned, the one of the configuration file is no longer owned', async () => {
  await first.apply(file)
  await first.apply({ version: 1, profiles: {}, backends: {}, plans: {} }, true)
  expect(await storedOnes()).toEqual([])
  expect(linesOf(await first.plan(file))).toHaveLength(3)
})
