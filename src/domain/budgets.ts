/** What a budget limits: all requests of the account, those of one key, or those to one profile. */
export const budgetScopes = ['account', 'key', 'profile'] as const
/** Lengths of a budget's window (contract 46.2). */
export const budgetWindows = ['5h', 'day', 'week', 'month'] as const
/** What a budget counts. */
export const budgetUnits = ['usd', 'tokens'] as const
/** Who set a budget. An account can only change its own. */
export type BudgetSetter = 'operator' | 'account'

export type BudgetWindow = (typeof budgetWindows)[number]
export type BudgetScope = (typeof budgetScopes)[number]
export type BudgetUnit = (typeof budgetUnits)[number]

/** Maximum budgets of an account that its operator sets, and that it sets itself (contract 46.1). */
export const maxBudgetsPerSetter = 16
/** One US dollar in the unit that budgets count in: integers up to this limit are exact in every part. */
export const nanoPerUsd = 1_000_000_000
/** The smallest and the largest budget by unit: one cent to a million dollars, and 1,000 tokens to a trillion. */
export const budgetBounds: Readonly<Record<BudgetUnit, { readonly min: number; readonly max: number }>> = {
  usd: { min: nanoPerUsd / 100, max: 1_000_000 * nanoPerUsd },
  tokens: { min: 1_000, max: 1_000_000_000_000 },
}
/** A request is refused rather than given a shorter answer than this, in tokens (contract 46.4). */
export const leastOutputTokens = 1_024

/** Names one budget of an account: there is at most one with the same of all of these. */
export interface BudgetKind {
  readonly scope: BudgetScope
  /** The key's id or the profile's; empty for the whole account. */
  readonly subject: string
  readonly unit: BudgetUnit
  readonly window: BudgetWindow
  /** Whether the window slides. Otherwise it is a fixed period in UTC. */
  readonly rolling: boolean
}

/** A limit on what an account may spend in a window of time. */
export interface Budget extends BudgetKind {
  /** `bud_…` */
  readonly id: string
  readonly accountId: string
  /** Nanodollars, or tokens. */
  readonly limit: number
  readonly setBy: BudgetSetter
  /** Keys that the budget's key has replaced, which it still counts. */
  readonly formerKeys?: readonly string[]
  readonly createdAtMs: number
}

/** An amount in both units of budgets. */
export interface Amounts {
  readonly nanoUsd: number
  readonly tokens: number
}

export const noAmounts: Amounts = { nanoUsd: 0, tokens: 0 }

export function amountIn(unit: BudgetUnit, { nanoUsd, tokens }: Amounts): number {
  return unit === 'usd' ? nanoUsd : tokens
}

export function addAmounts(a: Amounts, b: Amounts): Amounts {
  return { nanoUsd: a.nanoUsd + b.nanoUsd, tokens: a.tokens + b.tokens }
}

export function subtractAmounts(a: Amounts, b: Amounts): Amounts {
  return { nanoUsd: a.nanoUsd - b.nanoUsd, tokens: a.tokens - b.tokens }
}

/** What a request may use at most, and which budgets it must fit (contract 46.3). */
export interface BudgetClaim {
  /** Those that apply to the request. */
  readonly budgets: readonly Budget[]
  /** What is used whatever the length of the answers. */
  readonly base: Amounts
  /** For each token of the output limit. */
  readonly perOutputToken: Amounts
  /** The output limit: as long as affordable, within these. Equal if the caller set one. */
  readonly leastOutput: number
  readonly mostOutput: number
}

/** What one request holds of one budget until it ends. */
export interface BudgetHold {
  readonly budgetId: string
  readonly unit: BudgetUnit
  /** The start of the bucket that it is counted in, epoch milliseconds. */
  readonly bucketMs: number
  readonly amount: number
}

/** @throws RangeError unless both are exact and not negative: anything else is a bug, and nothing of it may be stored (contract 46.19) */
export function assertAmounts({ nanoUsd, tokens }: Amounts): void {
  if (!isAmount(nanoUsd) || !isAmount(tokens)) throw new RangeError('an amount of a budget is not a whole number')
}

/** As `assertAmounts`, for everything that a claim can hold of its budgets. */
export function assertClaim({ budgets, base, perOutputToken, leastOutput, mostOutput }: BudgetClaim): void {
  const counts = budgets.flatMap(({ unit }) => [amountIn(unit, base), amountIn(unit, perOutputToken)])
  if (![...counts, leastOutput, mostOutput].every(isAmount))
    throw new RangeError('a claim on budgets is not in whole numbers')
}

/** What can be booked of what a request spent: undefined, for unknown, if that is no amount; never more than the largest budget. */
export function bookable(spent: Amounts | undefined): Amounts | undefined {
  if (spent === undefined || !(spent.nanoUsd >= 0) || !(spent.tokens >= 0)) return undefined
  const within = (value: number, { max }: { readonly max: number }): number => Math.min(Math.ceil(value), max)
  return { nanoUsd: within(spent.nanoUsd, budgetBounds.usd), tokens: within(spent.tokens, budgetBounds.tokens) }
}

export function isAmount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0
}

/** The state of a budget in its current window. */
export interface BudgetStanding {
  readonly spent: number
  readonly held: number
  /** The start of the oldest bucket in the window with anything spent or held; null if there is none. */
  readonly oldestMs: number | null
}

/** Whether a window slides if nobody says. */
export function isUsuallyRolling(window: BudgetWindow): boolean {
  return window === '5h' || window === 'week'
}

/** Whether an account can have only one of both. */
export function isSameKind(a: BudgetKind, b: BudgetKind): boolean {
  return (
    a.scope === b.scope &&
    a.subject === b.subject &&
    a.unit === b.unit &&
    a.window === b.window &&
    a.rolling === b.rolling
  )
}

/** Whether a budget counts requests with this key to this profile. */
export function appliesTo(budget: Budget, keyId: string, profile: string): boolean {
  return budget.scope === 'profile' ? budget.subject === profile : mayCount(budget, keyId)
}

/** Whether a budget can count requests with this key: it counts those of all keys, or of this one. */
export function mayCount({ scope, subject, formerKeys }: Budget, keyId: string): boolean {
  return scope !== 'key' || subject === keyId || formerKeys?.includes(keyId) === true
}

/** What a claim takes with this output limit. */
export function amountsOf({ base, perOutputToken }: BudgetClaim, outputTokens: number): Amounts {
  return {
    nanoUsd: base.nanoUsd + perOutputToken.nanoUsd * outputTokens,
    tokens: base.tokens + perOutputToken.tokens * outputTokens,
  }
}

/** The longest output limit that a budget with this much left can pay for; negative if it cannot pay for the input. */
export function affordableOutput(claim: BudgetClaim, unit: BudgetUnit, left: number): number {
  const perToken = amountIn(unit, claim.perOutputToken)
  const rest = left - amountIn(unit, claim.base)
  if (rest < 0) return -1
  return perToken === 0 ? claim.mostOutput : Math.min(claim.mostOutput, Math.floor(rest / perToken))
}
