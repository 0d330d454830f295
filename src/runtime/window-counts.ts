import { BoundedMap } from './bounded-map.ts'

interface Count {
  window: number
  count: number
}

/** Counts per name in fixed windows of time. Above `maxNames`, the name that was counted longest ago is dropped. */
export class WindowCounts {
  readonly #windowMs: number
  readonly #byName: BoundedMap<string, Count>

  constructor(windowMs: number, maxNames: number) {
    this.#windowMs = windowMs
    this.#byName = new BoundedMap(maxNames)
  }

  /** Counts one more. Returns the count in this window, and when the window ends. Times are epoch milliseconds. */
  add(name: string, nowMs: number): { readonly count: number; readonly endsAtMs: number } {
    const window = Math.floor(nowMs / this.#windowMs)
    const known = this.#byName.get(name)
    const count = known?.window === window ? known.count + 1 : 1
    this.#byName.setLast(name, { window, count })
    return { count, endsAtMs: (window + 1) * this.#windowMs }
  }
}
