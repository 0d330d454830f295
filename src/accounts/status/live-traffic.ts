import { failedBackends, type RequestOpening, type RequestOutcome, resultOf } from '../../domain/requests.ts'
import type { Clock } from '../../runtime/clock.ts'

const slotMs = 5_000
/** Rates cover the last minute, without the current slot, which is not over. */
const rateSlots = 12
/** Errors and times cover the last five minutes. */
const slots = 60
/** Latest times to first content for each backend; older ones do not count under load. */
const maxTimes = 512
/** How many backends are counted: operators can declare others while the service runs. */
const maxBackends = 1_000

/** What happened on this node just now. */
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

/** The figures of all requests, and of the calls to each configured backend. */
export interface Traffic {
  /** All requests. */
  total(): TrafficFigures
  /** The calls to one configured backend. */
  backend(id: string): TrafficFigures
}

/** What one worker counted, for another one: times are ages. */
export interface TrafficRecord {
  readonly all: WindowRecord
  readonly byBackend: Readonly<Record<string, WindowRecord>>
}

/** The figures of all workers of a node. */
export function sumTraffic(records: readonly TrafficRecord[]): Traffic {
  return {
    total: () => figuresOf(records.map(({ all }) => all)),
    backend: (id) => figuresOf(records.flatMap(({ byBackend }) => byBackend[id] ?? [])),
  }
}

/** Rates, errors, and times of requests in this process, in memory and bounded, for operators (contract 24.15). */
export class LiveTraffic implements Traffic {
  readonly #clock: Clock
  readonly #all = new Window()
  readonly #names: () => readonly string[]
  readonly #byBackend = new Map<string, Window>()

  /** `backends` are the configured ones; those that accounts connected are counted in the total only. */
  constructor(clock: Clock, backends: () => readonly string[]) {
    this.#clock = clock
    this.#names = backends
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
    const window = this.#windowOf(answering.backend)
    if (window === undefined) return
    // A broken answer was counted as failed above.
    if (!failed.includes(answering.backend)) this.#count(answering.backend, nowMs, false)
    const slot = window.slot(nowMs)
    slot.inputTokens += usage?.inputTokens ?? 0
    slot.outputTokens += usage?.outputTokens ?? 0
    if (stream) window.time(nowMs, answering.ms)
  }

  total(): TrafficFigures {
    return figuresOf([this.#all.record(this.#clock.monotonicMs())])
  }

  backend(id: string): TrafficFigures {
    return figuresOf([(this.#byBackend.get(id) ?? new Window()).record(this.#clock.monotonicMs())])
  }

  /** Everything that was counted, for the other workers of this node. */
  record(): TrafficRecord {
    const nowMs = this.#clock.monotonicMs()
    const byBackend = [...this.#byBackend].map(([id, window]) => [id, window.record(nowMs)] as const)
    return { all: this.#all.record(nowMs), byBackend: Object.fromEntries(byBackend) }
  }

  #windowOf(id: string): Window | undefined {
    const known = this.#byBackend.get(id)
    if (known !== undefined || this.#byBackend.size >= maxBackends || !this.#names().includes(id)) return known
    const window = new Window()
    this.#byBackend.set(id, window)
    return window
  }

  #count(id: string, nowMs: number, isFailed: boolean): void {
    const slot = this.#windowOf(id)?.slot(nowMs)
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

/** The counts of a slot that began `slotsAgo` slots before the current one. */
type SlotRecord = Omit<Slot, 'number'> & { readonly slotsAgo: number }

/** The slots of the last five minutes, and the times to first content in them, milliseconds. */
interface WindowRecord {
  readonly slots: readonly SlotRecord[]
  readonly times: readonly number[]
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

  record(nowMs: number): WindowRecord {
    const current = Math.floor(nowMs / slotMs)
    return {
      slots: this.#slots
        .map(({ number, ...counts }) => ({ ...counts, slotsAgo: current - number }))
        .filter(({ slotsAgo }) => slotsAgo < slots),
      times: this.#times.filter(({ atMs }) => atMs > nowMs - slots * slotMs).map(({ ms }) => ms),
    }
  }
}

function figuresOf(records: readonly WindowRecord[]): TrafficFigures {
  let [ended, failed] = [0, 0]
  const recent = { ended: 0, inputTokens: 0, outputTokens: 0 }
  for (const slot of records.flatMap((record) => record.slots)) {
    ended += slot.ended
    failed += slot.failed
    if (slot.slotsAgo === 0 || slot.slotsAgo > rateSlots) continue
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
    firstContentMs: percentiles(records.flatMap(({ times }) => times)),
  }
}

function percentiles(times: readonly number[]): TrafficFigures['firstContentMs'] {
  if (times.length === 0) return undefined
  const sorted = times.toSorted((a, b) => a - b)
  /** The nearest rank. */
  const at = (share: number): number => sorted[Math.ceil(share * sorted.length) - 1]!
  return { p50: at(0.5), p95: at(0.95), p99: at(0.99) }
}
