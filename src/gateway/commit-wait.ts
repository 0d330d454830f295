import type { Clock } from '../domain/clock.ts'
import { ServiceError } from '../domain/errors.ts'

/**
 * A ledger that takes longer than this to write is as good as one that cannot. Above the limit that a ledger keeps
 * itself (see `Admission.durable`), because only the ledger can take the charge of a whole answer back.
 */
const limitMs = 25_000

/** Waits for the ledger's writing, but not for ever: requests that wait for the same commit share one timer. */
export class CommitWait {
  readonly #clock: Clock
  #commit: Promise<void> | undefined
  #limited: Promise<void> | undefined

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Resolves with what `Admission.durable` gave. @throws ServiceError `record_unavailable` where that fails, or takes too long */
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
