import { html } from 'hono/html'
import { maxRequestsPerAccount, requestManagedAccess, withdrawManagedRequest } from '../../accounts/managed-access.ts'
import { AccountsError } from '../../accounts/refusals.ts'
import type { ManagedReadiness, ManagedRequest, ManagedRequestState } from '../../domain/managed-access.ts'
import { actorOf } from '../actor.ts'
import { csrfInput, page, type Html } from '../layout.ts'
import { withNotice } from '../notices.ts'
import { redirect } from '../redirect.ts'
import type { Route } from '../route.ts'
import { writeMinute } from '../time.ts'
import type { AccountVisit } from '../visit.ts'
import { trail } from '../trail.ts'

const path = '/account/managed-access'
export const managedAccessRoutes: readonly Route[] = [
  { method: 'GET', path, access: 'account', handle: (visit) => show(visit) },
  { method: 'POST', path, access: 'account', handle: ask },
  { method: 'POST', path: `${path}/:managedId/withdraw`, access: 'account', handle: withdraw },
]

const stateWords: Readonly<Record<ManagedRequestState, readonly [tone: string, words: string]>> = {
  requested: ['warn', 'waits for review'],
  approved: ['good', 'approved'],
  rejected: ['bad', 'rejected'],
  withdrawn: ['', 'withdrawn'],
}

async function show(visit: AccountVisit, problem?: string): Promise<Response> {
  const { parts, signedIn } = visit
  const selection = { accountId: signedIn.account.id, limit: maxRequestsPerAccount }
  const [requests, readiness] = await Promise.all([
    parts.managed.store.listManagedRequests(selection),
    parts.managed.readiness(),
  ])
  const current = requests.find(({ state }) => state === 'requested' || state === 'approved')
  return page(visit, {
    title: 'Managed access',
    above: trail({ path: '/account', name: 'Account' }),
    lead: 'Providers through credentials of the service instead of your own. You can ask for it here; a person reviews it, and nothing is switched on by asking.',
    status: problem === undefined ? 200 : 422,
    problem,
    body: html`<section class="card">
        <h2>Your request</h2>
        ${current === undefined ? askForm(visit, requests.length) : requestLine(visit, current)}
      </section>
      <section class="card">
        <h2>Whether it is on</h2>
        ${checklist(readiness)}
        <p class="faint">
          It is on only while all of these hold; when one fails it is off within a second. Your own providers are not
          touched by it.
        </p>
      </section>
      <section class="card">
        <h2>What we never ask for</h2>
        <p>
          Passwords, keys or sign-ins of a provider. Nobody’s personal accounts are pooled, and one subscription is for
          one account.
        </p>
      </section>
      ${history(requests.filter((request) => request !== current))}`,
  })
}

function askForm({ signedIn }: AccountVisit, made: number): Html {
  if (made >= maxRequestsPerAccount)
    return html`<p>This account has asked as often as it may. <a href="/support">Write to us</a>.</p>`
  return html`<p>There is none. One subscription for one account; the operator approves or rejects it.</p>
    <form method="post" action="${path}">${csrfInput(signedIn)}<button>Ask for a review</button></form>`
}

function requestLine({ signedIn }: AccountVisit, request: ManagedRequest): Html {
  return html`<p>${tag(request.state)} asked on ${writeMinute(request.createdAtMs)}</p>
    <form method="post" action="${path}/${request.id}/withdraw">
      ${csrfInput(signedIn)}<button class="danger">Withdraw</button>
    </form>`
}

function checklist({ switchedOn, providers, durableQuotas, durableAudit }: ManagedReadiness): Html {
  const checks = [
    ['The operator has switched it on', switchedOn],
    [`Providers allow resale${providers.length === 0 ? '' : `: ${providers.join(', ')}`}`, providers.length > 0],
    ['Quotas are durable', durableQuotas],
    ['Audit events are durable', durableAudit],
  ] as const
  return html`<ul class="rows">
    ${checks.map(
      ([name, holds]) =>
        html`<li>
          <span>${name}</span> <span class="tag ${holds ? 'good' : ''}">${holds ? 'holds' : 'does not hold'}</span>
        </li>`,
    )}
  </ul>`
}

function history(requests: readonly ManagedRequest[]): Html | '' {
  if (requests.length === 0) return ''
  return html`<section class="card">
    <h2>Before</h2>
    <ul class="rows">
      ${requests.map(
        ({ state, createdAtMs, decidedAtMs }) =>
          html`<li>
            <span>Asked on ${writeMinute(createdAtMs)}</span>
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
  const { parts, signedIn } = visit
  const plane = { ...parts.control, store: parts.managed.store, actor: actorOf(visit) }
  try {
    await requestManagedAccess(plane, signedIn.account.id)
  } catch (error) {
    if (!(error instanceof AccountsError && error.code === 'managed_request_open')) throw error
    return show(visit, 'A request of this account is open already, or it has asked as often as it may.')
  }
  return redirect(withNotice(path, 'managed-asked'))
}

async function withdraw(visit: AccountVisit): Promise<Response> {
  const { parts, signedIn, params } = visit
  const plane = { ...parts.control, store: parts.managed.store, actor: actorOf(visit) }
  try {
    await withdrawManagedRequest(plane, signedIn.account.id, params['managedId'] ?? '')
  } catch (error) {
    if (!(error instanceof AccountsError && error.code === 'managed_request_decided')) throw error
    return show(visit, 'This request is over already.')
  }
  return redirect(withNotice(path, 'managed-withdrawn'))
}
