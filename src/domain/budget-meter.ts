import { bucketsAt } from './budget-windows.ts'
import {
  affordableOutput,
  type Amounts,
  amountIn,
  amountsOf,
  type Budget,
  type BudgetClaim,
  type BudgetHold,
  type BudgetStanding,
} from './budgets.ts'

/** What was spent in one bucket of one budget, as stored. */
export interface BucketSpending {
  readonly budgetId: string
  readonly bucketMs: number
  readonly spent: number
}

/** The same with what running requests hold. */
export interface BucketCounters extends BucketSpending {
  readonly held: number
}

/** Budgets that allowed a claim: the output limit, and what is held until the request ends. */
export interface ClaimGrant {
  readonly outputTokens: number
  readonly holds: readonly BudgetHold[]
}

/** Budgets that do not allow a claim: the state of each budget of the claim, in its order. */
export interface ClaimDenial {
  readonly standings: readonly BudgetStanding[]
}

interface Bucket {
  spent: number
  held: number
}

/** Buckets that no window counts any more are forgotten when a budget has more than this. */
const manyBuckets = 256

/**
 * The exact counters of one account's budgets, for an engine that decides in memory (contract 46.3). `nowMs` of all methods is
 * epoch milliseconds of a clock that does not jump (`QuotaCalendar`).
 */
export class BudgetMeter {
  readonly #budgets = new Map<string, Map<number, Bucket>>()

  constructor(stored: readonly (BucketSpending & Partial<BucketCounters>)[]) {
    for (const { budgetId, bucketMs, spent, held = 0 } of stored) {
      const bucket = this.#bucket(budgetId, bucketMs)
      bucket.spent += spent
      bucket.held += held
    }
  }

  /** Adds the buckets that are stored and not counted here. */
  extend(stored: readonly BucketSpending[]): void {
    for (const { budgetId, bucketMs, spent } of stored)
      if (this.#budgets.get(budgetId)?.has(bucketMs) !== true) this.#bucket(budgetId, bucketMs).spent = spent
  }

  /** Takes a claim from all its budgets, or from none. */
  claim(nowMs: number, claim: BudgetClaim): ClaimGrant | ClaimDenial {
    const standings = claim.budgets.map((budget) => this.standing(nowMs, budget))
    const outputTokens = affordable(claim, standings)
    if (outputTokens < claim.leastOutput) return { standings }
    const holds = holdsOf(nowMs, claim.budgets, amountsOf(claim, outputTokens))
    for (const { budgetId, bucketMs, amount } of holds) this.#bucket(budgetId, bucketMs).held += amount
    return { outputTokens, holds }
  }

  /**
   * Takes more for a request, in the buckets that it already holds, and returns all that it holds then. Undefined, with
   * nothing taken, if a budget does not allow it.
   */
  more(nowMs: number, budgets: readonly Budget[], holds: readonly BudgetHold[], amounts: Amounts) {
    const next: BudgetHold[] = []
    for (const hold of holds) {
      const more = amountIn(hold.unit, amounts)
      const budget = budgets.find(({ id }) => id === hold.budgetId)
      next.push({ ...hold, amount: hold.amount + more })
      if (budget === undefined) continue
      const { spent, held } = this.standing(budget.rolling ? nowMs : hold.bucketMs, budget)
      if (spent + held + more > budget.limit) return undefined
    }
    for (const hold of holds) this.#bucket(hold.budgetId, hold.bucketMs).held += amountIn(hold.unit, amounts)
    return next
  }

  /** Ends holds. `spent` is what was used; undefined if that is unknown: then everything held counts as spent. */
  settle(holds: readonly BudgetHold[], spent: Amounts | undefined): readonly BucketSpending[] {
    const booked = bookedOf(holds, spent)
    for (const [at, { budgetId, bucketMs, amount }] of holds.entries()) {
      const bucket = this.#bucket(budgetId, bucketMs)
      bucket.held -= amount
      bucket.spent += booked[at]!.spent
    }
    return booked
  }

  standing(nowMs: number, budget: Budget): BudgetStanding {
    const { currentMs, firstMs } = bucketsAt(budget, nowMs)
    const buckets = this.#budgets.get(budget.id)
    let spent = 0
    let held = 0
    let oldestMs: number | null = null
    for (const [atMs, bucket] of buckets ?? []) {
      // A fixed window has one bucket. Later buckets than now, from before a clock was set back, count in a sliding one.
      if (budget.rolling ? atMs < firstMs : atMs !== currentMs) continue
      if (bucket.spent === 0 && bucket.held === 0) continue
      spent += bucket.spent
      held += bucket.held
      oldestMs = oldestMs === null ? atMs : Math.min(oldestMs, atMs)
    }
    if (buckets !== undefined && buckets.size > manyBuckets) forgetBefore(buckets, firstMs)
    return { spent, held, oldestMs }
  }

  #bucket(budgetId: string, bucketMs: number): Bucket {
    let buckets = this.#budgets.get(budgetId)
    if (buckets === undefined) this.#budgets.set(budgetId, (buckets = new Map()))
    let bucket = buckets.get(bucketMs)
    if (bucket === undefined) buckets.set(bucketMs, (bucket = { spent: 0, held: 0 }))
    return bucket
  }
}

/** The longest output limit that all budgets of a claim can pay for. */
export function affordable(claim: BudgetClaim, standings: readonly BudgetStanding[]): number {
  let output = claim.mostOutput
  for (const [at, { unit, limit }] of claim.budgets.entries()) {
    const { spent, held } = standings[at]!
    output = Math.min(output, affordableOutput(claim, unit, limit - spent - held))
  }
  return output
}

/** What was spent of each hold. More than was held counts in full. */
export function bookedOf(
  holds: readonly BudgetHold[],
  spent: Amounts | undefined,
): readonly (BucketSpending & Pick<BudgetHold, 'unit'>)[] {
  return holds.map(({ budgetId, bucketMs, unit, amount }) => ({
    budgetId,
    unit,
    bucketMs,
    spent: spent === undefined ? amount : amountIn(unit, spent),
  }))
}

function holdsOf(nowMs: number, budgets: readonly Budget[], amounts: Amounts): readonly BudgetHold[] {
  return budgets.map((budget) => ({
    budgetId: budget.id,
    unit: budget.unit,
    bucketMs: bucketsAt(budget, nowMs).currentMs,
    amount: amountIn(budget.unit, amounts),
  }))
}

function forgetBefore(buckets: Map<number, Bucket>, firstMs: number): void {
  for (const [atMs, { held }] of buckets) if (atMs < firstMs && held === 0) buckets.delete(atMs)
}
