import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openMetrics } from '../../src/app/metrics.ts'
import { createRuntime } from '../../src/app/runtime.ts'
import { systemClock } from '../../src/runtime/clock.ts'
import { systemRandom } from '../../src/runtime/random.ts'
import { Service } from '../service.ts'
import { readSeries } from './series.ts'

let service: Service

beforeAll(async () => {
  service = await Service.start({ settings: { metrics_listen: { port: 0 } } })
})
afterAll(async () => {
  await service.stop()
})

const origin = (): string => `http://127.0.0.1:${service.config.metricsListen!.port}`
const scrape = async (): Promise<string> => (await fetch(`${origin()}/metrics`)).text()

test('a running service reports what its clients experienced', async () => {
  service.providers[0]!.script([
    { do: 'status', status: 500 },
    { do: 'status', status: 500 },
  ])
  const stream = await service.chat({ stream: true })
  expect(stream.headers.get('x-svc-router-retry-count')).toBe('1')
  await stream.text()
  const { status } = await service.chat({}, { authorization: 'Bearer sk_svc_wrong' })
  expect(status).toBe(401)
  for (const name of ['svc_router_open_requests{stream="true"}', 'svc_router_queue_length{queue="ledger"}'])
    await expect.poll(async () => readSeries(await scrape()).get(name)).toBe(0)
  const series = readSeries(await scrape())
  const frontier = 'profile="svc-router/frontier"'
  expect(series.get(`svc_router_admissions_total{${frontier}}`)).toBe(1)
  expect(series.get(`svc_router_requests_total{${frontier},result="answered"}`)).toBe(1)
  expect(series.get(`svc_router_failovers_total{${frontier}}`)).toBe(1)
  expect(series.get('svc_router_attempts_total{backend="alpha",outcome="server_error"}')).toBe(2)
  expect(series.get('svc_router_attempts_total{backend="beta",outcome="answered"}')).toBe(1)
  expect(series.get('svc_router_backend_first_content_seconds_count{backend="beta"}')).toBe(1)
  expect(series.get('svc_router_tokens_total{backend="beta",kind="output"}')).toBeGreaterThan(0)
  expect(series.get('svc_router_refusals_total{code="key_malformed"}')).toBe(1)
  expect(series.get('svc_router_backend_state{backend="alpha",state="closed"}')).toBe(1)
  expect(series.get('svc_router_ready')).toBe(1)
  expect(series.get('svc_router_delivered_uncounted_total')).toBe(0)
  expect(series.get('svc_router_share_limit{resource="requests"}')).toBe(4000)
  expect(series.get('svc_router_store_seconds_count{operation="poll"}')).toBeGreaterThan(0)
  expect(series.get('nodejs_eventloop_lag_p99_seconds')).toBeGreaterThan(0)
})

test('no key, account, prompt, or answer is in the metrics', async () => {
  await (await service.chat({ messages: [{ role: 'user', content: 'a word like heliotrope' }] })).text()
  await (await service.chat({ model: 'heliotrope-model' })).text()
  await fetch(`${service.baseUrl}/heliotrope`, { headers: { 'user-agent': 'heliotrope/1' } })
  const text = await scrape()
  for (const word of ['heliotrope', service.account.id, service.key, service.key.slice(7, 20), 'tester'])
    expect(text.includes(word), word).toBe(false)
})

test('the listener serves /metrics and nothing else, and the API does not serve /metrics', async () => {
  const answers = await Promise.all([
    fetch(`${origin()}/metrics?name=x`),
    fetch(`${origin()}/`),
    fetch(`${origin()}/v1/models`),
    fetch(`${origin()}/metrics`, { method: 'POST', body: 'x' }),
    fetch(`${service.origin}/metrics`),
  ])
  expect(answers.map(({ status }) => status)).toEqual([200, 404, 404, 405, 404])
  expect(answers[0].headers.get('content-type')).toBe('text/plain; version=0.0.4; charset=utf-8')
  expect(answers[0].headers.get('access-control-allow-origin')).toBeNull()
})

test('one address cannot take every connection of the listener', async () => {
  const { port } = service.config.metricsListen!
  const greedy = Array.from({ length: 80 }, () => connect({ port, host: '127.0.0.1', localAddress: '127.0.0.2' }))
  for (const socket of greedy) socket.on('error', () => {})
  try {
    await Promise.all(greedy.map((socket) => once(socket, 'connect')))
    expect(await scrape()).toContain('svc_router_')
  } finally {
    for (const socket of greedy) socket.destroy()
  }
})

test('a port that is in use is reported by the name of its setting', async () => {
  const { port } = service.config.metricsListen!
  const runtime = createRuntime(service.config, { clock: systemClock(), random: systemRandom(), log: () => {} })
  await expect(openMetrics(runtime)).rejects.toMatchObject({
    message: `metrics cannot be served on port ${port} of 127.0.0.1 (EADDRINUSE)`,
    fix: 'choose another port or host in "metrics_listen"',
  })
})

test('the libraries of metrics and traces are imported only in their folders, which are loaded only on demand', () => {
  const source = join(import.meta.dirname, '..', '..', 'src')
  const files = readdirSync(source, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.ts'))
  const atStart =
    /^import (?!type )[^'"]*'(?:@prometheus-io\/client|@opentelemetry\/[^']+|(?:\.\.\/)+(?:metrics|tracing)\/[^']+)'/m
  const importing = files.filter((file) => atStart.test(readFileSync(join(source, file), 'utf8')))
  expect(importing.length).toBeGreaterThan(1)
  expect(importing.filter((file) => !/^(?:metrics|tracing)\//.test(file))).toEqual([])
})
