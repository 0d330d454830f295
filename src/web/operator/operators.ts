import { html } from 'hono/html'
import { AccountsError, type AccountsErrorCode } from '../../accounts/accounts-error.ts'
import {
  changeOperatorRole,
  createOperator,
  maxListedOperators,
  removeOperator,
} from '../../accounts/operators/operators.ts'
import { operatorActions, operatorRoles, type Operator } from '../../domain/operators.ts'
import { choices, field, type Choice } from '../components/field.ts'
import type { Html } from '../components/html.ts'
import { csrfInput } from '../components/layout.ts'
import { withNotice } from '../components/notices.ts'
import { writeDay } from '../components/time.ts'
import { operatorsDepsFor } from '../http/control.ts'
import { redirect } from '../http/redirect.ts'
import type { PageRoute } from '../http/route.ts'
import type { OperatorVisit } from '../http/visit.ts'
import { confirmFirst } from './confirm.ts'
import { consolePage } from './console-page.ts'

const path = '/operator/operators'
const { see, changeOperators } = operatorActions

/** The operators of the service; only admins change them. */
export const operatorsRoutes: readonly PageRoute[] = [
  { method: 'GET', path, access: 'operator', ...see, handle: (visit) => showOperators(visit) },
  { method: 'POST', path, access: 'operator', ...changeOperators, handle: create },
  { method: 'POST', path: `${path}/:operatorId/role`, access: 'operator', ...changeOperators, handle: changeRole },
  { method: 'POST', path: `${path}/:operatorId/remove`, access: 'operator', ...changeOperators, handle: remove },
]

const roleChoices: readonly Choice[] = [
  { value: 'viewer', label: 'Viewer', hint: 'Can see everything in the console but change nothing.' },
  {
    value: 'support',
    label: 'Support',
    hint: 'Can also help accounts: plans, upgrades, budgets, keys, suspension, tickets, and incidents.',
  },
  { value: 'admin', label: 'Admin', hint: 'Can also change managed access, backends, operators, and admin tokens.' },
]

/** Errors that the page explains. */
const problems: Partial<Record<AccountsErrorCode, string>> = {
  email_invalid: 'Enter an email address such as name@example.com.',
  operator_exists: 'This address already belongs to an operator.',
  operator_limit: 'The maximum number of operators is reached. Remove one first.',
  operator_same_role: 'The operator already has that role.',
  operator_last_admin: 'There is no other admin. Add one first.',
  operator_self: 'You cannot change or remove yourself. Ask another admin.',
}

async function showOperators(visit: OperatorVisit, problem?: { field?: string; whole?: string }): Promise<Response> {
  const { operator: self, form, deps } = visit
  const listed = await deps.operators.store.listOperators(maxListedOperators)
  const active = listed.filter(({ state }) => state === 'active')
  const removed = listed.filter(({ state }) => state === 'removed')
  const mayChange = self.role === 'admin'
  const wrong = problem?.whole ?? (problem?.field === undefined ? undefined : 'Please correct the errors below.')
  return consolePage(visit, {
    title: 'Operators',
    lead: html`People who can sign in to this console. Operators are separate from accounts. Programs use
      <a href="/operator/admin-tokens">admin tokens</a>.`,
    status: wrong === undefined ? 200 : 422,
    problem: wrong,
    body: html`<section class="card">
        <h2>Active operators</h2>
        <ul class="rows">
          ${active.map((one) => operatorRow(visit, one, mayChange && one.id !== self.id))}
        </ul>
      </section>
      ${removed.length === 0 ? '' : removedList(removed)}
      ${
        mayChange
          ? html`<section class="card">
              <h2>Add an operator</h2>
              ${confirmFirst(visit, path)}
              <form method="post" action="${path}">
                ${csrfInput(visit)}
                ${field({
                  name: 'email',
                  label: 'Email address',
                  hint: 'They sign in with a code sent to this address.',
                  type: 'email',
                  value: form.text('email'),
                  problem: problem?.field,
                })}
                ${choices('role', 'What can they do?', roleChoices, form.choice('role', operatorRoles) ?? 'viewer')}
                <button>Add operator</button>
              </form>
            </section>`
          : html`<p class="faint">Only admins can add and remove operators.</p>`
      }`,
  })
}

function operatorRow(visit: OperatorVisit, { id, email, role, createdAtMs }: Operator, mayChange: boolean): Html {
  const isSelf = id === visit.operator.id
  return html`<li>
    <div>
      <strong>${email}</strong>
      <span class="tag">${role}</span> ${isSelf ? html`<span class="tag good">you</span>` : ''} <br /><span
        class="faint"
        >since ${writeDay(createdAtMs)} · <code>${id}</code></span
      >
    </div>
    ${
      mayChange
        ? html`<div class="actions">
            <details>
              <summary>Role<span class="unseen"> of ${email}</span></summary>
              <form class="panel" method="post" action="${path}/${id}/role">
                ${csrfInput(visit)} ${choices('role', `What can ${email} do?`, roleChoices, role)}
                <button>Change role</button>
              </form>
            </details>
            <details>
              <summary>Remove<span class="unseen"> ${email}</span></summary>
              <form class="panel" method="post" action="${path}/${id}/remove">
                ${csrfInput(visit)}
                <p>${email} will be signed out everywhere immediately. Their actions remain in the audit log.</p>
                <button class="danger">Remove ${email}</button>
              </form>
            </details>
          </div>`
        : ''
    }
  </li>`
}

function removedList(removed: readonly Operator[]): Html {
  return html`<details>
    <summary>${removed.length} removed</summary>
    <ul class="rows panel">
      ${removed.map(
        ({ email, id, removedAtMs }) =>
          html`<li>
            <span>${email} <code>${id}</code></span>
            <span class="faint">until ${writeDay(removedAtMs ?? 0)}</span>
          </li>`,
      )}
    </ul>
  </details>`
}

function create(visit: OperatorVisit): Promise<Response> {
  const role = visit.form.choice('role', operatorRoles)
  if (role === undefined) return showOperators(visit, { whole: 'Choose a role.' })
  return explaining(visit, async () => {
    await createOperator(operatorsDepsFor(visit), visit.form.text('email'), role)
    return 'operator-added'
  })
}

function changeRole(visit: OperatorVisit): Promise<Response> {
  const role = visit.form.choice('role', operatorRoles)
  if (role === undefined) return showOperators(visit, { whole: 'Choose a role.' })
  return explaining(visit, async () => {
    await changeOperatorRole(operatorsDepsFor(visit), visit.params['operatorId'] ?? '', role)
    return 'operator-changed'
  })
}

function remove(visit: OperatorVisit): Promise<Response> {
  return explaining(visit, async () => {
    await removeOperator(operatorsDepsFor(visit), visit.params['operatorId'] ?? '')
    return 'operator-removed'
  })
}

type Done = 'operator-added' | 'operator-changed' | 'operator-removed'

/** Makes a change, or shows the page with the error. */
async function explaining(visit: OperatorVisit, change: () => Promise<Done>): Promise<Response> {
  try {
    return redirect(withNotice(path, await change()))
  } catch (error) {
    const text = error instanceof AccountsError ? problems[error.code] : undefined
    if (text === undefined) throw error
    const isField = error instanceof AccountsError && ['email_invalid', 'operator_exists'].includes(error.code)
    return showOperators(visit, isField ? { field: text } : { whole: text })
  }
}
