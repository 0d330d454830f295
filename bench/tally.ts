import type { WireAnswer } from './client-connection.ts'
import type { LoadReport } from './protocol.ts'

const maxFailures = 50
/** How long answers may take to arrive after the run's time is up. */
export const drainMs = 30_000

/** Counts the results of one run. */
export class Tally {
  readonly latenciesUs: number[] = []
  answers = 0
  #shortestBytes = Number.POSITIVE_INFINITY
  #failures: Record<string, number> = {}
  #failureCount = 0
  #lastAnswerMs = performance.now()
  readonly #startMs = performance.now()

  see(answer: WireAnswer): void {
    if (answer.status !== 200) return this.fail(`status ${answer.status}`)
    this.answers++
    this.#shortestBytes = Math.min(this.#shortestBytes, answer.bodyBytes)
    this.#lastAnswerMs = performance.now()
  }

  fail(reason: string): void {
    this.#failures[reason] = (this.#failures[reason] ?? 0) + 1
    this.#failureCount++
  }

  get isHopeless(): boolean {
    return this.#failureCount >= maxFailures
  }

  /** `idleOpen`: connections that send nothing. */
  report(idleOpen = 0): LoadReport {
    return {
      answers: this.answers,
      elapsedMs: this.#lastAnswerMs - this.#startMs,
      shortestBytes: this.answers === 0 ? 0 : this.#shortestBytes,
      failures: this.#failures,
      latenciesUs: this.latenciesUs,
      idleOpen,
    }
  }
}
