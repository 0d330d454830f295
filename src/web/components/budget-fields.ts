import { html } from 'hono/html'
import { AccountsError, type AccountsErrorCode } from '../../accounts/accounts-error.ts'
import type { AskedBudget } from '../../accounts/budgets.ts'
import { effectiveState } from '../../accounts/keys.ts'
import type { StoredKey } from '../../domain/accounts.ts'
import { readBudgetAmount, windowName } from '../../domain/budget-text.ts'
import { type BudgetScope, budgetUnits, budgetWindows, maxBudgetsPerSetter } from '../../domain/budgets.ts'
import type { Profile } from '../../domain/profiles.ts'
import type { Form } from '../http/form.ts'
import { field, select } from './field.ts'
import type { Html } from './html.ts'

/** What a form for a budget can choose from. */
export interface BudgetChoices {
  readonly keys: readonly StoredKey[]
  readonly profiles: readonly Profile[]
  readonly nowMs: number
}

const problems: Partial<Readonly<Record<AccountsErrorCode, string>>> = {
  budget_invalid:
    'Enter 0.01 to 1,000,000 US dollars such as 20 or 0.50, or 1,000 to 1,000,000,000,000 tokens as a whole number.',
  budget_limit: `The maximum is reached: an account can set ${maxBudgetsPerSetter} budgets for itself, and operators can set ${maxBudgetsPerSetter} for it. Remove one first.`,
  key_unknown: 'This key no longer works. Choose another one.',
}

const windows = budgetWindows.flatMap((window) =>
  [false, true].map((rolling) => {
    const name = windowName({ window, rolling })
    return [rolling ? `${window} rolling` : window, name.charAt(0).toUpperCase() + name.slice(1)] as const
  }),
)

/** Whether an error belongs to these fields. */
export function isOfBudget(code: AccountsErrorCode): boolean {
  return problems[code] !== undefined
}

/** The fields of a new budget, with the submitted values if they were rejected. */
export function budgetFields({ keys, profiles, nowMs }: BudgetChoices, form: Form, code?: AccountsErrorCode): Html {
  const working = keys.filter((key) => effectiveState(key, nowMs) !== 'revoked')
  const scopes: (readonly [string, string])[] = [
    ['account', 'All requests of the account'],
    ...working.map(({ id, name, hint }) => [`key ${id}`, `The key ${name} (${hint})`] as const),
    ...profiles.map(({ id }) => [`profile ${id}`, `The profile ${id}`] as const),
  ]
  const units = [
    ['usd', 'US dollars'],
    ['tokens', 'Tokens'],
  ] as const
  return html`${select('scope', 'Applies to', scopes, form.text('scope'))}
  ${select('window', 'Window', windows, form.text('window') || 'month')}
  ${select('unit', 'Unit', units, form.text('unit') || 'usd')}
  ${field({
    name: 'amount',
    label: 'Limit',
    hint: 'A sliding window always covers the most recent hours or days. Other windows start at fixed times in UTC. If you already have a budget for the same requests, window, and unit, this limit replaces its limit.',
    value: form.text('amount'),
    maxCharacters: 20,
    problem: code === undefined ? undefined : problems[code],
  })}`
}

/** The submitted budget. @throws AccountsError `budget_invalid` */
export function readBudgetForm(form: Form): AskedBudget {
  const [scope, ...subject] = form.text('scope').split(' ')
  const [window, kind] = form.text('window').split(' ')
  const unit = form.choice('unit', budgetUnits)
  const known = budgetWindows.find((name) => name === window)
  const limit = unit === undefined ? undefined : readBudgetAmount(unit, withoutSeparators(form.text('amount')))
  if (unit === undefined || known === undefined || limit === undefined || !isScope(scope))
    throw new AccountsError('budget_invalid')
  return { scope, subject: subject.join(' '), unit, window: known, rolling: kind === 'rolling', limit }
}

/** Commas may only separate thousands: a person who writes `5,5` does not mean 55. */
function withoutSeparators(amount: string): string {
  return /^\d{1,3}(?:,\d{3})+(?:\.\d+)?$/.test(amount) ? amount.replaceAll(',', '') : amount
}

function isScope(text: string | undefined): text is BudgetScope {
  return text === 'account' || text === 'key' || text === 'profile'
}
