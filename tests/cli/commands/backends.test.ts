import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import type { BackendReport } from '../../../src/domain/node-report.ts'
import type { RequestRecord } from '../../../src/domain/requests.ts'
import type { KnownNode } from '../../../src/domain/service-health.ts'
import { createStore } from '../../../src/storage/store.ts'
import { openEmptySqlite } from '../../empty-database.ts'
import { Harness } from '../harness.ts'

let harness: Harness
beforeEach(async () => {
  harness = new Harness()
  const store = createStore(await openEmptySqlite(join(harness.folder, 'database')))
  harness.real = store
  return () => store.close()
})
afterEach(() => harness.remove())

const backend = 'simulated-alpha'

async function listed(): Promise<readonly { backend: string; holds: { kind: string; reason: string }[] }[]> {
  const { out } = await harness.say('backends', 'list', '--json')
  return JSON.parse(out) as never
}

test('a backend can be drained, quarantined, released, and undrained, and the audit log records each step', async () => {
  expect((await harness.say('backends', 'drain', backend, '--reason', 'maintenance')).code).toBe(0)
  expect((await harness.say('backends', 'quarantine', backend)).code).toBe(0)
  const table = (await harness.say('backends', 'list')).out
  expect(table).toMatch(/simulated-alpha +drained, quarantined +\d{4}-\S+Z +cli +maintenance +0 +0/)
  expect((await listed()).find((row) => row.backend === backend)?.holds).toMatchObject([
    { kind: 'drained', reason: 'maintenance', by: 'cli' },
    { kind: 'quarantined', reason: 'asked', by: 'cli' },
  ])
  expect((await harness.say('backends', 'release', backend)).code).toBe(0)
  expect((await harness.say('backends', 'undrain', backend)).code).toBe(0)
  expect((await harness.say('backends', 'list')).out).toMatch(/simulated-alpha +in use/)
  const log = await harness.real!.listAudit({ limit: 10 })
  expect(log.map(({ event }) => event.type)).toEqual([
    'backend.undrained',
    'backend.released',
    'backend.quarantined',
    'backend.drained',
  ])
})

test("the list shows each backend's results in the last hour, and says that it knows no more", async () => {
  const record = (outcome: string, ageMs: number): RequestRecord =>
    ({ attempts: [{ backend, outcome, ms: 1 }], admittedAtMs: Date.now() - ageMs }) as never
  harness.records.push(
    record('answered', 1),
    record('timeout', 2),
    record('cancelled', 3),
    record('timeout', 4_000_000),
  )
  const { out, err } = await harness.say('backends', 'list')
  expect(out).toMatch(/simulated-alpha +in use +1 +1/)
  expect(err).toContain('exist only in the running service')
  expect((await harness.say('status')).err).toContain('no service is running')
  for (let failed = 0; failed < 4; failed++) harness.records.push(record('timeout', 5))
  expect((await harness.say('backends', 'list')).out).toMatch(/simulated-alpha +in use, fails often +1 +5/)
})

test.each([
  [['drain'], 'the backend is missing'],
  [['drain', 'simulated-omega'], 'no backend with that name'],
  [['drain', backend, '--reason', 'because'], '--reason must be one of'],
  [['undrain', backend], 'is already in that state'],
  [['release', 'not a name'], 'that is not a valid backend name'],
])('invalid arguments are explained: %j', async (args, sentence) => {
  const { code, err } = await harness.say('backends', ...args)
  expect(code).not.toBe(0)
  expect(err).toContain(sentence)
})

test('a backend that was removed from the configuration is listed while it is held, and can be released', async () => {
  const record = { actor: { kind: 'cli' }, atMs: 1, event: { type: 'backend.undrained', backend: 'gone' } } as const
  await harness.real!.holdBackend({ backendId: 'gone', kind: 'drained', atMs: 1, by: 'cli', reason: 'cost' }, record)
  expect((await listed()).some((row) => row.backend === 'gone')).toBe(true)
  expect((await harness.say('backends', 'undrain', 'gone')).code).toBe(0)
  expect((await listed()).some((row) => row.backend === 'gone')).toBe(false)
})

