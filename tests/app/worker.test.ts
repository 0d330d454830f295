import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { duplexPair } from 'node:stream'
import { afterEach, beforeEach, expect, test } from 'vitest'
import type { TransactionStore } from '../../src/accounts/declared/declared-ports.ts'
import { startOwner, type Owner } from '../../src/app/owner.ts'
import { createRuntime } from '../../src/app/runtime.ts'
import { openWorkerStorage } from '../../src/app/storage-worker.ts'
import type { Storage } from '../../src/app/storage.ts'
import { systemClock } from '../../src/runtime/clock.ts'
import { systemRandom } from '../../src/runtime/random.ts'
import { loadText } from '../config/config-load.ts'
import { Service } from '../service.ts'

let folder: string
let owner: Owner
let storage: Storage
let end: () => void
const parts = { clock: systemClock(), random: systemRandom(), log: () => {} }

beforeEach(async () => {
  folder = mkdtempSync(`${tmpdir()}/svc-router-worker-`)
  const config = { ...loadText(''), dataDir: folder }
  owner = await startOwner(config, parts)
  const [ownerSide, socket] = duplexPair()
  end = owner.serve(3, ownerSide, () => {})
  storage = await openWorkerStorage(createRuntime(config, parts), { worker: 3, socket, onLost: () => {} })
})
afterEach(async () => {
  await storage[Symbol.asyncDispose]()
  end()
  await owner.stop()
  rmSync(folder, { recursive: true })
})

test('every store of a worker is the one of the owner', async () => {
  const { store } = storage
  expect(storage.isHealthy()).toBe(true)
  await storage.proveQuotas()
  expect(await store.listAccounts(10)).toEqual([])
  expect(await store.operators.listOperators(10)).toEqual([])
  expect(await store.billing.findBilling('acc_1')).toBeUndefined()
  expect(await storage.responses.locations('acc_1', ['digest'], 0, 10)).toEqual([])
  expect(await storage.conversations.find('acc_1', 'conv_1', 0)).toBeUndefined()
  expect(await storage.keys.find('digest')).toBeUndefined()
})

test('a change of several things is one transaction, or none if something changed before', async () => {
  const { store } = storage
  const account = { id: 'acc_1', name: 'one', planId: 'free', suspended: false, createdAtMs: 1 }
  const record = {
    actor: { kind: 'cli' },
    atMs: 1,
    event: { type: 'account.created', accountId: 'acc_1', planId: 'free' },
  } as const
  const revision = await storage.keys.revision()
  const adding = store.declared.atRevision(revision, (inside) => inside.addAccount(account, record))
  expect(await adding).toBe(true)
  expect(await store.findAccount('acc_1')).toEqual(account)
  expect(await store.declared.atRevision(revision, () => Promise.resolve('done'))).toBe('stale')
})

test('a change of many things does not block the event loop, and one that fails changes nothing', async () => {
  const { store } = storage
  const account = (n: number) => ({ id: `acc_${n}`, name: `n ${n}`, planId: 'free', suspended: false, createdAtMs: n })
  const add = async (inside: TransactionStore, n: number): Promise<void> => {
    const event = { type: 'account.created', accountId: `acc_${n}`, planId: 'free' } as const
    await inside.addAccount(account(n), { actor: { kind: 'cli' }, atMs: 1, event })
  }
  let turns = 0
  const count = (): void => {
    turns += 1
    counting = setImmediate(count)
  }
  let counting = setImmediate(count)
  const most = 300
  await store.declared.atRevision(await storage.keys.revision(), async (inside) => {
    turns = 0
    for (let n = 0; n < most; n++) await add(inside, n)
  })
  clearImmediate(counting)
  expect(turns).toBeGreaterThan(most)
  const failing = store.declared.atRevision(await storage.keys.revision(), async (inside) => {
    await add(inside, most)
    throw new Error('too much')
  })
  await expect(failing).rejects.toThrow('too much')
  expect(await store.countAccounts()).toBe(most)
})

test('a worker reports among the nodes while it runs', async () => {
  storage.ownNode.reportWith(() => '{}')
  await expect.poll(() => storage.store.listNodes()).toMatchObject([{ id: 'worker-3', report: '{}' }])
})

test('the start of a worker is its own, not that of a killed one with the same id', async () => {
  const { store } = storage
  const startedAgoMs = async (): Promise<number | undefined> =>
    (await store.listNodes()).find(({ id }) => id === 'worker-9')?.startedAgoMs
  await store.reportWorker('worker-9', { ageMs: 600_000, isKnown: false, report: null })
  expect(await startedAgoMs()).toBeGreaterThanOrEqual(600_000)
  await store.reportWorker('worker-9', { ageMs: 5_000, isKnown: false, report: null })
  expect(await startedAgoMs()).toBeLessThan(600_000)
  await store.reportWorker('worker-9', { ageMs: 700_000, isKnown: true, report: null })
  expect(await startedAgoMs(), 'it does not change while the worker runs').toBeLessThan(600_000)
  await store.forgetWorker('worker-9')
})

test('the service works as a worker: streams, stored answers, and conversations', async () => {
  const service = await Service.start({ asWorker: true })
  try {
    const headers = {
      authorization: `Bearer ${service.key}`,
      'content-type': 'application/json',
      'user-agent': 'test/1.0',
    }
    const post = (path: string, body: object) =>
      fetch(`${service.baseUrl}${path}`, { method: 'POST', headers, body: JSON.stringify(body) })
    const model = 'svc-router/frontier'
    const stream = await post('/chat/completions', { model, stream: true, messages: [{ role: 'user', content: 'Hi' }] })
    expect(await stream.text()).toContain('[DONE]')
    const conversation = (await (await post('/conversations', {})).json()) as { id: string }
    const first = (await (await post('/responses', { model, input: 'Hi' })).json()) as {
      id: string
    }
    expect((await post('/responses', { model, input: 'And?', previous_response_id: first.id })).status).toBe(200)
    expect((await post('/responses', { model, input: 'Hi', conversation: conversation.id })).status).toBe(200)
    expect((await fetch(`${service.baseUrl}/responses/${first.id}`, { headers })).status).toBe(200)
    const items = await fetch(`${service.baseUrl}/conversations/${conversation.id}/items`, { headers })
    expect(((await items.json()) as { data: unknown[] }).data).toHaveLength(2)
    await expect
      .poll(async () => (await service.store.listRequests({ limit: 10 })).map(({ state, charged }) => [state, charged]))
      .toEqual([1, 2, 3, 4].map(() => ['done', 1]))
  } finally {
    await service.stop()
  }
})
