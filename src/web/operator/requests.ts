import { html } from 'hono/html'
import { AccountsError, type AccountsErrorCode } from '../../accounts/accounts-error.ts'
import { approveUpgrade, rejectUpgrade } from '../../accounts/billing/upgrade-requests.ts'
import type { Account } from '../../domain/accounts.ts'
import type { UpgradeRequest } from '../../domain/billing.ts'
import { hasRole, operatorActions } from '../../domain/operators.ts'
import type { Html } from '../components/html.ts'
import { csrfInput } from '../components/layout.ts'
import { withNotice } from '../components/notices.ts'
import { writeAgo, writeCount, writeDay } from '../components/time.ts'
import { operatorActor } from '../http/actor.ts'
import { redirect } from '../http/redirect.ts'
import type { PageRoute } from '../http/route.ts'
import type { OperatorVisit } from '../http/visit.ts'
import { consolePage } from './console-page.ts'

const path = '/operator/requests'
/** Maximum number of open requests shown, newest first, and of decided ones. */
const maxShownOpen = 100
const maxShownDecided = 20
const { see, reviewUpgrade } = operatorActions

/** Requests for another plan, if plans are not sold. */
export const requestsRoutes: readonly PageRoute[] = [
  { method: 'GET', path, access: 'operator', ...see, handle: (visit) => showRequests(visit) },
  { method: 'POST', path: `${path}/:requestId/approve`, access: 'operator', ...reviewUpgrade, handle: approve },
  { method: 'POST', path: `${path}/:requestId/reject`, access: 'operator', ...reviewUpgrade, handle: reject },
]

/** Errors that the page explains. */
const problems: Partial<Record<AccountsErrorCode, string>> = {
  upgrade_decided: 'That request has been decided or withdrawn in the meantime. The page shows its current state.',
  plan_unknown: 'The requested plan no longer exists. Reject the request.',
}

async function showRequests(visit: OperatorVisit, problem?: string): Promise<Response> {
  const { deps } = visit
  const { store } = deps.sales.plansDeps
  const [open, all] = await Promise.all([
    store.listUpgradeRequests({ limit: maxShownOpen, onlyOpen: true }),
    store.listUpgradeRequests({ limit: maxShownOpen + maxShownDecided }),
  ])
  const decided = all.filter(({ state }) => state !== 'requested').slice(0, maxShownDecided)
  const accounts = await accountsOf(visit, [...open, ...decided])
  return consolePage(visit, {
    title: 'Upgrade requests',
    lead: 'Accounts that requested another plan. Approving a request changes the plan immediately.',
    status: problem === undefined ? 200 : 422,
    problem,
    body: html`<section class="card">
        <h2>Waiting</h2>
        ${
          open.length === 0
            ? html`<p class="empty">No open requests.</p>`
            : html`<ul class="rows">
                ${open.map((request) => openRow(visit, request, accounts.get(request.accountId)))}
              </ul>`
        }
        ${open.length < maxShownOpen ? '' : html`<p class="faint">Showing the newest ${maxShownOpen}.</p>`}
      </section>
      ${
        decided.length === 0
          ? ''
          : html`<section class="card">
              <h2>Recently decided</h2>
              <ul class="rows">
                ${decided.map((request) => decidedRow(visit, request, accounts.get(request.accountId)))}
              </ul>
            </section>`
      }`,
  })
}

async function accountsOf(
  { deps }: OperatorVisit,
  requests: readonly UpgradeRequest[],
): Promise<ReadonlyMap<string, Account>> {
  const ids = [...new Set(requests.map(({ accountId }) => accountId))]
  const found = await Promise.all(ids.map((id) => deps.control.store.findAccount(id)))
  return new Map(found.flatMap((account) => (account === undefined ? [] : [[account.id, account]])))
}

function openRow(visit: OperatorVisit, request: UpgradeRequest, account: Account | undefined): Html {
  const { deps, operator } = visit
  const { id, accountId, planId, createdAtMs } = request
  const name = account?.name ?? accountId
  const plan = deps.plans.find((known) => known.id === planId)
  return html`<li>
    <div>
      <a href="/operator/accounts/${accountId}"><strong>${name}</strong></a
      >: ${nameOf(visit, account?.planId)} → <strong>${nameOf(visit, planId)}</strong><br />
      <span class="faint"
        >requested ${writeAgo(createdAtMs, deps.clock.nowMs())}
        ${plan === undefined ? '' : `· ${writeCount(plan.requestsPerMonth, 'request')} per month`}</span
      >
    </div>
    ${
      hasRole(operator.role, reviewUpgrade.role)
        ? html`<div class="actions">
            <form method="post" action="${path}/${id}/approve">
              ${csrfInput(visit)}<button>Approve<span class="unseen"> for ${name}</span></button>
            </form>
            <form method="post" action="${path}/${id}/reject">
              ${csrfInput(visit)}<button class="quiet">Reject<span class="unseen"> for ${name}</span></button>
            </form>
          </div>`
        : ''
    }
  </li>`
}

function decidedRow(visit: OperatorVisit, request: UpgradeRequest, account: Account | undefined): Html {
  const { accountId, planId, state, decidedAtMs, createdAtMs } = request
  return html`<li>
    <div>
      <a href="/operator/accounts/${accountId}">${account?.name ?? accountId}</a>: ${nameOf(visit, planId)}
      <span class="tag ${state === 'approved' ? 'good' : ''}">${state}</span>
    </div>
    <span class="faint">${writeDay(decidedAtMs ?? createdAtMs)}</span>
  </li>`
}

function nameOf({ deps }: OperatorVisit, planId: string | undefined): string {
  return deps.plans.find(({ id }) => id === planId)?.name ?? planId ?? 'deleted account'
}

function approve(visit: OperatorVisit): Promise<Response> {
  return deciding(visit, approveUpgrade, 'upgrade-approved')
}

function reject(visit: OperatorVisit): Promise<Response> {
  return deciding(visit, rejectUpgrade, 'upgrade-rejected')
}

async function deciding(
  visit: OperatorVisit,
  decide: typeof approveUpgrade,
  notice: 'upgrade-approved' | 'upgrade-rejected',
): Promise<Response> {
  const upgradesDeps = { ...visit.deps.sales.plansDeps, actor: operatorActor(visit) }
  try {
    await decide(upgradesDeps, visit.params['requestId'] ?? '')
    return redirect(withNotice(path, notice))
  } catch (error) {
    const text = error instanceof AccountsError ? problems[error.code] : undefined
    if (text === undefined) throw error
    return showRequests(visit, text)
  }
}
