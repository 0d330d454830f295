import type { HourCount } from './backend-state.ts'

const slotMs = 5 * 60_000
/** Number of complete slots that are counted, in addition to the current one. */
const slots = 12
/** How many names are counted: operators can declare others while the service runs. */
const maxNames = 1_000

interface Slot {
  readonly number: number
  answered: number
  failed: number
  timed: number
  sumMs: number
}

/**
 * Counts results within the last hour for a bounded set of names, in memory. Results are dropped in slots of five
 * minutes.
 */
export class HourTally {
  readonly #names: () => readonly string[]
  readonly #byName = new Map<string, Slot[]>()
  readonly #lastMs = new Map<string, number>()

  constructor(names: () => readonly string[]) {
    this.#names = names
  }

  /** Counts one result; unknown names are ignored. `ms` only if it measures this name alone. */
  note(timeMs: number, name: string, isAnswered: boolean, ms?: number): void {
    const kept = this.#slotsOf(name)
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

  #slotsOf(name: string): Slot[] | undefined {
    const known = this.#byName.get(name)
    if (known !== undefined || this.#byName.size >= maxNames || !this.#names().includes(name)) return known
    const kept: Slot[] = []
    this.#byName.set(name, kept)
    return kept
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
