import { html } from 'hono/html'
import { AccountsError, type AccountsErrorCode } from '../../accounts/accounts-error.ts'
import { changePlan, resumeAccount, suspendAccount } from '../../accounts/accounts.ts'
import { removeBudget, setBudget } from '../../accounts/budgets.ts'
import { findOwnKey, revokeEveryKey, revokeKey } from '../../accounts/keys.ts'
import type { Account } from '../../domain/accounts.ts'
import { operatorActions } from '../../domain/operators.ts'
import { breadcrumbs } from '../components/breadcrumbs.ts'
import { isOfBudget, readBudgetForm } from '../components/budget-fields.ts'
import { withNotice, type Notice } from '../components/notices.ts'
import { operatorAccountsDepsFor, operatorBudgetDepsFor } from '../http/control.ts'
import { PageError } from '../http/page-error.ts'
import { redirect } from '../http/redirect.ts'
import type { PageRoute } from '../http/route.ts'
import type { OperatorVisit } from '../http/visit.ts'
import { accountBody } from './account-body.ts'
import { costsBody } from './account-costs.ts'
import { consolePage } from './console-page.ts'

const path = '/operator/accounts/:accountId'
const { see, changePlan: planAction, suspendAccount: suspension, revokeKeys, changeBudgets } = operatorActions

/** One account and the actions for operators. */
export const accountPageRoutes: readonly PageRoute[] = [
  { method: 'GET', path, access: 'operator', ...see, handle: (visit) => showAccount(visit) },
  { method: 'GET', path: `${path}/costs`, access: 'operator', ...see, handle: showCosts },
  { method: 'POST', path: `${path}/plan`, access: 'operator', ...planAction, handle: putOnPlan },
  { method: 'POST', path: `${path}/suspend`, access: 'operator', ...suspension, handle: suspend },
  { method: 'POST', path: `${path}/resume`, access: 'operator', ...suspension, handle: resume },
  { method: 'POST', path: `${path}/budgets`, access: 'operator', ...changeBudgets, handle: limitSpending },
  { method: 'POST', path: `${path}/budgets/:budgetId/remove`, access: 'operator', ...changeBudgets, handle: endBudget },
  { method: 'POST', path: `${path}/keys/revoke-all`, access: 'operator', ...revokeKeys, handle: revokeAll },
  { method: 'POST', path: `${path}/keys/:keyId/revoke`, access: 'operator', ...revokeKeys, handle: revokeOne },
]

async function showAccount(visit: OperatorVisit, errorCode?: AccountsErrorCode): Promise<Response> {
  const account = await accountOf(visit)
  return consolePage(visit, {
    title: account.name,
    lead: html`<code>${account.id}</code>`,
    above: breadcrumbs({ path: '/operator/accounts', name: 'Accounts' }),
    status: errorCode === undefined ? 200 : 422,
    problem: errorCode === undefined ? undefined : 'The budget was not set. Please correct the error below.',
    body: await accountBody(visit, account, errorCode),
  })
}

async function showCosts(visit: OperatorVisit): Promise<Response> {
  const account = await accountOf(visit)
  return consolePage(visit, {
    title: `Costs of ${account.name}`,
    lead: 'The last 30 days.',
    above: breadcrumbs(
      { path: '/operator/accounts', name: 'Accounts' },
      { path: `/operator/accounts/${account.id}`, name: account.name },
    ),
    body: await costsBody(visit, account),
  })
}

async function putOnPlan(visit: OperatorVisit): Promise<Response> {
  const account = await accountOf(visit)
  const { deps, form } = visit
  const planId = form.choice(
    'plan',
    deps.plans.map(({ id }) => id),
  )
  if (planId === undefined) throw new PageError('not_our_form')
  if (planId === account.planId) return redirect(`/operator/accounts/${account.id}`)
  await changePlan(operatorAccountsDepsFor(visit), account.id, planId, deps.plans)
  return back(account, 'plan-changed')
}

async function limitSpending(visit: OperatorVisit): Promise<Response> {
  const account = await accountOf(visit)
  try {
    const profiles = visit.deps.profiles.map(({ id }) => id)
    await setBudget(operatorBudgetDepsFor(visit), account.id, readBudgetForm(visit.form), 'operator', profiles)
  } catch (error) {
    if (error instanceof AccountsError && isOfBudget(error.code)) return showAccount(visit, error.code)
    throw error
  }
  return back(account, 'budget-set')
}

async function endBudget(visit: OperatorVisit): Promise<Response> {
  const account = await accountOf(visit)
  await removeBudget(operatorBudgetDepsFor(visit), account.id, visit.params['budgetId'] ?? '', 'operator')
  return back(account, 'budget-removed')
}

async function suspend(visit: OperatorVisit): Promise<Response> {
  const account = await accountOf(visit)
  await unlessSo('account_already_suspended', () => suspendAccount(operatorAccountsDepsFor(visit), account.id))
  return back(account, 'account-suspended')
}

async function resume(visit: OperatorVisit): Promise<Response> {
  const account = await accountOf(visit)
  await unlessSo('account_not_suspended', () => resumeAccount(operatorAccountsDepsFor(visit), account.id))
  return back(account, 'account-resumed')
}

async function revokeOne(visit: OperatorVisit): Promise<Response> {
  const account = await accountOf(visit)
  const control = operatorAccountsDepsFor(visit)
  const { id } = await findOwnKey(control, account.id, visit.params['keyId'] ?? '')
  await unlessSo('key_already_revoked', () => revokeKey(control, id))
  return back(account, 'key-revoked')
}

async function revokeAll(visit: OperatorVisit): Promise<Response> {
  const account = await accountOf(visit)
  await revokeEveryKey(operatorAccountsDepsFor(visit), account.id)
  return back(account, 'keys-revoked')
}

async function accountOf({ deps, params }: OperatorVisit): Promise<Account> {
  const account = await deps.control.store.findAccount(params['accountId'] ?? '')
  if (account === undefined) throw new AccountsError('account_unknown')
  return account
}

/** Ignores the error that someone else made the same change first. */
async function unlessSo(code: AccountsError['code'], change: () => Promise<unknown>): Promise<void> {
  try {
    await change()
  } catch (error) {
    if (!(error instanceof AccountsError && error.code === code)) throw error
  }
}

function back({ id }: Account, notice: Notice): Response {
  return redirect(withNotice(`/operator/accounts/${id}`, notice))
}
