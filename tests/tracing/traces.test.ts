import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { Service } from '../service.ts'
import { type Collector, hasCollector, type ReceivedSpan, startFakeCollector, startRealCollector } from './collector.ts'

const callerTrace = '4bf92f3577b34da6a3ce929d0e0e4736'
const callerSpan = '00f067aa0ba902b7'
const traceparent = `00-${callerTrace}-${callerSpan}-00`

function startService(collector: Collector, tracing: Record<string, unknown> = {}): Promise<Service> {
  return Service.start({ settings: { tracing: { endpoint: collector.endpoint, ...tracing } } })
}

const headerOf = (service: Service, index: number): string | undefined =>
  service.providers[index]!.captured().at(-1)?.headers['traceparent'] as string | undefined

/** The span of the request, and those of its attempts in order. */
function treeOf(spans: readonly ReceivedSpan[]): { readonly request: ReceivedSpan; readonly attempts: ReceivedSpan[] } {
  const request = spans.find(({ kind }) => kind === 2)!
  const attempts = spans.filter(({ parentSpanId }) => parentSpanId === request.spanId)
  return { request, attempts: attempts.toSorted((a, b) => (a.startTimeUnixNano < b.startTimeUnixNano ? -1 : 1)) }
}

/** A streamed request that fails over: its trace must tell the whole story. */
async function failedOver(collector: Collector): Promise<void> {
  const service = await startService(collector, { sample_rate: 0 })
  service.providers[0]!.script([{ do: 'status', status: 503 }])
  service.providers[1]!.script([{ do: 'answer', words: 8, tokenDelayMs: 20 }])
  const answer = await service.chat({ stream: true }, { traceparent })
  const requestId = answer.headers.get('x-request-id')
  expect(await answer.text()).toContain('[DONE]')
  const sent = [headerOf(service, 0), headerOf(service, 1)]
  // Exports what waits.
  await service.stop()
  await expect.poll(() => collector.spans().length, { timeout: 5_000 }).toBe(3)

  const { request, attempts } = treeOf(collector.spans())
  expect(request).toMatchObject({
    traceId: callerTrace,
    parentSpanId: callerSpan,
    name: 'chat svc-router/frontier',
    attributes: {
      'gen_ai.operation.name': 'chat',
      'gen_ai.provider.name': 'svc-router',
      'gen_ai.request.model': 'svc-router/frontier',
      'gen_ai.request.stream': true,
      'gen_ai.usage.input_tokens': expect.any(Number),
      'gen_ai.usage.output_tokens': expect.any(Number),
      'gen_ai.response.time_to_first_chunk': expect.any(Number),
      'svc_router.request.id': requestId,
      'svc_router.attempts': 2,
      'svc_router.charged_units': 1,
    },
  })
  expect(request.status.code ?? 0).toBe(0)
  expect(attempts).toMatchObject([
    {
      traceId: callerTrace,
      kind: 3,
      name: 'chat model-of-alpha',
      status: { code: 2 },
      attributes: {
        'gen_ai.provider.name': 'custom',
        'gen_ai.request.model': 'model-of-alpha',
        'error.type': 'server_error',
        'http.response.status_code': 503,
        'svc_router.backend': 'alpha',
      },
    },
    { traceId: callerTrace, kind: 3, name: 'chat model-of-beta', attributes: { 'svc_router.backend': 'beta' } },
  ])
  expect(attempts[1]!.attributes).not.toHaveProperty('error.type')
  // Each provider received the ID of its own attempt.
  expect(sent).toEqual(attempts.map(({ spanId }) => `00-${callerTrace}-${spanId}-00`))
  const [first, second] = attempts.map(({ startTimeUnixNano, endTimeUnixNano }) => [
    BigInt(startTimeUnixNano),
    BigInt(endTimeUnixNano),
  ])
  expect(first![1]!).toBeLessThanOrEqual(second![0]!)
  // The answering attempt lasts until the end of its stream.
  expect(second![1]! - second![0]!).toBeGreaterThan(100_000_000n)
  expect(BigInt(request.startTimeUnixNano)).toBeLessThanOrEqual(first![0]!)
}

test('the trace of a failed-over stream continues the caller’s and has a span for each attempt', async () => {
  const collector = await startFakeCollector()
  await failedOver(collector)
  await collector.stop()
})

