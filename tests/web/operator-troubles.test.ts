import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openIncident, updateIncident } from '../../src/accounts/status/incidents.ts'
import { RecentFailures } from '../../src/accounts/status/recent-failures.ts'
import type { ServiceEvent } from '../../src/domain/events.ts'
import type { BackendReport, NodeReport } from '../../src/domain/node-report.ts'
import { type KnownNode, ServiceHealth } from '../../src/domain/service-health.ts'
import { SkippingClock } from '../../src/simulation/skipping-clock.ts'
import { openSqlite } from '../../src/storage/sqlite/open-sqlite.ts'
import { findTroubles } from '../../src/web/operator/troubles.ts'
import type { WebDeps } from '../../src/web/web-deps.ts'
import { replaceAudit } from '../replace-audit.ts'
import type { Service } from '../service.ts'
import { startWeb, type Visitor } from './browser-less.ts'
import { enterAs } from './operator.ts'

let service: Service
let admin: Visitor
beforeAll(async () => {
  ;({ service } = await startWeb({ formats: ['openai-chat'] }))
  admin = (await enterAs(service, 'admin')).visitor
})
afterAll(() => service.stop())

const overview = async (): Promise<string> => (await (await admin.get('/operator')).text()).replaceAll(/\s+/g, ' ')

describe('the overview', () => {
  test('the overview reports no problems only if there are none', async () => {
    expect(await overview()).toContain('Everything works, and nothing is waiting for you.')
    expect(await overview()).not.toContain('Current problems')
    const accountsDeps = { ...service.accountsDeps, store: service.store }
    const { id } = await openIncident(accountsDeps, { title: 'Slow answers', impact: 'minor', text: 'Looking.' })
    const open = await overview()
    expect(open).toContain('Open incident: Slow answers')
    expect(open).not.toContain('nothing is waiting for you')
    await updateIncident(accountsDeps, id, 'resolved', 'Done.')
    expect(await overview()).toContain('Everything works')
  })

  test('the overview names an outage of the only provider and a rejected credential, and links to where each is fixed', async () => {
    service.providers[0]!.script([{ do: 'status', status: 500, repeat: true }])
    for (let asked = 0; asked < 12; asked++) expect((await service.chat()).status).toBe(503)
    const down = await overview()
    expect(down).toContain('Current problems')
    expect(down).toMatch(/12 of 12 requests failed in the last 5 minutes \(100%\)/)
    expect(down).toMatch(/alpha (is skipped because it fails|often fails)/)
    expect(down).toContain('href="/operator/backends/alpha"')
    expect(down).not.toContain('nothing is waiting for you')
    // The log also reports it, once instead of for each request.
    expect(service.events.filter(({ event }) => event === 'backend_down').length).toBe(1)
  })
})

