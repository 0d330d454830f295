/** The length of the sliding minute (contract 5.10). */
export const minuteMs = 60_000
/** Expired entries are removed when there are this many and they are more than half of all. */
const compactAfter = 1024

/** The time of one admission in milliseconds, and the key that it used. */
export interface RecentAdmission {
  readonly atMs: number
  readonly keyId: string
}

/** The admissions of the last 60 s, in ascending order. Times are milliseconds of a clock that never goes back. */
export class MinuteLog {
  #timesMs: number[]
  #keyIds: string[]
  #first = 0

  /** `recent` is in ascending order. */
  constructor(recent: readonly RecentAdmission[]) {
    this.#timesMs = recent.map(({ atMs }) => atMs)
    this.#keyIds = recent.map(({ keyId }) => keyId)
  }

  /** The number of admissions in the window. */
  get open(): number {
    return this.#timesMs.length - this.#first
  }

  add(nowMs: number, keyId: string): void {
    this.#timesMs.push(nowMs)
    this.#keyIds.push(keyId)
  }

  /** Removes admissions that left the window. */
  advance(nowMs: number): void {
    // Computed as in `freeAtMs`, so that rounding is the same and a client that waited as told is admitted.
    while (this.#first < this.#timesMs.length && this.#timesMs[this.#first]! + minuteMs <= nowMs) this.#first += 1
    if (this.#first > compactAfter && this.#first * 2 > this.#timesMs.length) {
      this.#timesMs = this.#timesMs.slice(this.#first)
      this.#keyIds = this.#keyIds.slice(this.#first)
      this.#first = 0
    }
  }

  /** When one more becomes possible than now. After a limit was lowered, several must leave the window first. */
  freeAtMs(nowMs: number, limit: number): number {
    if (this.open === 0) return nowMs
    const index = Math.max(this.#first, this.#timesMs.length - limit)
    return (this.#timesMs[index] ?? nowMs) + minuteMs
  }

  /** The admissions of one key. */
  ofKey(keyId: string): MinuteLog {
    const recent: RecentAdmission[] = []
    for (let at = this.#first; at < this.#timesMs.length; at += 1)
      if (this.#keyIds[at] === keyId) recent.push({ atMs: this.#timesMs[at]!, keyId })
    return new MinuteLog(recent)
  }
}
