import type { Clock, Timer } from '../../runtime/clock.ts'

interface Event {
  readonly atMs: number
  /** Events of the same time run in the order in which they were added. */
  readonly number: number
  readonly run: () => void
}

/** Simulated time: events run in the order of their times, and the clock jumps from one to the next. A binary heap. */
export class EventQueue implements Clock {
  #nowMs: number
  #count = 0
  readonly #heap: Event[] = []

  constructor(startMs = 0) {
    this.#nowMs = startMs
  }

  nowMs(): number {
    return this.#nowMs
  }

  monotonicMs(): number {
    return this.#nowMs
  }

  after(delayMs: number, run: () => void): Timer {
    let isCanceled = false
    this.at(this.#nowMs + delayMs, () => {
      if (!isCanceled) run()
    })
    return {
      cancel: () => {
        isCanceled = true
      },
    }
  }

  at(atMs: number, run: () => void): void {
    const heap = this.#heap
    const event = { atMs, number: this.#count++, run }
    let place = heap.length
    heap.push(event)
    while (place > 0) {
      const parent = (place - 1) >> 1
      if (!isBefore(event, heap[parent]!)) break
      heap[place] = heap[parent]!
      place = parent
    }
    heap[place] = event
  }

  /** Runs all events, including those that they add. */
  run(): void {
    for (let next = this.#take(); next !== undefined; next = this.#take()) {
      this.#nowMs = Math.max(this.#nowMs, next.atMs)
      next.run()
    }
  }

  #take(): Event | undefined {
    const heap = this.#heap
    const first = heap[0]
    const last = heap.pop()
    if (first === undefined || last === undefined || heap.length === 0) return first
    let place = 0
    for (;;) {
      let child = 2 * place + 1
      if (child >= heap.length) break
      if (child + 1 < heap.length && isBefore(heap[child + 1]!, heap[child]!)) child += 1
      if (!isBefore(heap[child]!, last)) break
      heap[place] = heap[child]!
      place = child
    }
    heap[place] = last
    return first
  }
}

function isBefore(one: Event, other: Event): boolean {
  return one.atMs < other.atMs || (one.atMs === other.atMs && one.number < other.number)
}
