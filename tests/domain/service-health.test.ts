import { describe, expect, test } from 'vitest'
import { describeBackend } from '../../src/domain/backend-status-text.ts'
import { type BackendReport, type NodeReport, readReport, writeReport } from '../../src/domain/node-report.ts'
import { describeNode } from '../../src/domain/node-status-text.ts'
import { type KnownNode, ServiceHealth } from '../../src/domain/service-health.ts'

const nowMs = 1_000_000_000
const none = { answered: 0, failed: 0, timed: 0, sumMs: 0 }
const used: BackendReport = {
  id: 'alpha',
  state: 'closed',
  isTroubled: false,
  failures: 0,
  hour: none,
  usedAgoMs: 1_000,
}
const idle: BackendReport = { ...used, usedAgoMs: 3_000_000 }
const open: BackendReport = {
  ...used,
  state: 'open',
  reason: 'failing',
  sinceAgoMs: 60_000,
  untilInMs: 5_000,
  failures: 4,
  last: { outcome: 'unreachable', agoMs: 2_000 },
  hour: { answered: 10, failed: 5, timed: 2, sumMs: 300 },
}

function node(id: string, given: Partial<NodeReport> | undefined, silentMs = 1_000): KnownNode {
  const quiet = { requests: { answered: 1, failed: 0 }, failures: [], ownDown: [], reasons: [], backends: [] }
  const own = { name: `${id}:8787`, pid: 7, version: '1.0.0', isDraining: false }
  const report = given && { ...own, ...quiet, ...given }
  return { id, startedAtMs: nowMs - 9_000_000, seenAtMs: nowMs - silentMs, report }
}
/** The health of a service whose nodes see the backend alpha like this. */
const seen = (...views: readonly (BackendReport | undefined)[]): ServiceHealth =>
  new ServiceHealth(
    views.map((view, index) => node(`n${index}`, { backends: view === undefined ? [] : [view] })),
    nowMs,
  )

describe('a backend', () => {
  test('that most nodes skip is down, and known by the longest outage and the next try', () => {
    const longer = { ...open, sinceAgoMs: 90_000, untilInMs: 9_000, reason: 'rate' } as const
    expect(seen(open, longer, used).condition('alpha')).toMatchObject({
      state: 'open',
      reason: 'rate',
      sinceMs: nowMs - 91_000,
      untilMs: nowMs + 4_000,
      failures: 8,
      lastFailure: { outcome: 'unreachable', atMs: nowMs - 3_000 },
    })
  })

  test('that a minority skips is in use, and operators see how many skip it', () => {
    const condition = seen(open, used, used).condition('alpha')
    expect(condition).toMatchObject({ state: 'closed', skippedBy: { nodes: 1, of: 3 } })
    expect(describeBackend(condition)).toMatchObject({ words: 'skipped by 1 of 3 nodes', component: 'degraded' })
    expect(seen(open, used).condition('alpha').skippedBy).toEqual({ nodes: 1, of: 2 })
  })

  test('is judged only by nodes that use it', () => {
    expect(seen(open, idle, undefined).condition('alpha').state).toBe('open')
    expect(seen({ ...open, state: 'half_open' }, idle).condition('alpha').state).toBe('half_open')
    expect(seen(idle, undefined).condition('alpha')).toMatchObject({ state: 'closed', skippedBy: undefined })
  })

  test('has the counts of all nodes', () => {
    expect(seen(open, open, used).lastHour('alpha')).toEqual({ answered: 20, failed: 10, timed: 4, sumMs: 600 })
  })
})

test('nodes that send no heartbeats do not count, and those that end do not count as failing', () => {
  const reasons = ['requests cannot be recorded']
  const silent = node('a', { reasons, backends: [open] }, 20_000)
  const draining = node('b', { isDraining: true, reasons: ['draining'] })
  const failing = node('c', { reasons })
  const good = node('d', { backends: [used] })
  const older = node('e', undefined)
  const all = new ServiceHealth([silent, draining, failing, good, older], nowMs)
  expect(all.serving()).toEqual({ nodes: 1, of: 2, reason: reasons[0] })
  expect(all.condition('alpha').state).toBe('closed')
  expect(all.requests()).toEqual({ answered: 3, failed: 0 })
  expect(all.nodes.map((one) => describeNode(one, all).words)).toEqual([
    'no heartbeat',
    'draining',
    'rejects requests: requests cannot be recorded',
    'serving',
    'starting, or an older version',
  ])
  expect(new ServiceHealth([draining], nowMs).serving()).toEqual({ nodes: 0, of: 0, reason: 'draining' })
})

test('a failing part is named once, with its latest failure', () => {
  const failed = (agoMs: number) => ({ failures: [{ part: 'mail_failing' as const, agoMs, reason: `${agoMs}` }] })
  const health = new ServiceHealth([node('a', failed(5_000)), node('b', failed(3_000))], nowMs)
  expect(health.failures()).toEqual([{ part: 'mail_failing', atMs: nowMs - 4_000, reason: '3000' }])
})

test('a report is bounded, and names skipped backends first', () => {
  const many = Array.from({ length: 1_000 }, (_, index) => ({ ...(index === 999 ? open : used), id: `b${index}` }))
  const given = node('a', { backends: many, ownDown: many.map(({ id }) => id) }).report!
  const text = writeReport(given)
  expect(text.length).toBeLessThan(64 * 1024)
  expect(readReport(text)?.backends[0]).toEqual({ ...open, id: 'b999' })
  const endless = { ...given, backends: [{ ...open, id: 'x'.repeat(1_000_000) }] }
  expect(readReport(writeReport(endless))).toMatchObject({ name: 'a:8787', backends: [] })
  for (const foreign of [null, '', '[]', '{"form":2}', '{']) expect(readReport(foreign)).toBeUndefined()
})
