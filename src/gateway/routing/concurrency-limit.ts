/** Assumed before the provider has rejected anything. */
const startLimit = 32
const leastLimit = 1
const greatestLimit = 4_096
/** This many complete answers, or one to a call beyond it, raise a learned limit by 1; a 429 lowers it to this share. */
const answersPerStep = 20
const shareAfterRejection = 0.7
/** How long a learned limit applies after the last rejection (contract 7.15). */
const holdsForMs = 15 * 60_000

/**
 * How many calls a backend takes at once, learned from its rejections: additive increase, multiplicative decrease
 * (contract 7.23).
 */
export class ConcurrencyLimit {
  #learned: number | undefined
  #answers = 0
  #loweredMs = 0

  /** For comparing loads: what was learned, or an assumption. */
  assumed(nowMs: number): number {
    return this.learned(nowMs) ?? startLimit
  }

  /** Whether a rejection has shown a limit, which may no longer apply. */
  get wasLearned(): boolean {
    return this.#learned !== undefined
  }

  /** Undefined if no rejection has shown a limit. */
  learned(nowMs: number): number | undefined {
    if (this.#learned !== undefined && nowMs - this.#loweredMs > holdsForMs) this.#learned = undefined
    return this.#learned
  }

  /** A call that began at `startedMs` was answered completely; `openCalls` were open then, with it. */
  answered(openCalls: number, startedMs: number): void {
    if (this.#learned === undefined) return
    this.#answers += 1
    const isBeyond = openCalls > this.#learned && startedMs > this.#loweredMs
    if (this.#answers < answersPerStep && !isBeyond) return
    this.#answers = 0
    this.#learned = Math.min(greatestLimit, this.#learned + 1)
  }

  /** The provider rejected a call that began at `startedMs` with 429, while `inFlight` calls were open. */
  rejected(inFlight: number, startedMs: number, nowMs: number): void {
    // Calls that were already out when the limit was lowered say nothing of the lower limit.
    if (this.#learned !== undefined && startedMs <= this.#loweredMs) return
    const most = Math.min(this.#learned ?? greatestLimit, inFlight)
    this.#learned = Math.max(leastLimit, Math.floor(most * shareAfterRejection))
    this.#answers = 0
    this.#loweredMs = nowMs
  }
}
