import type { Timer } from '../../../src/runtime/clock.ts'

/** Times are whole multiples of this fraction, a power of two, so that sums and differences of them are exact. */
const ticksPerMs = 1_024
/** Events of one schedule at most: more mean that something repeats without end. */
const maxEvents = 400_000

interface Due {
  readonly atMs: number
  /** Events of the same time run in the order in which they were set. */
  readonly number: number
  run: (() => void) | undefined
}

/** The only time of a simulated world: it jumps from event to event, and everything that happens is one of them. */
export class Timeline {
  /** Since the start, milliseconds. */
  nowMs = 0
  readonly #note: ((line: string) => void) | undefined
  /** A binary heap. */
  readonly #due: Due[] = []
  #count = 0
  #ran = 0

  /** `note` takes the trace of a replay. */
  constructor(note?: (line: string) => void) {
    this.#note = note
  }

  get isTraced(): boolean {
    return this.#note !== undefined
  }

  /** Events that neither ran nor were canceled. */
  get waiting(): number {
    return this.#due.filter(({ run }) => run !== undefined).length
  }

  /** Adds a line to the trace of a replay. */
  note(who: string, what: string): void {
    this.#note?.(`${this.nowMs.toFixed(1).padStart(10)} ${who.padEnd(10)} ${what}`)
  }

  after(delayMs: number, run: () => void): Timer {
    const ticks = Math.ceil(Math.max(0, delayMs) * ticksPerMs)
    const due: Due = { atMs: this.nowMs + ticks / ticksPerMs, number: this.#count++, run }
    this.#push(due)
    return {
      cancel: () => {
        due.run = undefined
      },
    }
  }

  /** Runs the events until there is none before `untilMs`, or until `isDone`. */
  async runUntil(untilMs: number, isDone: () => boolean = () => false): Promise<void> {
    await settled()
    while (!isDone()) {
      const next = this.#pop(untilMs)
      if (next === undefined) {
        this.nowMs = Math.max(this.nowMs, untilMs)
        return
      }
      if (++this.#ran > maxEvents) throw new Error(`more than ${maxEvents} events: something repeats without end`)
      this.nowMs = Math.max(this.nowMs, next.atMs)
      next.run!()
      await settled()
    }
  }

  #push(due: Due): void {
    const heap = this.#due
    let at = heap.length
    heap.push(due)
    while (at > 0) {
      const parent = (at - 1) >> 1
      if (!isBefore(due, heap[parent]!)) break
      heap[at] = heap[parent]!
      at = parent
    }
    heap[at] = due
  }

  /** The next event that was not canceled and is due by then. */
  #pop(untilMs: number): Due | undefined {
    const heap = this.#due
    for (;;) {
      const first = heap[0]
      if (first === undefined || (first.run !== undefined && first.atMs > untilMs)) return undefined
      const last = heap.pop()!
      if (heap.length > 0) this.#sink(last)
      if (first.run !== undefined) return first
    }
  }

  #sink(due: Due): void {
    const heap = this.#due
    let at = 0
    for (;;) {
      let child = 2 * at + 1
      if (child >= heap.length) break
      if (child + 1 < heap.length && isBefore(heap[child + 1]!, heap[child]!)) child += 1
      if (!isBefore(heap[child]!, due)) break
      heap[at] = heap[child]!
      at = child
    }
    heap[at] = due
  }
}

function isBefore(one: Due, other: Due): boolean {
  return one.atMs < other.atMs || (one.atMs === other.atMs && one.number < other.number)
}

/** Resolves when everything has run that waits for nothing but promises and the next turn of the event loop. */
function settled(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve)
  })
}
