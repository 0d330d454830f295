import { amountShapes, budgetAmountIn, isExactAmount } from '../../domain/budget-text.ts'
import { budgetBounds } from '../../domain/budgets.ts'
import { readBudgetLabel } from '../../domain/declared-budgets.ts'
import { limitsOf, type Declaration } from '../../domain/declared.ts'
import { type KeyLimits, noLimits } from '../../domain/key-limits.ts'
import type { Plan } from '../../domain/plans.ts'
import { AccountsError, isName, maxNameCharacters } from '../accounts-error.ts'
import { maxListedAccounts } from '../accounts.ts'
import { checkLimits, maxNetworks } from '../key-limits.ts'
import type { DeclarationProblem } from './change.ts'
import type { ChangeList } from './plan-changes.ts'
import type { ServiceState } from './service-state.ts'

/** The plans, backends, and profiles that a change leads to. */
export interface ServedTarget {
  readonly plans: readonly Plan[]
  readonly profiles: readonly { readonly id: string }[]
  /** `account`: the id or name of the account that a backend serves, if it names one. */
  readonly backends: readonly { readonly id: string; readonly account: string | undefined }[]
}

/**
 * Finds what would not fit together after the change. What the change does not touch may be wrong already, and is left
 * alone.
 */
export function checkTarget(
  state: ServiceState,
  { accounts }: Declaration,
  { changes }: ChangeList,
  served: ServedTarget,
): readonly DeclarationProblem[] {
  const planOf = (id: string): Plan | undefined => served.plans.find((plan) => plan.id === id)
  const problems: DeclarationProblem[] = []
  const withoutPlan = new Set<string>()
  const checkPlan = (account: string, plan: string): void => {
    if (planOf(plan) !== undefined || withoutPlan.has(account)) return
    withoutPlan.add(account)
    problems.push(unknownPlan(['accounts', account], plan, served))
  }
  const target = new Map([...state.accounts].map(([name, { account }]) => [name, account.planId]))
  for (const { action, kind, path } of changes) {
    const [, name = '', , keyName = ''] = path
    const declared = accounts?.[name]
    if (kind === 'account' && action === 'delete') target.delete(name)
    else if (kind === 'account' && declared !== undefined) {
      target.set(name, declared.plan)
      if (!isName(name)) problems.push(invalidName(path))
      checkPlan(name, declared.plan)
    } else if (kind === 'key' && action !== 'delete' && declared?.keys?.[keyName] !== undefined) {
      if (!isName(keyName)) problems.push(invalidName(path))
      else if (state.accounts.get(name)?.ambiguousKeys.has(keyName) === true) problems.push(ambiguousKey(path))
      else {
        const limits = limitsOf(declared.keys[keyName])
        // The account itself may be unchanged.
        if (limits.perMinute !== null) checkPlan(name, declared.plan)
        problems.push(...limitProblems(path, limits, planOf(declared.plan), served))
      }
    }
  }
  problems.push(...budgetProblems(state, accounts, changes, served))
  if (target.size > maxListedAccounts)
    problems.push({
      path: ['accounts'],
      what: `there can be at most ${maxListedAccounts} accounts`,
      fix: 'declare fewer',
    })
  return [...problems, ...lostPlans(changes, target, planOf), ...lostOwners(state, target, served)]
}

/** Budgets that name what does not exist afterwards, or whose limit is too small, too large, or not exact. */
function budgetProblems(
  state: ServiceState,
  accounts: Declaration['accounts'],
  changes: ChangeList['changes'],
  { profiles }: ServedTarget,
): readonly DeclarationProblem[] {
  return changes.flatMap(({ kind, path }): readonly DeclarationProblem[] => {
    const [, account = '', , label = ''] = path
    const budget = kind === 'budget' ? readBudgetLabel(label) : undefined
    if (budget === undefined) return []
    const { scope, subject, unit } = budget
    const { min, max } = budgetBounds[unit]
    const amount = accounts![account]!.budgets![label]!
    const limit = budgetAmountIn(unit, amount)
    if (!Number.isSafeInteger(limit) || limit < min || limit > max) {
      const fix = 'use 0.01 to 1,000,000 US dollars, or 1,000 to 1,000,000,000,000 tokens'
      return [{ path, what: 'the budget is too small or too large', fix }]
    }
    if (!isExactAmount(unit, amount))
      return [{ path, what: `the budget must be ${amountShapes[unit]}`, fix: 'use at most nine decimals' }]
    const hasKey = state.accounts.get(account)?.keys.has(subject) ?? false
    if (scope === 'key' && !hasKey && accounts?.[account]?.keys?.[subject] === undefined)
      return [{ path, what: `the account has no key "${subject}"`, fix: 'declare that key, or name another one' }]
    if (scope === 'profile' && !profiles.some(({ id }) => id === subject))
      return [{ path, what: `there is no profile "${subject}"`, fix: 'declare that profile, or name another one' }]
    return []
  })
}