describe.runIf(hasCollector())('with a real OpenTelemetry collector', () => {
  test('the trace of a failed-over stream is read back', async () => {
    const collector = await startRealCollector()
    try {
      await failedOver(collector)
    } finally {
      await collector.stop()
    }
  })
})

test('only the sampled share of good requests is exported, whatever the caller’s flag says, unless callers are trusted', async () => {
  for (const [tracing, flags, expected] of [
    [{ sample_rate: 0 }, '01', 0],
    [{ sample_rate: 1 }, '00', 2],
    [{ sample_rate: 0, trust_callers: true }, '01', 2],
    [{ sample_rate: 1, trust_callers: true }, '00', 0],
  ] as const) {
    const collector = await startFakeCollector()
    const service = await startService(collector, tracing)
    const answer = await service.chat({}, { traceparent: `00-${callerTrace}-${callerSpan}-${flags}` })
    await answer.text()
    expect(headerOf(service, 0)).toMatch(new RegExp(`^00-${callerTrace}-[0-9a-f]{16}-0${expected === 0 ? 0 : 1}$`))
    await service.stop()
    expect(collector.spans().length, JSON.stringify(tracing)).toBe(expected)
    await collector.stop()
  }
})

test('without tracing, nothing of a caller’s trace reaches a provider', async () => {
  const service = await Service.start()
  await (await service.chat({}, { traceparent, tracestate: 'a=b' })).text()
  const { headers } = service.providers[0]!.captured().at(-1)!
  expect([headers['traceparent'], headers['tracestate']]).toEqual([undefined, undefined])
  await service.stop()
})

test('no prompt, answer, key, account, or name that an account chose is in a trace', async () => {
  const collector = await startFakeCollector()
  const service = await startService(collector, { sample_rate: 1 })
  await service.connectOwn('a-credential-of-mine')
  await sleep(600)
  service.providers[0]!.script([{ do: 'answer', text: 'magnolia' }])
  const messages = [{ role: 'user', content: 'heliotrope' }]
  const answer = await service.chat({ messages, user: 'heliotrope' }, { traceparent, tracestate: 'heliotrope=1' })
  expect(await answer.text()).toContain('magnolia')
  const { account, key } = service
  await service.stop()
  expect(collector.spans().map(({ attributes }) => attributes['svc_router.backend'])).toEqual([undefined, 'account'])
  const text = collector.text()
  for (const word of ['heliotrope', 'magnolia', account.id, key, 'a-credential', 'tester', '"own"', ' own'])
    expect(text.includes(word), word).toBe(false)
  await collector.stop()
})

test('requests rejected before admission have no span', async () => {
  const collector = await startFakeCollector()
  const service = await startService(collector, { sample_rate: 1 })
  await service.chat({ model: 'nothing' }, { traceparent })
  await service.chat({}, { authorization: 'Bearer sk_svc_wrong', traceparent })
  await service.stop()
  expect(collector.requests()).toBe(0)
  await collector.stop()
})

test('a collector that is gone or refuses costs no request, and is logged once', async () => {
  const refusing = await startFakeCollector(400)
  const gone = await startFakeCollector()
  await gone.stop()
  for (const [collector, reason] of [
    [refusing, 'status 400'],
    // The library tries again for longer than a shutdown waits.
    [gone, 'timeout'],
  ] as const) {
    const service = await startService(collector, { sample_rate: 1 })
    for (let count = 0; count < 3; count++) expect((await service.chat()).status).toBe(200)
    const startMs = performance.now()
    await service.stop()
    expect(performance.now() - startMs).toBeLessThan(6_000)
    const failing = service.events.filter(({ event }) => event === 'tracing_failing')
    expect(failing, reason).toEqual([{ event: 'tracing_failing', reason }])
  }
  await refusing.stop()
})

test('a fusion has a span for each call', async () => {
  const collector = await startFakeCollector()
  const service = await startService(collector, { sample_rate: 1 })
  const answer = await service.chat({ model: 'svc-router/fusion', messages: [{ role: 'user', content: 'Why is it?' }] })
  expect(answer.status).toBe(200)
  await answer.text()
  await service.stop()
  const { request, attempts } = treeOf(collector.spans())
  expect(request.name).toBe('chat svc-router/fusion')
  expect(attempts.length).toBeGreaterThanOrEqual(3)
  expect(new Set(attempts.map(({ attributes }) => attributes['svc_router.backend'])).size).toBeGreaterThan(1)
  await collector.stop()
})
