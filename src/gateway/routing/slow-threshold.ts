/** Of answers, this share takes longer than the threshold. */
const slowShare = 0.05
/** This many answers give a first threshold: the slowest of them. */
const firstAnswers = 20
/** How far one answer moves the threshold, on a logarithmic scale. */
const step = 0.1

/**
 * The time to first content that 95% of answers stay below, learned from one fact of each answer: whether it took
 * longer. That is known even of an answer that was abandoned for a second one after this time, so hedging does not
 * change the threshold that triggers it (contract 7.30).
 */
export class SlowThreshold {
  #ms = 0
  #answers = 0

  /** Milliseconds; undefined until there are enough answers. */
  get ms(): number | undefined {
    return this.#answers < firstAnswers ? undefined : this.#ms
  }

  /** An answer began after this time or, if it was abandoned, had not begun by then. */
  record(ms: number, isAbandoned: boolean): void {
    if (this.#answers < firstAnswers) {
      if (isAbandoned) return
      this.#answers += 1
      this.#ms = Math.max(this.#ms, ms)
    } else if (ms > this.#ms) this.#ms *= Math.exp(step * (1 - slowShare))
    else if (!isAbandoned) this.#ms *= Math.exp(-step * slowShare)
  }
}
