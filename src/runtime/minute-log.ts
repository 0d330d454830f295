/** The length of the sliding minute (contract 5.10). */
export const minuteMs = 60_000
/** Entries that have left are let go when there are so many, and more than half of all. */
const laxity = 1024

/** One admission, milliseconds, and the key that it was made with. */
export interface RecentAdmission {
  readonly atMs: number
  readonly keyId: string
}

/** The admissions of the last 60 s, in rising order. Times are milliseconds of one clock that does not go back. */
export class MinuteLog {
  #timesMs: number[]
  #keyIds: string[]
  #first = 0

  /** `recent` is in rising order. */
  constructor(recent: readonly RecentAdmission[]) {
    this.#timesMs = recent.map(({ atMs }) => atMs)
    this.#keyIds = recent.map(({ keyId }) => keyId)
  }

  /** Admissions that count. */
  get open(): number {
    return this.#timesMs.length - this.#first
  }

  add(nowMs: number, keyId: string): void {
    this.#timesMs.push(nowMs)
    this.#keyIds.push(keyId)
  }

  /** Forgets what is older than the window. */
  advance(nowMs: number): void {
    // Written as in `freeAtMs`, so that fractions are rounded alike and who waits as told finds it free.
    while (this.#first < this.#timesMs.length && this.#timesMs[this.#first]! + minuteMs <= nowMs) this.#first += 1
    if (this.#first > laxity && this.#first * 2 > this.#timesMs.length) {
      this.#timesMs = this.#timesMs.slice(this.#first)
      this.#keyIds = this.#keyIds.slice(this.#first)
      this.#first = 0
    }
  }

  /** When one more becomes possible than now: after a lowered limit several have to leave the window first. */
  freeAtMs(nowMs: number, limit: number): number {
    if (this.open === 0) return nowMs
    const index = Math.max(this.#first, this.#timesMs.length - limit)
    return (this.#timesMs[index] ?? nowMs) + minuteMs
  }

  /** Those of one key. */
  ofKey(keyId: string): MinuteLog {
    const recent: RecentAdmission[] = []
    for (let at = this.#first; at < this.#timesMs.length; at += 1)
      if (this.#keyIds[at] === keyId) recent.push({ atMs: this.#timesMs[at]!, keyId })
    return new MinuteLog(recent)
  }
}