test('tickets can be closed, are then omitted from open ones, and can be reopened', async () => {
  const ticket = { accountId: null, replyTo: 'a@example.com', requestId: null, text: 'Help', createdAtMs: 1 }
  await harness.real!.addTicket({ ...ticket, id: 'tic_1' }, 0, 10)
  await harness.real!.addTicket({ ...ticket, id: 'tic_2' }, 0, 10)
  expect((await harness.say('tickets', 'close', 'tic_1')).code).toBe(0)
  const open = (await harness.say('tickets', 'list', '--open')).out
  expect([open.includes('tic_1'), open.includes('tic_2')]).toEqual([false, true])
  expect((await harness.say('tickets', 'list')).out).toMatch(/tic_1 +\S+ +closed/)
  expect((await harness.say('tickets', 'close', 'tic_1')).err).toContain('is already in that state')
  expect((await harness.say('tickets', 'reopen', 'tic_1')).code).toBe(0)
  expect((await harness.say('tickets', 'close', 'tic_9')).err).toContain('there is no such ticket')
})

test('an answer that broke off after its first content counts as a failure of its backend', async () => {
  const record = (errorCode?: string): RequestRecord =>
    ({ attempts: [{ backend, outcome: 'answered', ms: 1 }], errorCode, admittedAtMs: Date.now() - 1 }) as never
  harness.records.push(record(), record('upstream_broken'), record('upstream_timeout'), record('client_closed'))
  const rows = JSON.parse((await harness.say('backends', 'list', '--json')).out) as { backend: string }[]
  expect(rows.find((row) => row.backend === backend)).toMatchObject({ answered: 2, failed: 2 })
})

test('on PostgreSQL, the list and `status` show what the nodes report', async () => {
  const none = { answered: 7, failed: 0, timed: 0, sumMs: 0 }
  const seen = { id: backend, isTroubled: false, failures: 0, hour: none, usedAgoMs: 5 }
  const skips = { ...seen, state: 'open', reason: 'rate', sinceAgoMs: 60_000, untilInMs: 5_000 } as const
  const node = (id: string, view: BackendReport, reasons: string[] = []): KnownNode => {
    const rest = { isDraining: false, ownDown: [], requests: { answered: 0, failed: 0 }, failures: [] }
    const report = { name: `${id}:8787`, pid: 412, version: '1.0.0', reasons, backends: [view], ...rest }
    return { id, startedAtMs: Date.now(), seenAtMs: Date.now(), report }
  }
  const record = (outcome: string): RequestRecord =>
    ({ attempts: [{ backend, outcome, ms: 1 }], admittedAtMs: Date.now() - 1 }) as never
  harness.records.push(record('answered'), record('answered'), record('timeout'))
  harness.nodes = [node('web-1', skips), node('web-2', skips, ['the key store does not answer'])]
  harness.nodes.push(node('web-3', { ...seen, state: 'closed' }))
  const { out, err } = await harness.say('backends', 'list')
  expect(out).toMatch(/simulated-alpha +skipped +\d{4}-\S+Z +rate +2 +1/)
  expect(err).toContain('the latest reports of 3 nodes')
  writeFileSync(join(harness.folder, 'svc-router.yaml'), 'database: { url_env: DATABASE_URL }\n')
  harness.env = {
    DATABASE_URL: 'postgres://nowhere.invalid/none',
    SVC_ROUTER_PEPPER: 'the pepper of this test',
    SVC_ROUTER_SEALING_KEY: Buffer.alloc(32, 7).toString('base64'),
  }
  const say = (...args: string[]) => harness.say(...args, '--config', join(harness.folder, 'svc-router.yaml'))
  const status = await say('status')
  expect(status).toMatchObject({ code: 0 })
  expect(status.out).toMatch(/web-1:8787 +412 +serving +1\.0\.0/)
  expect(status.out).toMatch(/web-2:8787 +412 +rejects requests: the key store does not answer/)
  // The counts include the requests of processes that have ended since.
  expect(status.out).toMatch(/simulated-alpha +skipped +\S+Z +2 +1/)
  expect(status.err).toContain('ANSWERED and FAILED count the requests of the last hour.')
  harness.nodes = [node('web-2', skips, ['the key store does not answer'])]
  expect((await say('status')).code).toBe(1)
  harness.nodes = []
  expect(await say('status')).toMatchObject({ code: 5, err: expect.stringContaining('no node sent a heartbeat') })
})
