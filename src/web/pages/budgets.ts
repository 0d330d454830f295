import { html } from 'hono/html'
import { AccountsError, type AccountsErrorCode } from '../../accounts/accounts-error.ts'
import { budgetStates, removeBudget, setBudget } from '../../accounts/budgets.ts'
import { maxListedKeys } from '../../accounts/keys.ts'
import type { Budget } from '../../domain/budgets.ts'
import { budgetFields, isOfBudget, readBudgetForm } from '../components/budget-fields.ts'
import { budgetList } from '../components/budget-list.ts'
import { csrfInput, page } from '../components/layout.ts'
import { withNotice } from '../components/notices.ts'
import { budgetDepsFor } from '../http/control.ts'
import { redirect } from '../http/redirect.ts'
import type { PageRoute } from '../http/route.ts'
import type { AccountVisit } from '../http/visit.ts'

const path = '/account/budgets'

/** The budgets of an account: its own, which it can change, and those of the operator (contract 46.1). */
export const budgetRoutes: readonly PageRoute[] = [
  { method: 'GET', path, access: 'account', handle: (visit) => showBudgets(visit) },
  { method: 'POST', path, access: 'account', handle: set },
  { method: 'POST', path: `${path}/:budgetId/remove`, access: 'account', handle: remove },
]

async function showBudgets(visit: AccountVisit, errorCode?: AccountsErrorCode): Promise<Response> {
  const { deps, signedIn, form } = visit
  const { id } = signedIn.account
  const nowMs = deps.clock.nowMs()
  const [states, keys, emails, webhooks] = await Promise.all([
    budgetStates(deps.budgets.store, id, deps.budgets.clock.nowMs()),
    deps.control.store.listKeys(id, maxListedKeys),
    deps.identity.store.listEmails(id),
    deps.webhooks.store.listWebhooks(id),
  ])
  return page(visit, {
    title: 'Budgets',
    lead: 'A budget limits what your requests can cost. Before we send a request, we place a hold: we reserve its highest possible cost in the budget. When the request ends, we charge its actual cost and release the rest. If the budget cannot cover the hold, the request is rejected.',
    status: errorCode === undefined ? 200 : 422,
    problem: errorCode === undefined ? undefined : 'The budget was not set. Please correct the error below.',
    body: html`<section class="card">
        <h2>Your budgets</h2>
        ${
          states.length === 0
            ? html`<p class="empty">You have no budgets. Set one below.</p>`
            : budgetList(states, {
                keys,
                changeable: { path, by: signedIn, mayChange: isOwn, mayRemove: isOwn },
              })
        }
        ${
          states.every(({ budget }) => isOwn(budget))
            ? ''
            : html`<p>
                Only the operator of this service can change the budgets that they set.
                <a href="/support">Contact support</a> to have one raised.
              </p>`
        }
      </section>
      <section class="card">
        <h2>Set a budget</h2>
        <form method="post" action="${path}">
          ${csrfInput(signedIn)} ${budgetFields({ keys, profiles: deps.profiles, nowMs }, form, errorCode)}
          <button>Set the budget</button>
        </form>
      </section>
      <section class="card">
        <h2>Alerts</h2>
        <p>${alertsText(deps.sendMail !== undefined, emails.length, webhooks.length)}</p>
        <p><a href="/account/webhooks">${webhooks.length === 0 ? 'Add a webhook' : 'See your webhooks'}</a></p>
      </section>
      <p class="side">
        <a href="/docs/budgets">How budgets work</a> ·
        <a href="/docs/errors/budget_exceeded">Why a request was rejected although some of the budget is left</a>
      </p>`,
  })
}

const isOwn = ({ setBy }: Budget): boolean => setBy === 'account'

/** Who is told when a budget is nearly used up (contract 46.11, 46.16). */
function alertsText(sendsMail: boolean, emails: number, webhooks: number): string {
  const receivers = [
    ...(sendsMail && emails > 0 ? [emails === 1 ? 'your email address' : 'your email addresses'] : []),
    ...(webhooks > 0 ? [webhooks === 1 ? 'your webhook' : `your ${webhooks} webhooks`] : []),
  ]
  if (receivers.length > 0)
    return `When 50%, 80%, and 100% of a budget is spent, we send an alert to ${receivers.join(' and ')}.`
  const how = sendsMail ? 'add an email address to your account, or add a webhook' : 'add a webhook'
  return `You do not get alerts yet. To be told when a budget is nearly used up, ${how}.`
}

async function set(visit: AccountVisit): Promise<Response> {
  const { deps, signedIn, form } = visit
  try {
    const profiles = deps.profiles.map(({ id }) => id)
    await setBudget(budgetDepsFor(visit), signedIn.account.id, readBudgetForm(form), 'account', profiles)
  } catch (error) {
    if (error instanceof AccountsError && isOfBudget(error.code)) return showBudgets(visit, error.code)
    throw error
  }
  return redirect(withNotice(path, 'budget-set'))
}

async function remove(visit: AccountVisit): Promise<Response> {
  const { params, signedIn } = visit
  await removeBudget(budgetDepsFor(visit), signedIn.account.id, params['budgetId'] ?? '', 'account')
  return redirect(withNotice(path, 'budget-removed'))
}
