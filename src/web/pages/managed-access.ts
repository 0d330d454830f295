import { html } from 'hono/html'
import { AccountsError } from '../../accounts/accounts-error.ts'
import {
  maxRequestsPerAccount,
  requestManagedAccess,
  withdrawManagedRequest,
} from '../../accounts/managed-access/managed-access.ts'
import type { ManagedReadiness, ManagedRequest, ManagedRequestState } from '../../domain/managed-access.ts'
import { breadcrumbs } from '../components/breadcrumbs.ts'
import type { Html } from '../components/html.ts'
import { csrfInput, page } from '../components/layout.ts'
import { withNotice } from '../components/notices.ts'
import { writeMinute } from '../components/time.ts'
import { actorOf } from '../http/actor.ts'
import { redirect } from '../http/redirect.ts'
import type { PageRoute } from '../http/route.ts'
import type { AccountVisit } from '../http/visit.ts'

const path = '/account/managed-access'
export const managedAccessRoutes: readonly PageRoute[] = [
  { method: 'GET', path, access: 'account', handle: (visit) => show(visit) },
  { method: 'POST', path, access: 'account', handle: ask },
  { method: 'POST', path: `${path}/:managedId/withdraw`, access: 'account', handle: withdraw },
]

const stateWords: Readonly<Record<ManagedRequestState, readonly [tone: string, words: string]>> = {
  requested: ['warn', 'waiting for review'],
  approved: ['good', 'approved'],
  rejected: ['bad', 'rejected'],
  withdrawn: ['', 'withdrawn'],
}

async function show(visit: AccountVisit, problem?: string): Promise<Response> {
  const { deps, signedIn } = visit
  const selection = { accountId: signedIn.account.id, limit: maxRequestsPerAccount }
  const [requests, readiness] = await Promise.all([
    deps.managed.store.listManagedRequests(selection),
    deps.managed.readiness(),
  ])
  const current = requests.find(({ state }) => state === 'requested' || state === 'approved')
  return page(visit, {
    title: 'Managed access',
    above: breadcrumbs({ path: '/account', name: 'Account' }),
    lead: 'Managed access lets you use providers through the service’s credentials instead of your own. Request it here. A person reviews each request, and access is on only after approval.',
    status: problem === undefined ? 200 : 422,
    problem,
    body: html`<section class="card">
        <h2>Your request</h2>
        ${current === undefined ? askForm(visit, requests.length) : requestLine(visit, current)}
      </section>
      <section class="card">
        <h2>Requirements</h2>
        ${checklist(readiness)}
        <p class="faint">
          Managed access is on only while all of these requirements are met. If one fails, it turns off within a second.
          Your own providers are not affected.
        </p>
      </section>
      <section class="card">
        <h2>What we never ask for</h2>
        <p>
          Passwords, keys, or sign-ins for a provider. We never pool personal provider accounts or share one
          subscription among several accounts.
        </p>
      </section>
      ${history(requests.filter((request) => request !== current))}`,
  })
}

function askForm({ signedIn }: AccountVisit, made: number): Html {
  if (made >= maxRequestsPerAccount)
    return html`<p>
      This account has reached its limit on requests for managed access. <a href="/support">Contact support</a>.
    </p>`
  return html`<p>You have not requested managed access. The operator approves or rejects each request.</p>
    <form method="post" action="${path}">${csrfInput(signedIn)}<button>Request a review</button></form>`
}

function requestLine({ signedIn }: AccountVisit, request: ManagedRequest): Html {
  return html`<p>${tag(request.state)} requested on ${writeMinute(request.createdAtMs)}</p>
    <form method="post" action="${path}/${request.id}/withdraw">
      ${csrfInput(signedIn)}<button class="danger">Withdraw</button>
    </form>`
}

function checklist({ switchedOn, providers, durableQuotas, durableAudit }: ManagedReadiness): Html {
  const checks = [
    ['The operator has turned on managed access', switchedOn],
    [`Providers allow resale${providers.length === 0 ? '' : `: ${providers.join(', ')}`}`, providers.length > 0],
    ['Quotas are stored durably', durableQuotas],
    ['Audit events are stored durably', durableAudit],
  ] as const
  return html`<ul class="rows">
    ${checks.map(
      ([name, holds]) =>
        html`<li>
          <span>${name}</span> <span class="tag ${holds ? 'good' : ''}">${holds ? 'met' : 'not met'}</span>
        </li>`,
    )}
  </ul>`
}

function history(requests: readonly ManagedRequest[]): Html | '' {
  if (requests.length === 0) return ''
  return html`<section class="card">
    <h2>Earlier requests</h2>
    <ul class="rows">
      ${requests.map(
        ({ state, createdAtMs, decidedAtMs }) =>
          html`<li>
            <span>Requested on ${writeMinute(createdAtMs)}</span>
            <span>${tag(state)} ${decidedAtMs === null ? '' : writeMinute(decidedAtMs)}</span>
          </li>`,
      )}
    </ul>
  </section>`
}

function tag(state: ManagedRequestState): Html {
  const [tone, words] = stateWords[state]
  return html`<span class="tag ${tone}">${words}</span>`
}

async function ask(visit: AccountVisit): Promise<Response> {
  const { deps, signedIn } = visit
  const managedDeps = { ...deps.control, store: deps.managed.store, actor: actorOf(visit) }
  try {
    await requestManagedAccess(managedDeps, signedIn.account.id)
  } catch (error) {
    if (!(error instanceof AccountsError && error.code === 'managed_request_open')) throw error
    return show(
      visit,
      'This account already has an open request for managed access, or it has reached the limit on such requests.',
    )
  }
  return redirect(withNotice(path, 'managed-asked'))
}

async function withdraw(visit: AccountVisit): Promise<Response> {
  const { deps, signedIn, params } = visit
  const managedDeps = { ...deps.control, store: deps.managed.store, actor: actorOf(visit) }
  try {
    await withdrawManagedRequest(managedDeps, signedIn.account.id, params['managedId'] ?? '')
  } catch (error) {
    if (!(error instanceof AccountsError && error.code === 'managed_request_decided')) throw error
    return show(visit, 'This request is already closed.')
  }
  return redirect(withNotice(path, 'managed-withdrawn'))
}
