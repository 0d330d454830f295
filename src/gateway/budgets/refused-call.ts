import { budgetError } from '../../domain/budget-error.ts'
import { affordable, BudgetMeter, type BucketCounters } from '../../domain/budget-meter.ts'
import { longestWindowMs } from '../../domain/budget-windows.ts'
import { type Amounts, amountIn, type Budget, type BudgetClaim, noAmounts } from '../../domain/budgets.ts'
import { ServiceError } from '../../domain/errors.ts'
import type { Attempt } from '../../domain/upstream.ts'
import type { Clock } from '../../runtime/clock.ts'
import { sentRetryCount } from '../request/exhausted-error.ts'

/** Reads what an account's budgets have spent, and what they hold, in the buckets since a time. */
export type ReadSpending = (accountId: string, sinceMs: number) => Promise<readonly BucketCounters[]>

/** A further call of a request that its budgets cannot pay for. */
export interface RefusedCall {
  /** What the call can cost. */
  readonly worst: Amounts
  /** What the whole request holds, and what its calls have cost so far. */
  readonly held: Amounts
  readonly spent: Amounts
  readonly attempts: readonly Attempt[]
}

/** Other requests of the account usually end within seconds. */
const usualMs = 5_000
/** The client waits for this read. */
const longestReadMs = 1_000

/**
 * The error of a request that has no backend left, because its budgets cannot pay for a further call (contract 46.6).
 * Undefined if they can by now, or if what they have spent cannot be read in time.
 */
export async function refusedCallError(
  budgets: readonly Budget[],
  { worst, held, spent, attempts }: RefusedCall,
  readSpending: ReadSpending,
  clock: Clock,
): Promise<ServiceError | undefined> {
  const nowMs = clock.nowMs()
  const reading = readSpending(budgets[0]!.accountId, nowMs - longestWindowMs).catch(() => undefined)
  const late = Promise.withResolvers<undefined>()
  const timer = clock.after(longestReadMs, () => late.resolve(undefined))
  const counters = await Promise.race([reading, late.promise])
  timer.cancel()
  if (counters === undefined) return undefined
  const meter = new BudgetMeter(counters)
  const standings = budgets.map((budget) => meter.standing(nowMs, budget))
  // What its own calls cost is spent. What else it holds is released when it ends.
  const afterwards = standings.map((standing, at) => {
    const { unit } = budgets[at]!
    const others = Math.max(0, standing.held - amountIn(unit, held))
    return { ...standing, spent: standing.spent + amountIn(unit, spent), held: others }
  })
  const claim: BudgetClaim = { budgets, base: worst, perOutputToken: noAmounts, leastOutput: 0, mostOutput: 0 }
  const refusing = [afterwards, standings].find((each) => affordable(claim, each) < 0)
  if (refusing === undefined) return undefined
  const { code, facts } = budgetError(claim, refusing, nowMs, usualMs)
  return new ServiceError(code, { ...facts, retryCount: sentRetryCount(attempts) })
}
