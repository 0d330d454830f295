import { html } from 'hono/html'
import type { Offer, Price } from '../../domain/billing.ts'
import { usualFusionsAtOnce, type Plan } from '../../domain/plans.ts'
import type { Visit } from '../http/visit.ts'
import type { Html } from './html.ts'
import { writePrice } from './money.ts'
import { writeCount, writeNumber } from './time.ts'

/** The plans side by side, with the limits that are enforced. */
export function planCards({ deps, signedIn }: Pick<Visit, 'deps' | 'signedIn'>, offers: readonly Offer[]): Html {
  const current = signedIn?.account.planId
  return html`<div class="cards plans">
    ${deps.plans.map(
      (plan) =>
        html`<section class="card">
          <h3>${plan.name} ${plan.id === current ? html`<span class="tag good">your plan</span>` : ''}</h3>
          ${priceTag(offers.find(({ planId }) => planId === plan.id)?.price)}
          <p class="figure">
            ${writeNumber(plan.requestsPerMonth)}<span>
              ${plan.requestsPerMonth === 1 ? 'request' : 'requests'} per month</span
            >
          </p>
          <ul class="ticks">
            <li>${writeCount(plan.requestsPerMinute, 'request')} per minute</li>
            <li>
              ${plan.premium ? 'All profiles, including svc-router/fusion: several models, one reply' : 'All profiles except premium ones'}
            </li>
            ${plan.premium ? html`<li>${writeCount(plan.fusionsAtOnce ?? usualFusionsAtOnce, 'concurrent fusion')}</li>` : ''}
            <li>All your keys and clients share these limits</li>
          </ul>
          ${action(plan, deps.defaultPlan, current)}
        </section>`,
    )}
  </div>`
}

function priceTag(price: Price | null | undefined): Html | '' {
  return price == null ? '' : html`<p class="figure price">${writePrice(price)}</p>`
}

function action({ id, name }: Plan, defaultPlan: string, current: string | undefined): Html | '' {
  if (id === current) return html`<p class="after"><a class="button secondary" href="/account">Your account</a></p>`
  if (current !== undefined)
    return html`<p class="after"><a class="button" href="/billing/upgrade">Change to ${name}</a></p>`
  return id === defaultPlan
    ? html`<p class="after"><a class="button" href="/account/setup">Get a key</a></p>`
    : html`<p class="after"><a class="button secondary" href="/billing/upgrade">Choose ${name}</a></p>`
}
