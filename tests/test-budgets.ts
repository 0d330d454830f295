import { budgetStates, type BudgetState, setBudget } from '../src/accounts/budgets.ts'
import { type BudgetKind, type BudgetSetter, nanoPerUsd } from '../src/domain/budgets.ts'
import type { Service } from './service.ts'

/** Longer than running services take to apply a budget. */
const reachMs = 600

/** Settings of all simulated providers: a price in US dollars per million tokens, and a longest answer. */
export const usdPerMillion = { input: 10, output: 100 }
const priced = { usd_per_million: usdPerMillion, max_output_tokens: 4_096 }
export const pricedFacts = { alpha: priced, beta: priced, gamma: priced }

export { nanoPerUsd }

type Asked = Partial<BudgetKind> & { readonly limit: number; readonly setBy?: BudgetSetter }

/** Sets a budget of the service's account, by default a fixed month in US dollars, and waits until it is in force. */
export async function setTestBudget(service: Service, { setBy = 'account', ...asked }: Asked): Promise<void> {
  const kind: BudgetKind = { scope: 'account', subject: '', unit: 'usd', window: 'month', rolling: false, ...asked }
  const deps = { ...service.accountsDeps, store: service.store }
  const profiles = service.config.profiles.map(({ id }) => id)
  await setBudget(deps, service.account.id, { ...kind, limit: asked.limit }, setBy, profiles)
  await new Promise((resolve) => setTimeout(resolve, reachMs))
}

/** The first budget of the service's account. */
export async function budgetOf(service: Service): Promise<BudgetState> {
  const [first] = await budgetStates(service.store, service.account.id, Date.now())
  if (first === undefined) throw new Error('the account has no budget')
  return first
}
