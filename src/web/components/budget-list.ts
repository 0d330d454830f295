import { html } from 'hono/html'
import type { BudgetState } from '../../accounts/budgets.ts'
import type { StoredKey } from '../../domain/accounts.ts'
import { windowName } from '../../domain/budget-text.ts'
import type { Budget, BudgetUnit } from '../../domain/budgets.ts'
import { fromNanodollars, writeUsd } from '../../domain/money.ts'
import type { SignedIn, OperatorVisit } from '../http/visit.ts'
import type { Html } from './html.ts'
import { csrfInput } from './layout.ts'
import { writeMinute, writeNumber } from './time.ts'

/** The bar shows a warning from this share on, and the list what it means. */
const nearlyFull = 0.8

/** How a list of budgets is shown. */
export interface BudgetListOptions {
  readonly keys: readonly StoredKey[]
  /** For the forms that change or remove a budget: where a budget is set, and the visitor. Absent if none can be changed here. */
  readonly changeable?: {
    readonly path: string
    readonly by: SignedIn | OperatorVisit
    readonly mayChange: (budget: Budget) => boolean
    readonly mayRemove: (budget: Budget) => boolean
  }
}

/** Budgets with what is spent, held by running requests, and left (contract 46.10). */
export function budgetList(states: readonly BudgetState[], options: BudgetListOptions): Html {
  return html`<ul class="rows">
    ${states.map((state) => budgetRow(state, options))}
  </ul>`
}

function budgetRow(state: BudgetState, { keys, changeable }: BudgetListOptions): Html {
  const { budget, spent, held, left } = state
  const write = (amount: number): string => writeAmount(budget.unit, amount)
  const name = `${capital(windowName(budget))}, ${subjectOf(budget, keys)}`
  // The unit once is enough: 5 of 20.00 USD.
  const share = `${write(spent).replace(/^([\d.,]+) \w+$/, '$1')} of ${write(budget.limit)}`
  return html`<li>
    <div class="wide">
      <strong>${name}</strong> ${budget.setBy === 'operator' ? html`<span class="tag">set by the operator</span>` : ''}
      ${stateTag(state)} ${budget.scope === 'key' ? html`<br /><code>${budget.subject}</code>` : ''}
      <p>${share} spent</p>
      ${budgetBar(state, `${name}: ${share} spent`)}
      <p class="faint">
        ${write(left)} left${held === 0 ? '' : html`, ${write(held)} held by running requests`}. ${resetText(state)}
      </p>
    </div>
    ${changeable === undefined ? '' : changeForms(budget, name, changeable)}
  </li>`
}

/** A sliding window of which nothing is used has nothing to make available again. */
function resetText({ budget, spent, held, resetsAtMs }: BudgetState): Html | '' {
  if (!budget.rolling) return html`Resets on ${writeMinute(resetsAtMs)}.`
  return spent + held === 0 ? '' : html`More becomes available on ${writeMinute(resetsAtMs)}.`
}

function stateTag({ budget, spent, held }: BudgetState): Html | '' {
  if (spent >= budget.limit) return html`<span class="tag bad">used up</span>`
  return spent + held >= nearlyFull * budget.limit ? html`<span class="tag warn">nearly used up</span>` : ''
}

function changeForms(budget: Budget, name: string, to: NonNullable<BudgetListOptions['changeable']>): Html | '' {
  const [mayChange, mayRemove] = [to.mayChange(budget), to.mayRemove(budget)]
  if (!mayChange && !mayRemove) return ''
  return html`<div class="actions">
    ${mayChange ? limitForm(budget, name, to) : ''}
    ${
      mayRemove
        ? html`<form method="post" action="${to.path}/${budget.id}/remove">
            ${csrfInput(to.by)}<button class="secondary">Remove<span class="unseen"> ${name}</span></button>
          </form>`
        : ''
    }
  </div>`
}

/** What sets a budget also changes the limit of the one of the same kind. */
function limitForm(budget: Budget, name: string, { path, by }: NonNullable<BudgetListOptions['changeable']>): Html {
  const { id, scope, subject, window, rolling, unit } = budget
  const hidden = {
    scope: subject === '' ? scope : `${scope} ${subject}`,
    window: rolling ? `${window} rolling` : window,
    unit,
  }
  return html`<details>
    <summary>Change the limit<span class="unseen"> of ${name}</span></summary>
    <form class="panel" method="post" action="${path}">
      ${csrfInput(by)}
      ${Object.entries(hidden).map(([field, value]) => html`<input type="hidden" name="${field}" value="${value}" />`)}
      <label for="${id}">New limit in ${unit === 'usd' ? 'US dollars' : 'tokens'}</label>
      <input id="${id}" name="amount" inputmode="decimal" autocomplete="off" maxlength="20" required />
      <p class="faint">The amount already spent does not change.</p>
      <button>Change the limit</button>
    </form>
  </details>`
}

/** The budgets of one key, in one line each. */
export function budgetLines(states: readonly BudgetState[]): Html {
  return html`${states.map((state) => {
    const { budget, spent } = state
    const name = `${capital(windowName(budget))} budget`
    return html`<br /><span class="faint"
        >${name}: ${writeAmount(budget.unit, spent)} of ${writeAmount(budget.unit, budget.limit)} spent</span
      >
      ${stateTag(state)}`
  })}`
}

function budgetBar({ budget, spent, held }: BudgetState, text: string): Html {
  const share = (amount: number): string => Math.min(100, (amount / budget.limit) * 100).toFixed(2)
  return html`<svg
    class="bar ${(spent + held) / budget.limit >= nearlyFull ? 'full' : ''}"
    viewBox="0 0 100 4"
    preserveAspectRatio="none"
    role="img"
    aria-label="${text}"
  >
    <rect class="used" width="${share(spent)}" height="4" />
  </svg>`
}

function subjectOf({ scope, subject }: Budget, keys: readonly StoredKey[]): string {
  if (scope === 'account') return 'all requests'
  if (scope === 'profile') return subject
  return `the key ${keys.find(({ id }) => id === subject)?.name ?? subject}`
}

function writeAmount(unit: BudgetUnit, amount: number): string {
  return unit === 'tokens' ? `${writeNumber(amount)} tokens` : writeUsd(fromNanodollars(amount))
}

function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1)
}
