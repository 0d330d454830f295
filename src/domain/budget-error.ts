import { affordable } from './budget-meter.ts'
import { ownBudgetName, writeBudgetAmount, writeBudgetNumber } from './budget-text.ts'
import { resetsAtMs } from './budget-windows.ts'
import { affordableOutput, amountIn, amountsOf, type Budget, type BudgetClaim, type BudgetStanding } from './budgets.ts'
import { ServiceError } from './errors.ts'
import { writeReset } from './reset-text.ts'

/** A refusal says when to retry only if running requests will probably have ended by then (contract 46.6). */
const longestWaitMs = 60_000

/** A budget that does not allow a claim. */
interface Denying {
  readonly budget: Budget
  readonly standing: BudgetStanding
  /** Whether it would allow the claim if all running requests ended and cost nothing. */
  readonly isHeld: boolean
}

/**
 * The error that a refused claim becomes (contract 46.6): 429 if running requests hold what is missing and usually end
 * within a minute, otherwise 402. `heldForMs`: how long the account's requests usually take.
 */
export function budgetError(
  claim: BudgetClaim,
  standings: readonly BudgetStanding[],
  nowMs: number,
  heldForMs: number,
): ServiceError {
  const { budget, standing, isHeld } = lastToReopen(denyingBudgets(claim, standings), nowMs)
  const resetsMs = resetsAtMs(budget, standing, nowMs)
  const facts = { budget: { ...budget, spent: standing.spent, held: standing.held, resetsAtMs: resetsMs } }
  const { unit, limit } = budget
  const need = amountIn(unit, amountsOf(claim, claim.leastOutput))
  const words = {
    budget: ownBudgetName(budget),
    left: writeBudgetNumber(unit, Math.max(0, limit - standing.spent - standing.held)),
    spent: writeBudgetAmount(unit, standing.spent),
    held: writeBudgetAmount(unit, standing.held),
    limit: writeBudgetAmount(unit, limit),
    need: writeBudgetAmount(unit, need),
    raise: budget.setBy === 'operator' ? 'ask for more' : 'raise the budget',
    wayOut: need > limit ? 'Send a shorter request' : waitFor(budget, isHeld, resetsMs),
  }
  if (!isHeld || heldForMs > longestWaitMs) return new ServiceError('budget_exceeded', { ...facts, words })
  const seconds = Math.min(60, Math.max(1, Math.ceil(heldForMs / 1000)))
  return new ServiceError('budget_held', { ...facts, retryAfterSeconds: seconds, words: { ...words, seconds } })
}

/**
 * Until when what is spent alone refuses a claim, whatever running requests hold; undefined if it does not. Epoch
 * milliseconds.
 */
export function spentUntilMs(
  claim: BudgetClaim,
  standings: readonly BudgetStanding[],
  nowMs: number,
): number | undefined {
  const spent = denyingBudgets(claim, standings).filter(({ isHeld }) => !isHeld)
  if (spent.length === 0) return undefined
  return Math.max(...spent.map(({ budget, standing }) => resetsAtMs(budget, standing, nowMs)))
}

/** How to wait for a budget that as a whole could pay. In a sliding window, what becomes free first may not be enough. */
function waitFor({ rolling }: Budget, isHeld: boolean, resetsMs: number): string {
  if (isHeld) return 'Wait until running requests end'
  return rolling ? `Try again after ${writeReset(resetsMs)}` : `Wait until ${writeReset(resetsMs)}`
}

function denyingBudgets(claim: BudgetClaim, standings: readonly BudgetStanding[]): readonly Denying[] {
  return claim.budgets.flatMap((budget, at) => {
    const standing = standings[at]!
    const alone = { ...claim, budgets: [budget] }
    if (affordable(alone, [standing]) >= claim.leastOutput) return []
    const isHeld = affordableOutput(claim, budget.unit, budget.limit - standing.spent) >= claim.leastOutput
    return [{ budget, standing, isHeld }]
  })
}

/** The one that keeps refusing longest: waiting for another one would not help. */
function lastToReopen(denying: readonly Denying[], nowMs: number): Denying {
  const spent = denying.filter(({ isHeld }) => !isHeld)
  const [first, ...others] = spent.length > 0 ? spent : denying
  if (first === undefined) throw new Error('no budget refuses the claim')
  const reopens = ({ budget, standing }: Denying): number => resetsAtMs(budget, standing, nowMs)
  return others.reduce((last, other) => (reopens(other) > reopens(last) ? other : last), first)
}
