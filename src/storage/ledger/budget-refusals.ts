import { budgetError, spentUntilMs } from '../../domain/budget-error.ts'
import { amountsOf, type Budget, type BudgetClaim, type BudgetStanding } from '../../domain/budgets.ts'
import type { ServiceError } from '../../domain/errors.ts'
import { BoundedMap } from '../../runtime/bounded-map.ts'
import type { Clock } from '../../runtime/clock.ts'
import type { RefusedByBudgets } from './admission-batches.ts'
import { HoldTimes } from './hold-times.ts'

/** How long a node refuses without asking again. */
const memoMs = 1_000
/** Maximum accounts whose last ended request is remembered. */
const maxAccounts = 10_000

interface Refusal {
  readonly claim: BudgetClaim
  readonly standings: readonly BudgetStanding[]
  readonly nowMs: number
  /** Monotonic. */
  readonly untilMs: number
  /** How many requests had ended. */
  readonly ended: number
}

/**
 * Refuses, for a second, further requests of a caller whose budgets the database has found used up, so that a caller who
 * ignores refusals does not cost it a decision for each request. Only those that need at least as much, and only while
 * what is spent refuses them: what requests hold can be released at any time (contract 46.6).
 */
export class BudgetRefusals {
  readonly #clock: Clock
  readonly #holdTimes = new HoldTimes()
  /** By the caller's budgets: they are the same list until one of them changes. */
  readonly #refusals = new WeakMap<readonly Budget[], Refusal>()
  /** By account: the number of its last request that ended. */
  readonly #endings = new BoundedMap<string, number>(maxAccounts)
  #ended = 0

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** A request with budgets has ended. */
  ended(accountId: string, totalMs: number): void {
    this.#holdTimes.note(accountId, totalMs)
    this.#ended += 1
    this.#endings.setLast(accountId, this.#ended)
  }

  /** The error of a claim that the database refused. */
  note(accountId: string, claim: BudgetClaim, { standings, nowMs }: RefusedByBudgets): ServiceError {
    const error = budgetError(claim, standings, nowMs, this.#holdTimes.of(accountId))
    const lastMs = spentUntilMs(claim, standings, nowMs)
    if (lastMs !== undefined) {
      const untilMs = this.#clock.monotonicMs() + Math.min(memoMs, lastMs - nowMs)
      this.#refusals.set(claim.budgets, { claim, standings, nowMs, untilMs, ended: this.#ended })
    }
    return error
  }

  /** The error that refuses a claim; undefined if the database must decide. */
  errorFor(accountId: string, claim: BudgetClaim): ServiceError | undefined {
    const refusal = this.#refusals.get(claim.budgets)
    if (refusal === undefined || this.#clock.monotonicMs() >= refusal.untilMs) return undefined
    if ((this.#endings.get(accountId) ?? 0) > refusal.ended || !needsAsMuch(claim, refusal.claim)) return undefined
    return budgetError(claim, refusal.standings, refusal.nowMs, this.#holdTimes.of(accountId))
  }
}

function needsAsMuch(claim: BudgetClaim, other: BudgetClaim): boolean {
  const need = amountsOf(claim, claim.leastOutput)
  const refused = amountsOf(other, other.leastOutput)
  return need.nanoUsd >= refused.nanoUsd && need.tokens >= refused.tokens
}
