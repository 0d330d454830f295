import { dayMs } from '../runtime/durations.ts'
/** What is counted: the requests of a profile, or the attempts at a backend. */
export type UptimeKind = 'profile' | 'backend'

/** The results of a profile or backend on one UTC day. */
export interface UptimeCount {
  /** `2026-11-21` */
  readonly day: string
  readonly kind: UptimeKind
  readonly name: string
  readonly answered: number
  readonly failed: number
}

/** Days on the status page, including today (contract 18.3). */
export const uptimeDays = 90
/** Maximum number of names between two reads; there are far fewer profiles and backends. */
const maxCounts = 2_000

/** The UTC day of a time. */
export function dayOf(timeMs: number): string {
  return new Date(timeMs).toISOString().slice(0, 10)
}

/** The days on the status page, oldest first. */
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

/** Counts results in memory until they are stored. */
export class UptimeTally {
  #counts = new Map<string, Counting>()
  /** The counts of the current day by name, because every request needs two of them. */
  #ofDay: Readonly<Record<UptimeKind, Map<string, Counting>>> = { profile: new Map(), backend: new Map() }
  #dayNumber = Number.NaN

  /** Counts one result. */
  note(timeMs: number, kind: UptimeKind, name: string, isAnswered: boolean): void {
    const dayNumber = Math.floor(timeMs / dayMs)
    if (dayNumber !== this.#dayNumber) this.#beginDay(dayNumber)
    const count = this.#ofDay[kind].get(name) ?? this.#countOf(timeMs, kind, name)
    if (count === undefined) return
    if (isAnswered) count.answered += 1
    else count.failed += 1
  }

  /** The counts, without resetting them. */
  list(): readonly UptimeCount[] {
    return [...this.#counts.values()]
  }

  /** Returns the counts and resets them. */
  take(): readonly UptimeCount[] {
    const taken = this.list()
    this.#counts = new Map()
    this.#beginDay(this.#dayNumber)
    return taken
  }

  /** Adds counts back that could not be stored. */
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

  /** Undefined if there are too many names already. */
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

/** Adds up the counts of the same day and name. */
export function addUp(counts: Iterable<UptimeCount>): readonly UptimeCount[] {
  const tally = new UptimeTally()
  for (const count of counts) tally.putBack([count])
  return tally.list()
}
