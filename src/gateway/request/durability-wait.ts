import { ServiceError } from '../../domain/errors.ts'
import type { Clock } from '../../runtime/clock.ts'

/**
 * A ledger that takes longer than this counts as failed. Higher than the ledger's own limit (see
 * `Admission.durable`), because only the ledger can revert the charge of a whole answer (contract 6.15, 30.18).
 */
const limitMs = 25_000

/** Waits for the ledger to write, with a time limit. Requests that wait for the same commit share one timer. */
export class DurabilityWait {
  readonly #clock: Clock
  #commit: Promise<void> | undefined
  #limited: Promise<void> | undefined

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /**
   * Resolves with the promise that `Admission.durable` returned.
   * @throws ServiceError `record_unavailable` if that fails or takes too long
   */
  of(commit: Promise<void>): Promise<void> {
    if (this.#limited === undefined || commit !== this.#commit) {
      this.#commit = commit
      this.#limited = this.#limit(commit)
    }
    return this.#limited
  }

  #limit(commit: Promise<void>): Promise<void> {
    return new Promise((resolve, reject) => {
      const fail = (cause: unknown): void => {
        timer.cancel()
        reject(new ServiceError('record_unavailable', { retryAfterSeconds: 1, cause }))
      }
      const timer = this.#clock.after(limitMs, () => fail(new Error('the ledger did not write in time')))
      commit.then(() => {
        timer.cancel()
        resolve()
      }, fail)
    })
  }
}
