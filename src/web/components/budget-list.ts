import { html } from 'hono/html'
import type { BudgetState } from '../../accounts/budgets.ts'
import type { StoredKey } from '../../domain/accounts.ts'
import { windowName } from '../../domain/budget-text.ts'
import type { Budget, BudgetUnit } from '../../domain/budgets.ts'
import { writeUsd } from '../../domain/money.ts'
import type { SignedIn, OperatorVisit } from '../http/visit.ts'
import type { Html } from './html.ts'
import { csrfInput } from './layout.ts'
import { writeMinute, writeNumber } from './time.ts'

const picodollarsPerNanodollar = 1_000n
/** The bar shows a warning from this share on. */
const nearlyFull = 0.8

/** How a list of budgets is shown. */
export interface BudgetListOptions {
  readonly keys: readonly StoredKey[]
  /** For the forms that remove a budget: their path, and the visitor. Absent if none can be removed here. */
  readonly removable?: {
    readonly path: (budget: Budget) => string
    readonly by: SignedIn | OperatorVisit
    readonly mayRemove: (budget: Budget) => boolean
  }
}

/** Budgets with what is spent, held by running requests, and left (contract 46.10). */
export function budgetList(states: readonly BudgetState[], options: BudgetListOptions): Html {
  return html`<ul class="rows">
    ${states.map((state) => budgetRow(state, options))}
  </ul>`
}

function budgetRow(state: BudgetState, { keys, removable }: BudgetListOptions): Html {
  const { budget, spent, held, left, resetsAtMs } = state
  const write = (amount: number): string => writeAmount(budget.unit, amount)
  const name = `${capital(windowName(budget))}, ${subjectOf(budget, keys)}`
  // The unit once is enough: 5 of 20.00 USD.
  const share = `${write(spent).replace(/^([\d.,]+) \w+$/, '$1')} of ${write(budget.limit)}`
  return html`<li>
    <div class="wide">
      <strong>${name}</strong> ${budget.setBy === 'operator' ? html`<span class="tag">set by the operator</span>` : ''}
      <p>${share} spent</p>
      ${budgetBar(state, `${name}: ${share} spent`)}
      <p class="faint">
        ${write(left)} left${held === 0 ? '' : html`, ${write(held)} held by running requests`}.
        ${
          budget.rolling
            ? html`More becomes available from ${writeMinute(resetsAtMs)} on.`
            : html`Resets on ${writeMinute(resetsAtMs)}.`
        }
      </p>
    </div>
    ${
      removable?.mayRemove(budget) === true
        ? html`<form class="actions" method="post" action="${removable.path(budget)}">
            ${csrfInput(removable.by)}<button class="secondary">Remove<span class="unseen"> ${name}</span></button>
          </form>`
        : ''
    }
  </li>`
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
  return unit === 'tokens' ? `${writeNumber(amount)} tokens` : writeUsd(BigInt(amount) * picodollarsPerNanodollar)
}

function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1)
}
