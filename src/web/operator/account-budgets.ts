import { html } from 'hono/html'
import type { AccountsErrorCode } from '../../accounts/accounts-error.ts'
import { budgetStates } from '../../accounts/budgets.ts'
import type { Account, StoredKey } from '../../domain/accounts.ts'
import { hasRole, operatorActions } from '../../domain/operators.ts'
import { budgetFields } from '../components/budget-fields.ts'
import { budgetList } from '../components/budget-list.ts'
import type { Html } from '../components/html.ts'
import { csrfInput } from '../components/layout.ts'
import type { OperatorVisit } from '../http/visit.ts'

/** The budgets of an account, with the forms that change them if the operator may. */
export async function budgetCard(
  visit: OperatorVisit,
  { id }: Account,
  keys: readonly StoredKey[],
  errorCode?: AccountsErrorCode,
): Promise<Html> {
  const { deps, operator, form } = visit
  const nowMs = deps.clock.nowMs()
  const states = await budgetStates(deps.budgets.store, id, deps.budgets.clock.nowMs())
  const mayChange = hasRole(operator.role, operatorActions.changeBudgets.role)
  const budgetPath = `/operator/accounts/${id}/budgets`
  return html`<section class="card">
    <h2>Budgets</h2>
    ${
      states.length === 0
        ? html`<p class="empty">It has no budgets.</p>`
        : budgetList(states, {
            keys,
            changeable: {
              path: budgetPath,
              by: visit,
              // The form sets a budget of the operator, so it would leave one of the account as it is.
              mayChange: ({ setBy }) => mayChange && setBy === 'operator',
              mayRemove: () => mayChange,
            },
          })
    }
    ${
      mayChange
        ? html`<details ${errorCode === undefined ? '' : 'open'}>
            <summary>Set a budget</summary>
            <form class="panel" method="post" action="${budgetPath}">
              ${csrfInput(visit)} ${budgetFields({ keys, profiles: deps.profiles, nowMs }, form, errorCode)}
              <button>Set the budget</button>
            </form>
          </details>`
        : ''
    }
  </section>`
}