/** Each limit is checked alone, so that all problems are found. */
function limitProblems(
  path: readonly string[],
  given: KeyLimits,
  plan: Plan | undefined,
  served: ServedTarget,
): readonly DeclarationProblem[] {
  return Object.entries(given).flatMap(([name, value]) =>
    limitProblem(path, { ...noLimits, [name]: value }, plan, served),
  )
}

function limitProblem(
  path: readonly string[],
  limits: KeyLimits,
  plan: Plan | undefined,
  { profiles }: ServedTarget,
): readonly DeclarationProblem[] {
  const known = profiles.map(({ id }) => id)
  try {
    checkLimits(limits, { profiles: known, plan })
    return []
  } catch (error) {
    if (!(error instanceof AccountsError)) throw error
    const { code } = error
    if (code === 'profiles_invalid')
      return [
        { path: [...path, 'profiles'], what: 'it names a profile that does not exist', fix: `use ${known.join(', ')}` },
      ]
    if (code === 'per_minute_invalid') {
      // That there is no such plan is a problem of its account.
      if (plan === undefined) return []
      const most = plan.requestsPerMinute
      const what = `the plan allows ${most} requests per minute`
      return [{ path: [...path, 'requests_per_minute'], what, fix: `use a number from 1 to ${most}` }]
    }
    const what = `it is not a list of 1 to ${maxNetworks} IPv4 or IPv6 addresses or networks`
    return [{ path: [...path, 'addresses'], what, fix: 'write them like 203.0.113.7 or 2001:db8::/32' }]
  }
}

/** Accounts whose plan a deletion takes away. */
function lostPlans(
  changes: ChangeList['changes'],
  target: ReadonlyMap<string, string>,
  planOf: (id: string) => Plan | undefined,
): readonly DeclarationProblem[] {
  return changes.flatMap(({ kind, action, path }) => {
    const id = path[1] ?? ''
    if (kind !== 'plan' || action !== 'delete' || planOf(id) !== undefined) return []
    const count = [...target.values()].filter((planId) => planId === id).length
    if (count === 0) return []
    return [
      {
        path,
        what: `${count} ${count === 1 ? 'account is' : 'accounts are'} on this plan`,
        fix: 'move them to another plan first',
      },
    ]
  })
}

/** Backends whose account does not exist afterwards. */
function lostOwners(
  state: ServiceState,
  target: ReadonlyMap<string, string>,
  { backends }: ServedTarget,
): readonly DeclarationProblem[] {
  const ids = new Set([...target.keys()].map((name) => state.accounts.get(name)?.account.id))
  return backends.flatMap(({ id, account }) => {
    if (account === undefined || target.has(account) || ids.has(account)) return []
    const fix = 'declare that account, or name another one'
    return [{ path: ['backends', id, 'account'], what: `there is no account "${account}"`, fix }]
  })
}

function unknownPlan(path: readonly string[], plan: string, { plans }: ServedTarget): DeclarationProblem {
  const known = plans.map(({ id }) => id).join(', ')
  return { path: [...path, 'plan'], what: `there is no plan "${plan}"`, fix: `use ${known}, or declare it` }
}

function invalidName(path: readonly string[]): DeclarationProblem {
  const what = `a name must have 1 to ${maxNameCharacters} visible characters`
  return { path, what, fix: 'choose another name' }
}

function ambiguousKey(path: readonly string[]): DeclarationProblem {
  const what = 'several active keys of the account have this name'
  return { path, what, fix: 'revoke all but one of them, or declare another name' }
}