describe('an audit log that was replaced together with its checkpoints', () => {
  test('the log is not signed for an operator, and the overview says so', async () => {
    expect((await admin.post('/operator/audit/checkpoint')).headers.get('content-disposition')).toContain('attachment')
    const db = await openSqlite(service.config.dataDir)
    await replaceAudit(db)
    await db.destroy()
    const accountsDeps = { ...service.accountsDeps, store: service.store }
    await openIncident(accountsDeps, { title: 'Made up', impact: 'minor', text: 'Looking.' })
    const refused = await admin.post('/operator/audit/checkpoint')
    expect(await refused.text()).toContain('so it was not signed')
    expect(await service.store.listCheckpoints(5)).toEqual([])
    expect(service.events).toContainEqual({
      event: 'audit_failing',
      reason: expect.stringMatching(/^broken:/) as string,
    })
    expect(await overview()).toMatch(/The audit log cannot be verified or signed \(broken:/)
  })
})

describe('detected problems', () => {
  const nowMs = 1_000_000
  const hour = { answered: 0, failed: 0, timed: 0, sumMs: 0 }
  const report: NodeReport = {
    name: 'web-1:8787',
    pid: 1,
    version: '1.0.0',
    isDraining: false,
    reasons: [],
    backends: [],
    ownDown: [],
    requests: { answered: 100, failed: 1 },
    failures: [],
  }
  /** One node that reports this, and another one without problems that uses the backend `a`. */
  const healthOf = (given: Partial<NodeReport>, others: readonly KnownNode[] = []) => ({
    backends: [{ id: 'a' }],
    health: () =>
      Promise.resolve(
        new ServiceHealth(
          [{ id: 'n', startedAtMs: 0, seenAtMs: nowMs, report: { ...report, ...given } }, ...others],
          nowMs,
        ),
      ),
  })
  const usual = {
    ...healthOf({}),
    controls: { listBackendControls: () => Promise.resolve([]) },
    incidents: { listIncidents: () => Promise.resolve([]) },
    openFiles: () => Promise.resolve({ open: 30, limit: 1024 }),
    audit: { last: undefined },
  }
  const find = async (consoleDeps: object, managed: object = {}): Promise<string> =>
    JSON.stringify(
      await findTroubles({
        clock: new SkippingClock(),
        consoleDeps: { ...usual, ...consoleDeps },
        managed: { readiness: () => Promise.reject(new Error('down')), ...managed },
      } as unknown as WebDeps),
    )
  const usable: BackendReport = { id: 'a', state: 'closed', isTroubled: false, failures: 0, hour, usedAgoMs: 1 }
  const skipped: BackendReport = { ...usable, state: 'open', reason: 'failing', sinceAgoMs: 1, untilInMs: 1 }
  const other = { id: 'm', startedAtMs: 1, seenAtMs: nowMs, report: { ...report, name: 'web-2', backends: [usable] } }

  test('single failures are not reported', async () => {
    expect(await find({})).toBe('[]')
  })

  test.each([
    [{ openFiles: () => Promise.resolve({ open: 900, limit: 1024 }) }, '900 of 1,024 files'],
    [{ audit: { last: { verdict: { state: 'broken', at: { sequence: 7, why: 'entry' } } } } }, 'broken at entry 7'],
    [{ backends: [{ id: 'a', serves: 'managed', provider: 'p' }] }, 'managed access checks'],
    [healthOf({ backends: [{ ...skipped, reason: 'credentials' }] }), 'a: the provider rejects the credential'],
    [healthOf({ backends: [{ ...usable, isTroubled: true }] }), 'a often fails'],
    [healthOf({ backends: [skipped] }, [other]), 'a is skipped by 1 of 2 nodes'],
    [healthOf({ ownDown: ['ups_1'] }), "Accounts' own providers that fail: ups_1"],
    [
      healthOf({ failures: [{ part: 'ledger_failing', agoMs: 0, reason: 'SQLITE_FULL' }] }),
      'Requests cannot be recorded (SQLITE_FULL)',
    ],
    [healthOf({ requests: { answered: 90, failed: 10 } }, [other]), '11 of 201 requests failed'],
    [healthOf({ reasons: ['the key store does not answer'] }, [other]), 'web-1:8787 rejects requests: the key store'],
    [healthOf({}, [{ ...other, seenAtMs: nowMs - 20_000 }]), 'web-2'],
  ])('%j', async (consoleDeps, words) => {
    const found = await find(consoleDeps)
    expect(found).toContain(words)
    expect(found).toMatch(/"path":"\/[a-z/]+/)
  })

  test('nodes that drain are not reported', async () => {
    expect(await find(healthOf({ isDraining: true, reasons: ['draining'] }, [other]))).toBe('[]')
  })

  test('managed access that is switched on but not ready is reported', async () => {
    const readiness = { switchedOn: true, providers: ['p'], durableQuotas: true, durableAudit: false }
    const consoleDeps = { backends: [{ id: 'a', serves: 'managed', provider: 'p' }] }
    expect(await find(consoleDeps, { readiness: () => Promise.resolve(readiness) })).toContain('not available for p')
    expect(await find(consoleDeps, { readiness: () => Promise.resolve({ ...readiness, durableAudit: true }) })).toBe(
      '[]',
    )
  })
})

test('recent failures are counted over five minutes and then forgotten', async () => {
  const clock = new SkippingClock()
  const troubles = new RecentFailures(clock)
  const request = (outcome: string): ServiceEvent => ({ event: 'request', outcome }) as ServiceEvent
  for (const outcome of ['answered', 'server_is_overloaded', 'client_closed', 'rate_limit_exceeded', 'internal_error'])
    troubles.note(request(outcome))
  troubles.note({ event: 'backend_down', backend: 'a', contentKind: 'text', reason: 'failing' })
  troubles.note({ event: 'backend_down', backend: 'a', contentKind: 'image', reason: 'failing' })
  troubles.note({ event: 'backend_back', backend: 'a', contentKind: 'image', downMs: 1 })
  troubles.note({ event: 'mail_failing', reason: 'ECONNREFUSED' })
  expect(troubles.requests()).toEqual({ answered: 1, failed: 2 })
  expect(troubles.down()).toEqual(['a'])
  expect(troubles.failures()).toMatchObject([{ part: 'mail_failing', reason: 'ECONNREFUSED' }])
  await clock.skip(6 * 60_000)
  expect(troubles.requests()).toEqual({ answered: 0, failed: 0 })
  await clock.skip(6 * 60_000)
  expect(troubles.failures()).toEqual([])
  troubles.note({ event: 'backend_back', backend: 'a', contentKind: 'text', downMs: 1 })
  expect(troubles.down()).toEqual([])
})
