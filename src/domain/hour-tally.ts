import type { HourCount } from './backend-state.ts'

const slotMs = 5 * 60_000
/** Number of complete slots that are counted, in addition to the current one. */
const slots = 12

interface Slot {
  readonly number: number
  answered: number
  failed: number
  timed: number
  sumMs: number
}

/**
 * Counts results within the last hour for a fixed set of names, in memory. Results are dropped in slots of five
 * minutes.
 */
export class HourTally {
  readonly #byName: ReadonlyMap<string, Slot[]>
  readonly #lastMs = new Map<string, number>()

  constructor(names: readonly string[]) {
    this.#byName = new Map(names.map((name) => [name, []]))
  }

  /** Counts one result; unknown names are ignored. `ms` only if it measures this name alone. */
  note(timeMs: number, name: string, isAnswered: boolean, ms?: number): void {
    const kept = this.#byName.get(name)
    if (kept === undefined) return
    this.#lastMs.set(name, timeMs)
    const number = Math.floor(timeMs / slotMs)
    let slot = kept.at(-1)
    if (slot?.number !== number) {
      slot = { number, answered: 0, failed: 0, timed: 0, sumMs: 0 }
      kept.push(slot)
      if (kept.length > slots + 1) kept.shift()
    }
    if (isAnswered) slot.answered += 1
    else slot.failed += 1
    if (ms === undefined) return
    slot.timed += 1
    slot.sumMs += ms
  }

  /** When the last result was noted; undefined if none was. */
  lastMs(name: string): number | undefined {
    return this.#lastMs.get(name)
  }

  read(nowMs: number, name: string): HourCount {
    const oldest = Math.floor(nowMs / slotMs) - slots
    let [answered, failed, timed, sumMs] = [0, 0, 0, 0]
    for (const slot of this.#byName.get(name) ?? []) {
      if (slot.number < oldest) continue
      answered += slot.answered
      failed += slot.failed
      timed += slot.timed
      sumMs += slot.sumMs
    }
    return { answered, failed, timed, sumMs }
  }
}
