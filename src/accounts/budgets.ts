import { BudgetMeter } from '../domain/budget-meter.ts'
import { amountOut, budgetLabel, plainState } from '../domain/budget-text.ts'
import { longestWindowMs, resetsAtMs } from '../domain/budget-windows.ts'
import {
  type Budget,
  budgetBounds,
  type BudgetKind,
  type BudgetSetter,
  isSameKind,
  maxBudgetsPerSetter,
} from '../domain/budgets.ts'
import type { JsonObject } from '../domain/json.ts'
import { idMinter } from '../runtime/ids.ts'
import { AccountsError } from './accounts-error.ts'
import { auditRecord, type AccountsDeps } from './control-plane.ts'
import type { AccountStore, BudgetQueries } from './ports.ts'

/** How often setting a budget is repeated if somebody else sets or removes the same one at that moment. */
const maxTries = 3

export type BudgetDeps = AccountsDeps<BudgetQueries & Pick<AccountStore, 'findKey'>>

/** A budget with its state in the current window. */
export interface BudgetState {
  readonly budget: Budget
  readonly spent: number
  /** What running requests hold. */
  readonly held: number
  /** What is left for further requests; never negative. */
  readonly left: number
  /** When a fixed window ends, or a sliding one first leaves something behind. Epoch milliseconds. */
  readonly resetsAtMs: number
}

/** What a budget is asked to be. `limit` is in nanodollars, or tokens. */
export interface AskedBudget extends BudgetKind {
  readonly limit: number
}

/**
 * Sets a budget of an account, or another limit for the one that it has of this kind; running services apply it within a
 * second. What was spent before counts only if there was a budget of this kind. `profiles` are the ids of the configured
 * ones. @throws AccountsError `budget_invalid`, `key_unknown`, `budget_limit`
 */
export async function setBudget(
  deps: BudgetDeps,
  accountId: string,
  asked: AskedBudget,
  setBy: BudgetSetter,
  profiles: readonly string[],
): Promise<Budget> {
  const { min, max } = budgetBounds[asked.unit]
  if (!Number.isSafeInteger(asked.limit) || asked.limit < min || asked.limit > max)
    throw new AccountsError('budget_invalid')
  await checkSubject(deps, accountId, asked, profiles)
  for (let tries = 0; tries < maxTries; tries++) {
    const known = await findOfKind(deps, accountId, asked, setBy)
    const budget = known === undefined ? newBudget(deps, accountId, asked, setBy) : { ...known, limit: asked.limit }
    const record = auditRecord(deps, {
      type: 'budget.set',
      accountId,
      budgetId: budget.id,
      budget: budgetLabel(budget),
      amount: asked.limit,
    })
    if (await deps.store.putBudget(budget, maxBudgetsPerSetter, record)) return budget
    // Unless somebody else has just added one of this kind, there are too many.
    if ((await findOfKind(deps, accountId, asked, setBy)) === undefined) break
  }
  throw new AccountsError('budget_limit')
}

async function findOfKind(
  { store }: BudgetDeps,
  accountId: string,
  asked: BudgetKind,
  setBy: BudgetSetter,
): Promise<Budget | undefined> {
  return (await store.listBudgets(accountId)).find((budget) => budget.setBy === setBy && isSameKind(budget, asked))
}

function newBudget({ clock, random }: BudgetDeps, accountId: string, asked: AskedBudget, setBy: BudgetSetter): Budget {
  const nowMs = Math.floor(clock.nowMs())
  const { scope, subject, unit, window, rolling, limit } = asked
  const id = idMinter('bud_', () => nowMs, random)()
  return { id, accountId, scope, subject, unit, window, rolling, limit, setBy, createdAtMs: nowMs }
}

/** Removes a budget; an account can only remove its own. @throws AccountsError `budget_unknown` */
export async function removeBudget(
  deps: BudgetDeps,
  accountId: string,
  budgetId: string,
  by: BudgetSetter,
): Promise<Budget> {
  const budget = (await deps.store.listBudgets(accountId)).find(({ id }) => id === budgetId)
  if (budget === undefined || (by === 'account' && budget.setBy !== 'account'))
    throw new AccountsError('budget_unknown')
  const record = auditRecord(deps, { type: 'budget.removed', accountId, budgetId })
  if (!(await deps.store.removeBudget(accountId, budgetId, record))) throw new AccountsError('budget_unknown')
  return budget
}

/** The budgets of an account with their states, in the order in which they were set. */
export async function budgetStates(
  store: Pick<BudgetQueries, 'listBudgets' | 'readBudgetSpending'>,
  accountId: string,
  nowMs: number,
): Promise<readonly BudgetState[]> {
  const budgets = await store.listBudgets(accountId)
  if (budgets.length === 0) return []
  const meter = new BudgetMeter(await store.readBudgetSpending(accountId, nowMs - longestWindowMs))
  return budgets.map((budget) => budgetState(budget, meter, nowMs))
}

/** The state of a budget that `meter` counts. */
export function budgetState(budget: Budget, meter: BudgetMeter, nowMs: number): BudgetState {
  const standing = meter.standing(nowMs, budget)
  const { spent, held } = standing
  const left = Math.max(0, budget.limit - spent - held)
  return { budget, spent, held, left, resetsAtMs: resetsAtMs(budget, standing, nowMs) }
}

async function checkSubject(
  deps: BudgetDeps,
  accountId: string,
  { scope, subject }: BudgetKind,
  profiles: readonly string[],
): Promise<void> {
  if (scope === 'account' && subject !== '') throw new AccountsError('budget_invalid')
  if (scope === 'profile' && !profiles.includes(subject)) throw new AccountsError('budget_invalid')
  if (scope !== 'key') return
  const key = await deps.store.findKey(subject)
  if (key?.accountId !== accountId || key.state === 'revoked') throw new AccountsError('key_unknown')
}

/** A budget in answers of the API and the admin API. */
export function plainBudget({ budget, spent, held, left, resetsAtMs }: BudgetState): JsonObject {
  return {
    object: 'budget',
    id: budget.id,
    account: budget.accountId,
    ...plainState(budget, { spent, held }),
    left: amountOut(budget.unit, left),
    resets_at: new Date(resetsAtMs).toISOString(),
  }
}
