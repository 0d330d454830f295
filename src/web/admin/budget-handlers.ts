import { AccountsError } from '../../accounts/accounts-error.ts'
import { type AskedBudget, budgetStates, plainBudget, removeBudget, setBudget } from '../../accounts/budgets.ts'
import { amountShapes, budgetAmountIn, isExactAmount } from '../../domain/budget-text.ts'
import { type BudgetScope, type BudgetUnit, budgetWindows, isUsuallyRolling } from '../../domain/budgets.ts'
import type { JsonObject } from '../../domain/json.ts'
import { invalid, oneOfIn, optionalFlagIn, optionalTextIn, type AdminCall, type AdminHandler } from './admin-call.ts'

/** The operator's budgets of accounts (contract 46.1). */
export const budgetHandlers = {
  async listBudgets(call) {
    const id = await accountIdOf(call)
    const states = await budgetStates(call.deps.budgets.store, id, call.deps.budgets.clock.nowMs())
    return { object: 'list', data: states.map(plainBudget), has_more: false }
  },

  async setBudget(call) {
    const { control, admin, deps, body } = call
    const id = await accountIdOf(call)
    const { profiles } = await admin.readServed()
    const budgetDeps = { ...control, store: deps.budgets.store }
    const names = profiles.map((profile) => profile.id)
    const budget = await setBudget(budgetDeps, id, readBudget(body), 'operator', names)
    const states = await budgetStates(deps.budgets.store, id, deps.budgets.clock.nowMs())
    return plainBudget(states.find((state) => state.budget.id === budget.id)!)
  },

  async removeBudget(call) {
    const { control, deps, query } = call
    const accountId = await accountIdOf(call)
    const budgetDeps = { ...control, store: deps.budgets.store }
    const { id } = await removeBudget(budgetDeps, accountId, query.get('budget') ?? '', 'operator')
    return { object: 'budget', id, deleted: true }
  },
} as const satisfies Readonly<Record<string, AdminHandler>>

async function accountIdOf({ control, id }: AdminCall): Promise<string> {
  if ((await control.store.findAccount(id)) === undefined) throw new AccountsError('account_unknown')
  return id
}

/** @throws AdminError `body_invalid` */
function readBudget(body: JsonObject): AskedBudget {
  const { usd, tokens } = body
  if ((usd === undefined) === (tokens === undefined))
    throw invalid('usd', 'there must be either usd or tokens', 'send one of them')
  const unit: BudgetUnit = usd === undefined ? 'tokens' : 'usd'
  const amount = usd ?? tokens
  if (typeof amount !== 'number') throw invalid(unit, 'it must be a number', `send "${unit}": 20`)
  if (!isExactAmount(unit, amount)) throw invalid(unit, `it must be ${amountShapes[unit]}`, 'use at most nine decimals')
  const window = oneOfIn(body, 'window', budgetWindows, 'month')
  const [key, profile] = [optionalTextIn(body, 'key'), optionalTextIn(body, 'profile')]
  if (key !== undefined && profile !== undefined)
    throw invalid('key', 'there cannot be both a key and a profile', 'send one of them')
  const scope: BudgetScope = key !== undefined ? 'key' : profile !== undefined ? 'profile' : 'account'
  const rolling = optionalFlagIn(body, 'rolling') ?? isUsuallyRolling(window)
  return { scope, subject: key ?? profile ?? '', unit, window, rolling, limit: budgetAmountIn(unit, amount) }
}
