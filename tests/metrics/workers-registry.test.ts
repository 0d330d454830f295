import { expect, test } from 'vitest'
import { ServiceMetrics } from '../../src/metrics/service-metrics.ts'
import { type MetricsSnapshot, WorkersRegistry } from '../../src/metrics/workers-registry.ts'
import { requestOpening as opening } from '../request-opening.ts'
import { healthySources } from './healthy-sources.ts'

/** Workers that answer, and those that do not. */
class TestWorkers {
  readonly running = new Map<string, ServiceMetrics>()
  readonly silent = new Set<string>()
  readonly registry = new WorkersRegistry<string>(() => this.#gather())

  start(name: string): ServiceMetrics {
    const metrics = new ServiceMetrics({ version: '1.2.3', profiles: [opening.profile], backends: ['alpha'] })
    metrics.watch(healthySources)
    this.running.set(name, metrics)
    return metrics
  }

  async end(name: string, { isKilled }: { readonly isKilled: boolean }): Promise<void> {
    const final = isKilled ? undefined : await this.snapshot(name)
    this.running.delete(name)
    await this.registry.ended(name, final)
  }

  async snapshot(name: string): Promise<MetricsSnapshot> {
    // As it arrives from another process.
    return JSON.parse(JSON.stringify(await this.running.get(name)!.registry.getMetricsAsJSON())) as MetricsSnapshot
  }

  async #gather(): Promise<ReadonlyMap<string, MetricsSnapshot>> {
    const names = [...this.running.keys()].filter((name) => !this.silent.has(name))
    return new Map(await Promise.all(names.map(async (name) => [name, await this.snapshot(name)] as const)))
  }

  /** The value of one series. */
  async value(series: string): Promise<number | undefined> {
    const text = await this.registry.metrics()
    const line = text.split('\n').find((candidate) => candidate.startsWith(`${series} `))
    return line === undefined ? undefined : Number(line.slice(series.length + 1))
  }
}

const admissions = `svc_router_admissions_total{profile="${opening.profile}"}`

function admit(metrics: ServiceMetrics, count: number): void {
  for (let number = 0; number < count; number++) metrics.admitted(opening)
}

test('the metrics of all workers are one set: counts and open requests are summed, states are not', async () => {
  const workers = new TestWorkers()
  admit(workers.start('a'), 2)
  const b = workers.start('b')
  admit(b, 3)
  b.stored('admit', 4)
  expect(await workers.value(admissions)).toBe(5)
  expect(await workers.value('svc_router_open_requests{stream="true"}')).toBe(5)
  expect(await workers.value('svc_router_store_seconds_count{operation="admit"}')).toBe(1)
  expect(await workers.value('svc_router_store_seconds_bucket{le="0.005",operation="admit"}')).toBe(1)
  expect(await workers.value('svc_router_ready')).toBe(1)
  expect(await workers.value('svc_router_settings_applied')).toBe(1)
  expect(await workers.value('svc_router_build_info{version="1.2.3"}')).toBe(1)
  expect(await workers.value('svc_router_backend_state{backend="alpha",state="closed"}')).toBe(1)
  expect(await workers.value('svc_router_workers')).toBe(2)
  // One worker that cannot serve makes the node not ready.
  b.watch({ ...healthySources, ready: () => false, areSettingsApplied: () => false, stateOf: () => 'open' })
  expect(await workers.value('svc_router_ready')).toBe(0)
  expect(await workers.value('svc_router_settings_applied')).toBe(0)
  expect(await workers.value('svc_router_backend_state{backend="alpha",state="open"}')).toBe(1)
})

test('counters do not go back when workers end or are killed, and others replace them', async () => {
  const workers = new TestWorkers()
  admit(workers.start('a'), 2)
  const b = workers.start('b')
  admit(b, 3)
  await workers.registry.read()
  // Counted after the last reading: lost with a killed worker.
  admit(b, 1)
  await Promise.all([workers.end('a', { isKilled: false }), workers.end('b', { isKilled: true })])
  expect(await workers.value(admissions)).toBe(5)
  expect(await workers.value('svc_router_open_requests{stream="true"}')).toBeUndefined()
  admit(workers.start('c'), 10)
  expect(await workers.value(admissions)).toBe(15)
  await workers.end('c', { isKilled: false })
  expect(await workers.value(admissions)).toBe(15)
})

test('a worker that does not answer keeps its last counts in the sums, and is not counted as a worker', async () => {
  const workers = new TestWorkers()
  admit(workers.start('a'), 2)
  const b = workers.start('b')
  admit(b, 3)
  await workers.registry.read()
  workers.silent.add('b')
  expect(await workers.value(admissions)).toBe(5)
  expect(await workers.value('svc_router_open_requests{stream="true"}')).toBe(2)
  expect(await workers.value('svc_router_workers')).toBe(1)
  admit(b, 1)
  workers.silent.delete('b')
  expect(await workers.value(admissions)).toBe(6)
})
