import { answerLimitMs, type ChannelEnd, ProcessReports } from '../runtime/process-reports.ts'

/** What one worker tells the others and their parent. `last_metrics`: its final figures, before it ends. */
const topics = { metrics: 'metrics', lastMetrics: 'last_metrics', traffic: 'traffic' } as const
type Gathered = 'metrics' | 'traffic'

/** A worker's link to its parent. */
export interface ParentLink {
  /** Answers the parent's questions. */
  answer(topic: Gathered, read: () => unknown): void
  /** The answers of all workers to a question, this one's included; undefined if the parent does not answer. */
  gather(topic: 'traffic'): Promise<readonly unknown[] | undefined>
  /** Hands over the final figures. */
  leave(metrics: unknown): Promise<void>
}

/** The link of this worker. `end` is `process`. */
export function linkToParent(end: ChannelEnd): ParentLink {
  const reports = new ProcessReports(end)
  return {
    answer: (topic, read) => reports.answer(topics[topic], read),
    // The parent waits for the others itself.
    gather: async (topic) =>
      (await reports.ask(topics[topic], { limitMs: 2 * answerLimitMs })) as unknown[] | undefined,
    leave: async (data) => void (await reports.ask(topics.lastMetrics, { data })),
  }
}

/** A worker as its parent sees it: a channel, until it ends. */
export interface WorkerEnd extends ChannelEnd {
  once(event: 'exit', listener: () => void): unknown
}

/** Asks all workers that run, and remembers the figures of those that ended. */
export class WorkerReports {
  readonly #workers = new Map<WorkerEnd, ProcessReports>()
  readonly #gathering = new Map<Gathered, Promise<ReadonlyMap<WorkerEnd, unknown>>>()
  /** Called when a worker has ended, with its final figures if it gave any. */
  onEnded: (worker: WorkerEnd, lastMetrics: unknown) => void = () => {}

  /** Adds a worker until it ends. */
  add(worker: WorkerEnd): void {
    const reports = new ProcessReports(worker)
    let lastMetrics: unknown
    reports.answer(topics.traffic, async () => [...(await this.gather('traffic')).values()])
    reports.answer(topics.lastMetrics, (data) => {
      lastMetrics = data
      return true
    })
    this.#workers.set(worker, reports)
    worker.once('exit', () => {
      this.#workers.delete(worker)
      this.onEnded(worker, lastMetrics)
    })
  }

  /** The answers of the workers that gave one in time. Simultaneous questions share the answers. */
  gather(topic: Gathered): Promise<ReadonlyMap<WorkerEnd, unknown>> {
    const known = this.#gathering.get(topic)
    if (known !== undefined) return known
    const gathering = this.#ask(topic).finally(() => this.#gathering.delete(topic))
    this.#gathering.set(topic, gathering)
    return gathering
  }

  async #ask(topic: Gathered): Promise<ReadonlyMap<WorkerEnd, unknown>> {
    const found = new Map<WorkerEnd, unknown>()
    const asked = [...this.#workers].map(async ([worker, reports]) => {
      const data = await reports.ask(topics[topic])
      if (data !== undefined && this.#workers.has(worker)) found.set(worker, data)
    })
    await Promise.all(asked)
    return found
  }
}
