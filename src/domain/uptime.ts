/** What is counted: a profile's requests, or a backend's attempts. */
export type UptimeKind = 'profile' | 'backend'

/** How one of them did on one day, UTC. */
export interface UptimeCount {
  /** `2026-11-21` */
  readonly day: string
  readonly kind: UptimeKind
  readonly name: string
  readonly answered: number
  readonly failed: number
}

/** Days that are shown, today among them (contract 18.3). */
export const uptimeDays = 90
const dayMs = 86_400_000
/** Names counted between two takes; there are far fewer profiles and backends. */
const maxCounts = 2_000

/** The day of a moment, in UTC. */
export function dayOf(timeMs: number): string {
  return new Date(timeMs).toISOString().slice(0, 10)
}

/** The days that are shown, oldest first. */
export function shownDays(nowMs: number): readonly string[] {
  return Array.from({ length: uptimeDays }, (_, index) => dayOf(nowMs - (uptimeDays - 1 - index) * dayMs))
}

interface Counting {
  readonly day: string
  readonly kind: UptimeKind
  readonly name: string
  answered: number
  failed: number
}

/** Counts in memory what happened since it was last taken. */
export class UptimeTally {
  #counts = new Map<string, Counting>()
  /** Those of the day that was counted last, by name: every request asks for two of them. */
  #ofDay: Readonly<Record<UptimeKind, Map<string, Counting>>> = { profile: new Map(), backend: new Map() }
  #dayNumber = Number.NaN

  /** Counts one. */
  note(timeMs: number, kind: UptimeKind, name: string, isAnswered: boolean): void {
    const dayNumber = Math.floor(timeMs / dayMs)
    if (dayNumber !== this.#dayNumber) this.#beginDay(dayNumber)
    const count = this.#ofDay[kind].get(name) ?? this.#countOf(timeMs, kind, name)
    if (count === undefined) return
    if (isAnswered) count.answered += 1
    else count.failed += 1
  }

  /** What is counted, without taking it. */
  list(): readonly UptimeCount[] {
    return [...this.#counts.values()]
  }

  /** Everything counted; from here on it counts anew. */
  take(): readonly UptimeCount[] {
    const taken = this.list()
    this.#counts = new Map()
    this.#beginDay(this.#dayNumber)
    return taken
  }

  /** Puts back what could not be kept. */
  putBack(counts: readonly UptimeCount[]): void {
    for (const { day, kind, name, answered, failed } of counts) {
      const key = `${day} ${kind} ${name}`
      const known = this.#counts.get(key)
      if (known === undefined) this.#counts.set(key, { day, kind, name, answered, failed })
      else {
        known.answered += answered
        known.failed += failed
      }
    }
  }

  #beginDay(dayNumber: number): void {
    this.#dayNumber = dayNumber
    this.#ofDay = { profile: new Map(), backend: new Map() }
  }

  /** Undefined where there are too many names already. */
  #countOf(timeMs: number, kind: UptimeKind, name: string): Counting | undefined {
    const day = dayOf(timeMs)
    const key = `${day} ${kind} ${name}`
    let count = this.#counts.get(key)
    if (count === undefined) {
      if (this.#counts.size >= maxCounts) return undefined
      count = { day, kind, name, answered: 0, failed: 0 }
      this.#counts.set(key, count)
    }
    this.#ofDay[kind].set(name, count)
    return count
  }
}

/** The same counts with those of one day and name added up. */
export function addUp(counts: Iterable<UptimeCount>): readonly UptimeCount[] {
  const tally = new UptimeTally()
  for (const count of counts) tally.putBack([count])
  return tally.list()
}
