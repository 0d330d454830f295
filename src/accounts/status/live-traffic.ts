import { failedBackends, type RequestOpening, type RequestOutcome, resultOf } from '../../domain/requests.ts'
import type { Clock } from '../../runtime/clock.ts'

const slotMs = 5_000
/** Rates cover the last minute, without the current slot, which is not over. */
const rateSlots = 12
/** Errors and times cover the last five minutes. */
const slots = 60
/** Latest times to first content for each backend; older ones do not count under load. */
const maxTimes = 512

/** What happened on this server just now. */
export interface TrafficFigures {
  /** Requests that ended, or calls that a backend took, per second. */
  readonly perSecond: number
  readonly ended: number
  /** The share that failed through no fault of the caller; undefined if nothing ended. */
  readonly failedShare: number | undefined
  readonly inputTokensPerSecond: number
  readonly outputTokensPerSecond: number
  /** Times to the first content of streams, milliseconds; undefined if there were none. */
  readonly firstContentMs: { readonly p50: number; readonly p95: number; readonly p99: number } | undefined
}

/** Rates, errors, and times of requests in this process, in memory and bounded, for operators (contract 24.15). */
export class LiveTraffic {
  readonly #clock: Clock
  readonly #all = new Window()
  readonly #byBackend: ReadonlyMap<string, Window>

  /** `backends` are the configured ones; those that accounts connected are counted in the total only. */
  constructor(clock: Clock, backends: readonly string[]) {
    this.#clock = clock
    this.#byBackend = new Map(backends.map((id) => [id, new Window()]))
  }

  /** Counts a request that ended. */
  ended({ stream }: RequestOpening, outcome: RequestOutcome): void {
    const nowMs = this.#clock.monotonicMs()
    const { attempts, usage, firstContentMs, fusions } = outcome
    const all = this.#all.slot(nowMs)
    all.ended += 1
    if (resultOf(outcome) === 'failed') all.failed += 1
    if (usage !== undefined) {
      all.inputTokens += usage.inputTokens
      all.outputTokens += usage.outputTokens
    }
    if (stream && firstContentMs !== undefined) this.#all.time(nowMs, firstContentMs)
    const failed = failedBackends(outcome) ?? []
    for (const id of failed) this.#count(id, nowMs, true)
    const answering = attempts.at(-1)
    if (answering?.outcome !== 'answered' || fusions !== undefined) return
    const window = this.#byBackend.get(answering.backend)
    if (window === undefined) return
    // A broken answer was counted as failed above.
    if (!failed.includes(answering.backend)) this.#count(answering.backend, nowMs, false)
    const slot = window.slot(nowMs)
    slot.inputTokens += usage?.inputTokens ?? 0
    slot.outputTokens += usage?.outputTokens ?? 0
    if (stream) window.time(nowMs, answering.ms)
  }

  /** All requests. */
  total(): TrafficFigures {
    return this.#all.read(this.#clock.monotonicMs())
  }

  /** The calls to one configured backend. */
  backend(id: string): TrafficFigures {
    return (this.#byBackend.get(id) ?? new Window()).read(this.#clock.monotonicMs())
  }

  #count(id: string, nowMs: number, isFailed: boolean): void {
    const slot = this.#byBackend.get(id)?.slot(nowMs)
    if (slot === undefined) return
    slot.ended += 1
    if (isFailed) slot.failed += 1
  }
}

interface Slot {
  readonly number: number
  ended: number
  failed: number
  inputTokens: number
  outputTokens: number
}

/** Counts of the last five minutes in slots, and the latest times. */
class Window {
  readonly #slots: Slot[] = []
  readonly #times: { readonly atMs: number; readonly ms: number }[] = []
  #nextTime = 0

  slot(nowMs: number): Slot {
    const number = Math.floor(nowMs / slotMs)
    const last = this.#slots.at(-1)
    if (last?.number === number) return last
    const slot = { number, ended: 0, failed: 0, inputTokens: 0, outputTokens: 0 }
    this.#slots.push(slot)
    if (this.#slots.length > slots + 1) this.#slots.shift()
    return slot
  }

  time(atMs: number, ms: number): void {
    this.#times[this.#nextTime] = { atMs, ms }
    this.#nextTime = (this.#nextTime + 1) % maxTimes
  }

  read(nowMs: number): TrafficFigures {
    const current = Math.floor(nowMs / slotMs)
    let [ended, failed] = [0, 0]
    const recent = { ended: 0, inputTokens: 0, outputTokens: 0 }
    for (const slot of this.#slots) {
      if (slot.number <= current - slots) continue
      ended += slot.ended
      failed += slot.failed
      if (slot.number === current || slot.number < current - rateSlots) continue
      recent.ended += slot.ended
      recent.inputTokens += slot.inputTokens
      recent.outputTokens += slot.outputTokens
    }
    const seconds = (rateSlots * slotMs) / 1000
    return {
      perSecond: recent.ended / seconds,
      ended,
      failedShare: ended === 0 ? undefined : failed / ended,
      inputTokensPerSecond: recent.inputTokens / seconds,
      outputTokensPerSecond: recent.outputTokens / seconds,
      firstContentMs: this.#percentiles(nowMs),
    }
  }

  #percentiles(nowMs: number): TrafficFigures['firstContentMs'] {
    const times = this.#times.filter(({ atMs }) => atMs > nowMs - slots * slotMs).map(({ ms }) => ms)
    if (times.length === 0) return undefined
    const sorted = times.toSorted((a, b) => a - b)
    /** The nearest rank. */
    const at = (share: number): number => sorted[Math.ceil(share * sorted.length) - 1]!
    return { p50: at(0.5), p95: at(0.95), p99: at(0.99) }
  }
}
