import { ServiceError } from '../../domain/errors.ts'
import type { Clock } from '../../runtime/clock.ts'

/** A grant is used this long without another check. Calls that wait for a connection can be sent later. */
const grantedForMs = 250

/** The grant of one call, which is checked again if the call is sent late (contract 6.18). */
export class StandingGrant {
  readonly #check: () => void | Promise<void>
  readonly #clock: Clock
  #grantedMs = 0
  /** Why the request may make no more calls, if a late check says so. */
  refusal: ServiceError | undefined

  constructor(check: () => void | Promise<void>, clock: Clock) {
    this.#check = check
    this.#clock = clock
  }

  /** Checks the grant. If it is refused, `refuse` gets the error. */
  take(refuse: (error: unknown) => void): Promise<void> | undefined {
    try {
      const granted = this.#check()
      this.#grantedMs = this.#clock.monotonicMs()
      return granted?.catch(refuse)
    } catch (error) {
      refuse(error)
      return undefined
    }
  }

  /** Whether the call may be sent now. */
  stillHolds(): boolean | Promise<boolean> {
    if (this.#clock.monotonicMs() - this.#grantedMs <= grantedForMs) return true
    try {
      const granted = this.#check()
      return granted instanceof Promise ? granted.then(() => true, this.#refuse) : true
    } catch (error) {
      return this.#refuse(error)
    }
  }

  readonly #refuse = (error: unknown): false => {
    if (error instanceof ServiceError) this.refusal = error
    return false
  }
}
