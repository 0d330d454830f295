import type { LoadShedder } from '../overload/load-shedder.ts'
import type { Backend } from '../ports.ts'
import type { BreakerKey } from '../routing/backend-breakers.ts'
import type { CircuitBreakers } from '../routing/circuit-breakers.ts'
import type { RetryBudget, TakenRetry } from '../routing/retry-budget.ts'

/** A backend with this many failures since its last answer is failing, even before its circuit breaker opens. */
const failuresOfFailing = 3

export interface RequestRetriesDeps {
  readonly breakers: CircuitBreakers
  readonly budget: RetryBudget
  readonly shedder?: LoadShedder | undefined
}

/** Whether the client says that it retries the request itself. */
interface RetriedRequest {
  readonly isRetry?: boolean | undefined
}

/** Whether a request is to cause no more load than one call: a client's own retry, or any while retries are shed. */
export function isLimited(isRetry: boolean | undefined, shedder: LoadShedder | undefined): boolean {
  return isRetry === true || shedder?.sheds('retries') === true
}

/**
 * Which retries one request may make. A retry to a healthy backend does not multiply the load: that backend gets a
 * request that it would have got as the first choice. A retry to a failing one needs a budget (contract 7.8, 7.32).
 */
export class RequestRetries {
  readonly #deps: RequestRetriesDeps
  readonly #caller: BreakerKey
  /** A client's own retry gets none, and nothing does under overload. */
  readonly #isLimited: boolean
  /** What the current attempt took from the budget. */
  #taken: TakenRetry | undefined

  constructor(deps: RequestRetriesDeps, caller: BreakerKey, { isRetry }: RetriedRequest) {
    this.#deps = deps
    this.#caller = caller
    this.#isLimited = isLimited(isRetry, deps.shedder)
  }

  /** Whether the next attempt may go to this backend. Takes what it needs from the budget. */
  take(backend: Backend): boolean {
    if (!this.#isFailing(backend)) return true
    if (this.#isLimited) return false
    this.#taken = this.#deps.budget.take(this.#caller.accountId, backend)
    return this.#taken !== undefined
  }

  /** Like `take`, in place of what was taken for another backend, which then is not asked. */
  takeInstead(backend: Backend): boolean {
    const before = this.#taken
    this.#taken = undefined
    const isTaken = this.take(backend)
    if (isTaken) before?.refund()
    else this.#taken = before
    return isTaken
  }

  /** Whether `take` would allow it now. */
  has(backend: Backend): boolean {
    if (!this.#isFailing(backend)) return true
    return !this.#isLimited && this.#deps.budget.has(this.#caller.accountId, backend)
  }

  /** The current attempt failed: its retry is used up. */
  failed(): void {
    this.#taken = undefined
  }

  /** The current attempt was answered or not sent, so it did not add to the trouble. */
  refund(): void {
    this.#taken?.refund()
    this.#taken = undefined
  }

  #isFailing({ id }: Backend): boolean {
    const { breakers } = this.#deps
    return breakers.failuresInARow(id, this.#caller) >= failuresOfFailing || breakers.condition(id).state !== 'closed'
  }
}
