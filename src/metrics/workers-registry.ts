import { type MetricObjectWithValues, type MetricValue, Registry } from '@prometheus-io/client'
import type { ServedMetrics } from './serve-metrics.ts'

/** The library's gauges whose largest value matters: it would show the mean. */
const largest = /^nodejs_eventloop_lag_/

/** The metrics of one worker, as its registry gives them as JSON. */
export type MetricsSnapshot = readonly MetricObjectWithValues<MetricValue<string>>[]

/**
 * The metrics of all workers of a node as one (contract 36.9). What a worker counted stays in the sums after it ended, so
 * that counters never go back; of a worker that does not answer, the last known counts are used, and no gauges.
 */
export class WorkersRegistry<Worker> implements ServedMetrics {
  readonly contentType = Registry.PROMETHEUS_CONTENT_TYPE
  readonly #gather: () => Promise<ReadonlyMap<Worker, MetricsSnapshot>>
  /** The last counts of each worker that runs. */
  readonly #last = new Map<Worker, MetricsSnapshot>()
  /** The counts of all workers that ended. */
  #ended: MetricsSnapshot = []

  constructor(gather: () => Promise<ReadonlyMap<Worker, MetricsSnapshot>>) {
    this.#gather = gather
  }

  /** The figures in the text format. */
  async metrics(): Promise<string> {
    const current = await this.read()
    const silent = [...this.#last].filter(([worker]) => !current.has(worker)).map(([, counts]) => counts)
    return sum([...current.values(), ...silent, this.#ended]).metrics()
  }

  /** Asks the workers, so that little is lost if one of them is killed. */
  async read(): Promise<ReadonlyMap<Worker, MetricsSnapshot>> {
    const current = await this.#gather()
    for (const [worker, snapshot] of current) this.#last.set(worker, countsOf(snapshot))
    return current
  }

  /** Adds a worker's last counts to those of all that ended. */
  async ended(worker: Worker, final: MetricsSnapshot | undefined): Promise<void> {
    const counts = final === undefined ? this.#last.get(worker) : countsOf(final)
    this.#last.delete(worker)
    if (counts === undefined) return
    // In one step, so that a reading in between sees them once.
    this.#ended = [...this.#ended, ...counts]
    const all = this.#ended
    const summed = await sum([all]).getMetricsAsJSON()
    if (this.#ended === all) this.#ended = summed
  }
}

function sum(snapshots: readonly MetricsSnapshot[]): Registry {
  return Registry.aggregate(
    snapshots.map((metrics) =>
      metrics.map((metric) => (largest.test(metric.name) ? { ...metric, aggregator: 'max' } : metric)),
    ),
  )
}

function countsOf(snapshot: MetricsSnapshot): MetricsSnapshot {
  return snapshot.filter(({ type }) => type === 'counter' || type === 'histogram')
}
