import { html } from 'hono/html'
import { AccountsError } from '../../accounts/accounts-error.ts'
import { openPortal } from '../../accounts/billing/checkout.ts'
import { type BillingOverview, describeBilling, listOwnRequests } from '../../accounts/billing/overview.ts'
import { BillingFailure } from '../../accounts/billing/ports.ts'
import { refresh } from '../../accounts/billing/refresh.ts'
import type { UpgradeRequest, UpgradeState } from '../../domain/billing.ts'
import type { Plan } from '../../domain/plans.ts'
import type { Html } from '../components/html.ts'
import { csrfInput, page } from '../components/layout.ts'
import { writePrice } from '../components/money.ts'
import { writeCount, writeDay } from '../components/time.ts'
import { originOf } from '../http/hosts.ts'
import { PageError } from '../http/page-error.ts'
import { redirect } from '../http/redirect.ts'
import type { PageRoute } from '../http/route.ts'
import type { AccountVisit, Visit, WebhookVisit } from '../http/visit.ts'
import type { WebDeps } from '../web-deps.ts'

/** The origins that forms of these pages may lead to: the payment provider's pages. */
export const paymentOrigins = ({ sales }: WebDeps): readonly string[] => sales.sold?.plansDeps.billing.pageOrigins ?? []

/** The origin the browser is using. In local mode the machine has several names, and the session is valid for only one. */
export function ownOrigin({ deps, headers }: Visit): string {
  return originOf(headers.get('host') ?? new URL(deps.appUrl).host, deps.appUrl)
}

export const billingRoutes: readonly PageRoute[] = [
  { method: 'GET', path: '/billing', access: 'account', formTargets: paymentOrigins, handle: showBilling },
  { method: 'GET', path: '/billing/return', access: 'account', handle: comeBack },
  { method: 'POST', path: '/billing/portal', access: 'account', handle: goToPortal },
  { method: 'POST', path: '/webhooks/stripe', access: 'webhook', handle: takeWebhook },
]

async function showBilling(visit: AccountVisit): Promise<Response> {
  const { deps, signedIn } = visit
  const { plansDeps, sold } = deps.sales
  const overview = await describeBilling(plansDeps, signedIn.account.id)
  const requests = await listOwnRequests(plansDeps, signedIn.account.id)
  const { plan } = overview
  return page(visit, {
    title: 'Billing',
    lead: html`You are on the <strong>${plan?.name ?? signedIn.account.planId}</strong> plan.`,
    body: html`${simulatedNote(deps)}
      <section class="card">
        <h2>Your plan</h2>
        ${plan === undefined ? '' : planFacts(plan)} ${subscriptionFacts(overview, deps.plans)}
        <div class="actions">
          <a class="button" href="/billing/upgrade">Change plan</a>
          ${
            sold === undefined || overview.subscription === null
              ? ''
              : html`<form method="post" action="/billing/portal">
                  ${csrfInput(signedIn)}<button class="secondary">Manage card, invoices, and cancellation</button>
                </form>`
          }
        </div>
      </section>
      ${requests.length === 0 ? '' : requestList(requests, deps, visit)}`,
  })
}

/** Returning from checkout: reads the purchase immediately instead of waiting for a webhook. */
async function comeBack({ deps, signedIn }: AccountVisit): Promise<Response> {
  const { sold } = deps.sales
  try {
    if (sold !== undefined) await refresh(sold.plansDeps, signedIn.account.id)
  } catch (error) {
    // The webhook or the next background check will apply it; until then the page shows the stored state.
    if (!(error instanceof BillingFailure)) throw error
    deps.log({ event: 'billing_failing', reason: error.trouble })
  }
  return redirect('/billing')
}

async function goToPortal(visit: AccountVisit): Promise<Response> {
  const { deps, signedIn } = visit
  const { sold } = deps.sales
  if (sold === undefined) throw new PageError('not_found')
  try {
    const { url } = await openPortal(sold.plansDeps, signedIn.account.id, `${ownOrigin(visit)}/billing/return`)
    return redirect(url)
  } catch (error) {
    if (error instanceof AccountsError && error.code === 'not_subscribed') return redirect('/billing/upgrade')
    throw error
  }
}

async function takeWebhook({ deps, body, headers }: WebhookVisit): Promise<Response> {
  const { sold } = deps.sales
  if (sold === undefined) throw new PageError('not_found')
  const { status, outcome } = await sold.handleWebhook(body, headers)
  return Response.json({ outcome }, { status })
}

/** Shown on every payment page when payments are simulated (contract 32.10). */
export function simulatedNote({ sales }: WebDeps): Html | '' {
  if (sales.sold?.plansDeps.billing.isSimulated !== true) return ''
  return html`<p class="notice">Payments are simulated on this machine: no money moves.</p>`
}

/** The limits of a plan, as they are enforced. */
export function planFacts({ requestsPerMinute, requestsPerMonth, premium }: Plan): Html {
  return html`<ul class="ticks">
    <li>${writeCount(requestsPerMonth, 'request')} per month</li>
    <li>${writeCount(requestsPerMinute, 'request')} per minute</li>
    <li>${premium ? 'Premium profiles, including fusion' : 'No premium profiles'}</li>
  </ul>`
}

function subscriptionFacts({ nextInvoice, pendingChange, paymentDue }: BillingOverview, plans: readonly Plan[]): Html {
  const nameOf = (planId: string | null): string => plans.find(({ id }) => id === planId)?.name ?? 'another plan'
  return html`${
    paymentDue === null
      ? ''
      : html`<p class="problem">
          An invoice has been unpaid since ${writeDay(paymentDue.sinceMs)}. Pay it before
          ${writeDay(paymentDue.planEndsAtMs)} to keep your plan.
        </p>`
  }
  ${pendingChange === null ? '' : html`<p>Your plan changes to ${nameOf(pendingChange.planId)} on ${writeDay(pendingChange.atMs)}.</p>`}
  ${
    nextInvoice === null
      ? ''
      : html`<p>
          Your next invoice is due on
          ${writeDay(nextInvoice.atMs)}${nextInvoice.price === null ? '' : html`: ${writePrice(nextInvoice.price)}`}.
        </p>`
  }`
}

const stateWords: Readonly<Record<UpgradeState, string>> = {
  requested: 'waiting for the operator',
  approved: 'approved',
  rejected: 'not approved',
  withdrawn: 'withdrawn by you',
}

function requestList(requests: readonly UpgradeRequest[], deps: WebDeps, { signedIn }: AccountVisit): Html {
  const nameOf = (planId: string): string => deps.plans.find(({ id }) => id === planId)?.name ?? planId
  return html`<section class="card">
    <h2>Your requests</h2>
    <ul class="rows">
      ${requests.map(
        ({ id, planId, state, createdAtMs }) =>
          html`<li>
            <div>
              <strong>${nameOf(planId)}</strong>: ${stateWords[state]}<br />
              <span class="faint">requested ${writeDay(createdAtMs)}</span>
            </div>
            ${
              state === 'requested'
                ? html`<form method="post" action="/billing/requests/${id}/withdraw">
                    ${csrfInput(signedIn)}<button class="quiet">Withdraw</button>
                  </form>`
                : ''
            }
          </li>`,
      )}
    </ul>
  </section>`
}
