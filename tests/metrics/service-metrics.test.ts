import { expect, test } from 'vitest'
import type { ServiceEvent } from '../../src/domain/events.ts'
import { requestFormatIds } from '../../src/domain/format-id.ts'
import type { RequestOpening, RequestOutcome } from '../../src/domain/requests.ts'
import { ServiceMetrics } from '../../src/metrics/service-metrics.ts'
import { seriesOf } from './series.ts'

const frontier = 'svc-router/frontier'
const opening: RequestOpening = {
  id: 'req_1',
  accountId: 'acc_1',
  keyId: 'key_1',
  profile: frontier,
  format: 'openai-chat',
  stream: true,
  units: 2,
}
const usage = { inputTokens: 7, outputTokens: 3, cachedTokens: 2, reasoningTokens: 1, source: 'counted' } as const
const answered: RequestOutcome = {
  charged: 2,
  attempts: [{ backend: 'alpha', outcome: 'answered', ms: 40 }],
  usage,
  firstContentMs: 60,
  totalMs: 300,
}

function metricsOf(): ServiceMetrics {
  return new ServiceMetrics({ version: '1.2.3', profiles: [frontier], backends: ['alpha', 'beta'] })
}

test('an answered stream is counted with its attempt, charge, tokens, and times', async () => {
  const metrics = metricsOf()
  metrics.ended(opening, answered)
  const series = await seriesOf(metrics)
  expect(series.get(`svc_router_requests_total{profile="${frontier}",result="answered"}`)).toBe(1)
  expect(series.get('svc_router_request_outcomes_total{format="openai-chat",outcome="answered"}')).toBe(1)
  expect(series.get(`svc_router_charged_units_total{profile="${frontier}"}`)).toBe(2)
  expect(series.get('svc_router_attempts_total{backend="alpha",outcome="answered"}')).toBe(1)
  expect(series.get('svc_router_tokens_total{backend="alpha",kind="output"}')).toBe(3)
  expect(series.get(`svc_router_first_content_seconds_sum{profile="${frontier}"}`)).toBeCloseTo(0.06)
  expect(series.get('svc_router_backend_first_content_seconds_sum{backend="alpha"}')).toBeCloseTo(0.04)
  expect(series.get(`svc_router_request_seconds_sum{profile="${frontier}"}`)).toBeCloseTo(0.3)
  expect(series.get(`svc_router_failovers_total{profile="${frontier}"}`)).toBeUndefined()
})

test('a failover counts both attempts and itself, and a broken answer counts against its backend', async () => {
  const metrics = metricsOf()
  const attempts = [
    { backend: 'alpha', outcome: 'server_error', ms: 5 },
    { backend: 'beta', outcome: 'answered', ms: 9 },
  ] as const
  metrics.ended(opening, { ...answered, attempts })
  metrics.ended(opening, { ...answered, attempts, errorCode: 'upstream_broken' })
  const series = await seriesOf(metrics)
  expect(series.get('svc_router_attempts_total{backend="alpha",outcome="server_error"}')).toBe(2)
  expect(series.get('svc_router_attempts_total{backend="beta",outcome="broken_answer"}')).toBe(1)
  expect(series.get(`svc_router_failovers_total{profile="${frontier}"}`)).toBe(2)
  expect(series.get(`svc_router_requests_total{profile="${frontier}",result="failed"}`)).toBe(1)
})

test('the tokens of a fusion are counted for the backends that used them', async () => {
  const metrics = metricsOf()
  const call = { role: 'panel', status: 'answered', ms: 5, usage } as const
  const calls = [
    { ...call, member: 'alpha' },
    { ...call, member: 'beta' },
  ]
  const fusions = [{ calls }] as unknown as NonNullable<RequestOutcome['fusions']>
  metrics.ended(opening, { ...answered, fusions, usage: { ...usage, inputTokens: 14, outputTokens: 6 } })
  const series = await seriesOf(metrics)
  expect(series.get('svc_router_tokens_total{backend="alpha",kind="input"}')).toBe(7)
  expect(series.get('svc_router_tokens_total{backend="beta",kind="input"}')).toBe(7)
})

test('errors of callers, disconnects, and failures have results of their own', async () => {
  const metrics = metricsOf()
  for (const errorCode of ['content_rejected', 'client_closed', 'server_is_overloaded'] as const)
    metrics.ended(opening, { ...answered, charged: 0, errorCode })
  const series = await seriesOf(metrics)
  for (const result of ['rejected', 'canceled', 'failed'])
    expect(series.get(`svc_router_requests_total{profile="${frontier}",result="${result}"}`), result).toBe(1)
})

test('hostile names add no time series, and their text appears nowhere', async () => {
  const metrics = metricsOf()
  const hostile = [
    'x"} 1\nevil_total 5',
    '',
    '__proto__',
    'constructor',
    'a'.repeat(10_000),
    '\u202e\0',
    'sk_svc_secret',
  ]
  const feed = (name: string): void => {
    const attempts = [{ backend: name, outcome: name, ms: 1 }] as unknown as RequestOutcome['attempts']
    const fake = { ...opening, profile: name, format: name, accountId: name, keyId: name }
    metrics.admitted(fake)
    metrics.settled(fake)
    metrics.ended(fake, { ...answered, attempts, errorCode: name as 'internal_error' })
    metrics.ended(fake, { ...answered, attempts })
    metrics.refused(name)
    metrics.note({ event: name } as unknown as ServiceEvent)
  }
  feed(hostile[0]!)
  const before = [...(await seriesOf(metrics)).keys()]
  for (const name of hostile) for (let again = 0; again < 50; again++) feed(`${name}${again === 0 ? '' : again}`)
  const text = await metrics.registry.metrics()
  expect([...(await seriesOf(metrics)).keys()].filter((name) => name.startsWith('svc_router_'))).toEqual(
    before.filter((name) => name.startsWith('svc_router_')),
  )
  for (const word of ['evil', 'aaaa', 'proto', 'constructor', 'secret', '\u202e', 'acc_1'])
    expect(text.includes(word), word).toBe(false)
})

test('counters that alerts use start at 0', async () => {
  const series = await seriesOf(metricsOf())
  for (const name of [
    'svc_router_delivered_uncounted_total',
    'svc_router_failures_total{part="ledger"}',
    'svc_router_refusals_total{code="record_unavailable"}',
    'svc_router_attempts_total{backend="alpha",outcome="rejected_credentials"}',
    `svc_router_requests_total{profile="${frontier}",result="failed"}`,
    ...requestFormatIds.map(
      (format) => `svc_router_request_outcomes_total{format="${format}",outcome="record_unavailable"}`,
    ),
  ])
    expect(series.get(name), name).toBe(0)
})
