import { expect, test } from 'vitest'
import { LiveTraffic } from '../../src/accounts/status/live-traffic.ts'
import type { RequestOutcome } from '../../src/domain/requests.ts'
import { ManualClock } from '../gateway/manual-clock.ts'
import { requestOpening as opening } from '../request-opening.ts'

const usage = { inputTokens: 60, outputTokens: 120, cachedTokens: 0, reasoningTokens: 0, source: 'counted' } as const

function answered(ms: number, backend = 'alpha'): RequestOutcome {
  return { charged: 1, attempts: [{ backend, outcome: 'answered', ms }], usage, firstContentMs: ms + 5, totalMs: 900 }
}

function trafficOf(): { readonly traffic: LiveTraffic; readonly clock: ManualClock } {
  const clock = new ManualClock()
  return { traffic: new LiveTraffic(clock, () => ['alpha', 'beta']), clock }
}

test('before the first request there are no shares and no times', () => {
  expect(trafficOf().traffic.total()).toEqual({
    perSecond: 0,
    ended: 0,
    failedShare: undefined,
    inputTokensPerSecond: 0,
    outputTokensPerSecond: 0,
    firstContentMs: undefined,
  })
})

test('rates cover the last minute, and times and failures the last five', async () => {
  const { traffic, clock } = trafficOf()
  for (let ms = 1; ms <= 100; ms++) traffic.ended(opening, answered(ms))
  await clock.advance(5_000)
  expect(traffic.backend('alpha')).toEqual({
    perSecond: 100 / 60,
    ended: 100,
    failedShare: 0,
    inputTokensPerSecond: 100,
    outputTokensPerSecond: 200,
    firstContentMs: { p50: 50, p95: 95, p99: 99 },
  })
  expect(traffic.total().firstContentMs).toEqual({ p50: 55, p95: 100, p99: 104 })
  await clock.advance(60_000)
  expect(traffic.backend('alpha')).toMatchObject({ perSecond: 0, ended: 100, firstContentMs: { p99: 99 } })
  await clock.advance(240_000)
  expect(traffic.backend('alpha')).toMatchObject({ ended: 0, failedShare: undefined, firstContentMs: undefined })
})

test('a failover counts against the backend that failed, and a broken answer against the one that broke off', async () => {
  const { traffic } = trafficOf()
  const attempts = [
    { backend: 'alpha', outcome: 'server_error', ms: 5 },
    { backend: 'beta', outcome: 'answered', ms: 9 },
  ] as const
  traffic.ended(opening, { ...answered(9), attempts })
  traffic.ended(opening, { ...answered(9), attempts, errorCode: 'upstream_broken' })
  expect(traffic.backend('alpha')).toMatchObject({ ended: 2, failedShare: 1, firstContentMs: undefined })
  expect(traffic.backend('beta')).toMatchObject({ ended: 2, failedShare: 0.5 })
  expect(traffic.total()).toMatchObject({ ended: 2, failedShare: 0.5 })
})

test('errors of callers and disconnects are not failures', async () => {
  const { traffic } = trafficOf()
  for (const errorCode of ['content_rejected', 'client_closed'] as const)
    traffic.ended(opening, { ...answered(1), errorCode })
  expect(traffic.total().failedShare).toBe(0)
})

test('backends of accounts count in the total only, and take no memory', async () => {
  const { traffic } = trafficOf()
  for (let count = 0; count < 1_000; count++) traffic.ended(opening, answered(1, `own-${count}`))
  expect(traffic.total().ended).toBe(1_000)
  expect(traffic.backend('own-1').ended).toBe(0)
})

test('under load the latest times count', async () => {
  const { traffic } = trafficOf()
  for (let count = 0; count < 5_000; count++) traffic.ended(opening, answered(count < 4_000 ? 1 : 7))
  expect(traffic.backend('alpha').firstContentMs).toEqual({ p50: 7, p95: 7, p99: 7 })
})
