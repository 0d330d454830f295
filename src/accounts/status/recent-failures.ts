import { errorCatalog } from '../../domain/errors.ts'
import type { ServiceEvent } from '../../domain/events.ts'
import { failingParts, type FailingPart } from '../../domain/node-report.ts'
import { BoundedMap } from '../../runtime/bounded-map.ts'
import type { Clock } from '../../runtime/clock.ts'

const slotMs = 60_000
/** Minutes covered by the error rate, including the current one. */
const slots = 5
/** How long a component's failure counts as recent. */
const recentMs = 10 * 60_000
/** Maximum number of backends remembered as down. */
const maxDown = 10_000

/** A component that failed within the last ten minutes. */
export interface RecentFailure {
  readonly part: FailingPart
  readonly atMs: number
  readonly reason: string
}

/** Requests of the last five minutes: answered ones, and those that failed through no fault of their callers. */
interface RecentRequests {
  readonly answered: number
  readonly failed: number
}

/** Recent failures in this process, derived from logged events. In memory, and bounded. */
export class RecentFailures {
  readonly #clock: Clock
  readonly #slots: { readonly number: number; answered: number; failed: number }[] = []
  readonly #failures = new Map<FailingPart, { readonly monotonicMs: number; readonly failure: RecentFailure }>()
  readonly #down = new BoundedMap<string, string>(maxDown)

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Records a logged event. */
  note(event: ServiceEvent): void {
    if (event.event === 'request') return this.#noteRequest(event.outcome)
    if (event.event === 'backend_down') this.#down.set(`${event.backend} ${event.contentKind}`, event.backend)
    else if (event.event === 'backend_back') this.#down.delete(`${event.backend} ${event.contentKind}`)
    const part = failingParts.find((name) => name === event.event)
    if (part === undefined) return
    const reason = 'reason' in event ? event.reason : ''
    const failure = { part, atMs: this.#clock.nowMs(), reason }
    this.#failures.set(part, { monotonicMs: this.#clock.monotonicMs(), failure })
  }

  requests(): RecentRequests {
    const oldest = Math.floor(this.#clock.monotonicMs() / slotMs) - slots + 1
    let [answered, failed] = [0, 0]
    for (const slot of this.#slots) {
      if (slot.number < oldest) continue
      answered += slot.answered
      failed += slot.failed
    }
    return { answered, failed }
  }

  /** Recently failed components, the latest first. */
  failures(): readonly RecentFailure[] {
    const sinceMs = this.#clock.monotonicMs() - recentMs
    return [...this.#failures.values()]
      .filter(({ monotonicMs }) => monotonicMs >= sinceMs)
      .sort((a, b) => b.monotonicMs - a.monotonicMs)
      .map(({ failure }) => failure)
  }

  /** Backends with an open circuit breaker. */
  down(): readonly string[] {
    return [...new Set(this.#down.values())]
  }

  #noteRequest(outcome: Extract<ServiceEvent, { event: 'request' }>['outcome']): void {
    const isAnswered = outcome === 'answered'
    if (!isAnswered && (outcome === 'client_closed' || errorCatalog[outcome].status < 500)) return
    const number = Math.floor(this.#clock.monotonicMs() / slotMs)
    let slot = this.#slots.at(-1)
    if (slot?.number !== number) {
      slot = { number, answered: 0, failed: 0 }
      this.#slots.push(slot)
      if (this.#slots.length > slots) this.#slots.shift()
    }
    if (isAnswered) slot.answered += 1
    else slot.failed += 1
  }
}
