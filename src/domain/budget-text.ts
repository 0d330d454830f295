import {
  nanoPerUsd,
  type Budget,
  type BudgetKind,
  type BudgetStanding,
  type BudgetUnit,
  type BudgetWindow,
} from './budgets.ts'
import type { JsonObject } from './json.ts'

const fixedNames: Readonly<Record<BudgetWindow, string>> = {
  '5h': '5-hour',
  day: 'daily',
  week: 'weekly',
  month: 'monthly',
}
const rollingNames: Readonly<Record<BudgetWindow, string>> = {
  '5h': 'sliding 5-hour',
  day: 'sliding 24-hour',
  week: 'sliding 7-day',
  month: 'sliding 30-day',
}

/** Such as `monthly`, or `sliding 5-hour`. */
export function windowName({ window, rolling }: Pick<BudgetKind, 'window' | 'rolling'>): string {
  return (rolling ? rollingNames : fixedNames)[window]
}

/** What a budget covers: `this account`, `the key key_…`, or `the profile svc-router/…`. */
export function scopeName({ scope, subject }: Pick<BudgetKind, 'scope' | 'subject'>): string {
  if (scope === 'account') return 'this account'
  return scope === 'key' ? `the key ${subject}` : `the profile ${subject}`
}

/** The name of a budget for the sender of a request that it counts, short because messages are: `The monthly budget for this key`. */
export function ownBudgetName(budget: Pick<Budget, 'scope' | 'subject' | 'window' | 'rolling' | 'setBy'>): string {
  if (budget.scope === 'profile') return `${prefixOf(budget)} for ${budget.subject}`
  return `${prefixOf(budget)} for this ${budget.scope}`
}

/** Such as `The monthly budget for this account`, or `The operator’s daily budget for the key key_…`. */
export function budgetName(budget: Pick<Budget, 'scope' | 'subject' | 'window' | 'rolling' | 'setBy'>): string {
  return `${prefixOf(budget)} for ${scopeName(budget)}`
}

function prefixOf(budget: Pick<Budget, 'window' | 'rolling' | 'setBy'>): string {
  return `${budget.setBy === 'operator' ? 'The operator’s' : 'The'} ${windowName(budget)} budget`
}

/** An amount as in `12.50 USD`, with at most six decimals, or `3,000 tokens`. */
export function writeBudgetAmount(unit: BudgetUnit, amount: number): string {
  return `${writeBudgetNumber(unit, amount)} ${unit === 'tokens' ? (amount === 1 ? 'token' : 'tokens') : 'USD'}`
}

/** The same without the unit. */
export function writeBudgetNumber(unit: BudgetUnit, amount: number): string {
  return unit === 'tokens' ? amount.toLocaleString('en') : writeNanoUsd(amount)
}

/** Nanodollars as US dollars: at least two decimals, and at most six. What is less than a millionth counts as one. */
function writeNanoUsd(amount: number): string {
  const micros = Math.ceil(amount / 1000)
  const text = (micros / 1_000_000).toFixed(6)
  return text.replace(/0{1,4}$/, '')
}

/** Reads an amount as a person writes it: US dollars such as `20` or `0.50`, or a count of tokens. Undefined if it is none. */
export function readBudgetAmount(unit: BudgetUnit, text: string): number | undefined {
  if (unit === 'tokens') return /^\d{1,13}$/.test(text) ? Number(text) : undefined
  const parts = /^(\d{1,7})(?:\.(\d{1,9}))?$/.exec(text)
  return parts === null ? undefined : Number(parts[1]) * nanoPerUsd + Number((parts[2] ?? '').padEnd(9, '0'))
}

/** How an amount must be written. */
export const amountShapes: Readonly<Record<BudgetUnit, string>> = {
  usd: 'an amount such as 20 or 0.50',
  tokens: 'a whole number of tokens',
}

/** Whether budgets can have exactly this amount: not if it has parts of a nanodollar. */
export function isExactAmount(unit: BudgetUnit, amount: number): boolean {
  return amountOut(unit, budgetAmountIn(unit, amount)) === amount
}

/** An amount as the API and files write it, in the unit of budgets. A fraction of a token makes it invalid. */
export function budgetAmountIn(unit: BudgetUnit, amount: number): number {
  return unit === 'tokens' ? amount : Math.round(amount * nanoPerUsd)
}

/** The amount as the API shows it: US dollars, or tokens. */
export function amountOut(unit: BudgetUnit, amount: number): number {
  return unit === 'tokens' ? amount : amount / nanoPerUsd
}

/** A budget and its state as answers write it: amounts in US dollars, or tokens. */
export function plainState(
  { scope, subject, unit, window, rolling, setBy, limit }: Omit<Budget, 'id' | 'accountId' | 'createdAtMs'>,
  { spent, held }: Pick<BudgetStanding, 'spent' | 'held'>,
): JsonObject {
  return {
    scope,
    ...(subject === '' ? {} : { [scope]: subject }),
    unit,
    window,
    rolling,
    set_by: setBy,
    limit: amountOut(unit, limit),
    spent: amountOut(unit, spent),
    held: amountOut(unit, held),
  }
}

/** Names a budget in records, such as `account:key:key_…:usd:month:fixed`. */
export function budgetLabel({
  setBy,
  scope,
  subject,
  unit,
  window,
  rolling,
}: BudgetKind & Pick<Budget, 'setBy'>): string {
  return [setBy, scope, ...(subject === '' ? [] : [subject]), unit, window, rolling ? 'rolling' : 'fixed'].join(':')
}
