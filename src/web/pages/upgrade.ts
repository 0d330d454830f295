import { html } from 'hono/html'
import { AccountsError } from '../../accounts/accounts-error.ts'
import { openCheckout } from '../../accounts/billing/checkout.ts'
import { describeChange, listOwnRequests, type PlanChange } from '../../accounts/billing/overview.ts'
import { requestUpgrade, withdrawUpgrade } from '../../accounts/billing/upgrade-requests.ts'
import type { Offer } from '../../domain/billing.ts'
import { breadcrumbs } from '../components/breadcrumbs.ts'
import type { Html } from '../components/html.ts'
import { csrfInput, page } from '../components/layout.ts'
import { writePrice } from '../components/money.ts'
import { withNotice } from '../components/notices.ts'
import { writeDay } from '../components/time.ts'
import { actorOf } from '../http/actor.ts'
import { redirect } from '../http/redirect.ts'
import type { PageRoute } from '../http/route.ts'
import type { AccountVisit } from '../http/visit.ts'
import { ownOrigin, paymentOrigins, planFacts, simulatedNote } from './billing.ts'

export const upgradeRoutes: readonly PageRoute[] = [
  { method: 'GET', path: '/billing/upgrade', access: 'account', formTargets: paymentOrigins, handle: showPlans },
  { method: 'POST', path: '/billing/upgrade', access: 'account', handle: choosePlan },
  { method: 'POST', path: '/billing/requests/:requestId/withdraw', access: 'account', handle: withdraw },
]

async function showPlans(visit: AccountVisit): Promise<Response> {
  const { deps, signedIn } = visit
  const { plansDeps, sold } = deps.sales
  const offers = sold === undefined ? undefined : await sold.plansDeps.billing.offers()
  const [request] = (await listOwnRequests(plansDeps, signedIn.account.id)).filter(({ state }) => state === 'requested')
  const changes = await Promise.all(
    deps.plans.map(({ id }) => describeChange(plansDeps, signedIn.account.id, id, offers ?? [])),
  )
  return page(visit, {
    title: 'Plans',
    above: breadcrumbs({ path: '/billing', name: 'Billing' }),
    lead:
      offers === undefined
        ? 'Request another plan. The operator of this service reviews each request.'
        : 'Upgrades take effect immediately. Downgrades take effect at the end of the paid period.',
    body: html`${simulatedNote(deps)}
      ${request === undefined ? '' : html`<p class="notice">Your request is waiting for the operator. <a href="/billing">See it</a>.</p>`}
      <div class="cards plans">
        ${changes.map((change) => planCard(change, offers, request !== undefined, visit))}
      </div>`,
  })
}

function planCard(
  change: PlanChange,
  offers: readonly Offer[] | undefined,
  isAsking: boolean,
  visit: AccountVisit,
): Html {
  const { to, direction, price } = change
  return html`<section class="card">
    <h2>${to.name}${direction === 'same' ? html` <span class="tag good">your plan</span>` : ''}</h2>
    ${price === null ? '' : html`<p class="figure price">${writePrice(price)}</p>`} ${planFacts(to)} ${effectOf(change)}
    ${action(change, offers, isAsking, visit)}
  </section>`
}

async function choosePlan(visit: AccountVisit): Promise<Response> {
  const { deps, signedIn, form } = visit
  const { plansDeps, sold } = deps.sales
  const planId = form.text('plan')
  try {
    if (sold === undefined) {
      await requestUpgrade({ ...plansDeps, actor: actorOf(visit) }, signedIn.account.id, planId)
      return redirect(withNotice('/billing', 'upgrade-requested'))
    }
    const origin = ownOrigin(visit)
    const pages = {
      returnUrl: `${origin}/billing/return`,
      cancelUrl: `${origin}${withNotice('/billing/upgrade', 'checkout-left')}`,
    }
    const { url } = await openCheckout(sold.plansDeps, signedIn.account.id, planId, pages)
    return redirect(url)
  } catch (error) {
    // The page was open while its offers changed: show the current ones.
    if (error instanceof AccountsError && error.code !== 'account_unknown') return redirect('/billing/upgrade')
    throw error
  }
}

async function withdraw(visit: AccountVisit): Promise<Response> {
  const { deps, signedIn, params } = visit
  try {
    await withdrawUpgrade(
      { ...deps.sales.plansDeps, actor: actorOf(visit) },
      signedIn.account.id,
      params['requestId'] ?? '',
    )
  } catch (error) {
    // It was decided in the meantime; the page shows the decision.
    if (!(error instanceof AccountsError && error.code === 'upgrade_decided')) throw error
    return redirect('/billing')
  }
  return redirect(withNotice('/billing', 'upgrade-withdrawn'))
}

function effectOf({ direction, takesEffectAtMs }: PlanChange): Html | '' {
  if (direction !== 'downgrade' || takesEffectAtMs === null) return ''
  return html`<p class="faint">Takes effect on ${writeDay(takesEffectAtMs)}. Until then you keep your current plan.</p>`
}

function action(
  { to, direction }: PlanChange,
  offers: readonly Offer[] | undefined,
  isAsking: boolean,
  { signedIn, deps }: AccountVisit,
): Html | '' {
  if (direction === 'same' || isAsking) return ''
  // To move to the free plan, customers cancel on the payment provider's page.
  const isFree = offers !== undefined && to.id === deps.sales.plansDeps.defaultPlan
  if (offers !== undefined && !isFree && !offers.some(({ planId }) => planId === to.id)) return ''
  const words = offers === undefined ? `Request ${to.name}` : `Change to ${to.name}`
  return html`<form class="after" method="post" action="${isFree ? '/billing/portal' : '/billing/upgrade'}">
    ${csrfInput(signedIn)}<input type="hidden" name="plan" value="${to.id}" /><button
      class="${direction === 'downgrade' ? 'secondary' : ''}"
    >
      ${words}
    </button>
  </form>`
}
