import { html } from 'hono/html'
import { page } from '../components/layout.ts'
import { planCards } from '../components/plan-cards.ts'
import { writeNumber } from '../components/time.ts'
import type { PageRoute } from '../http/route.ts'
import type { Visit } from '../http/visit.ts'

export const pricingRoutes: readonly PageRoute[] = [
  { method: 'GET', path: '/pricing', access: 'public', handle: showPricing },
]

async function showPricing(visit: Visit): Promise<Response> {
  const { plans, profiles, baseUrl } = visit.deps
  return page(visit, {
    title: 'Pricing',
    lead: 'A plan includes a number of requests per month. Unless we provide models for you, requests use your own provider credentials, and you pay your providers directly. Get a key first, then choose a plan.',
    body: html`<h2 class="unseen">Plans</h2>
      ${planCards(visit, await visit.deps.offers())}
      <h2>Side by side</h2>
      <div class="scroll" tabindex="0" role="region" aria-label="Plans side by side">
        <table>
          <thead>
            <tr>
              <th scope="col">Plan</th>
              <th scope="col">Requests per month</th>
              <th scope="col">Requests per minute</th>
              <th scope="col">Premium profiles</th>
            </tr>
          </thead>
          <tbody>
            ${plans.map(
              ({ name, requestsPerMonth, requestsPerMinute, premium }) =>
                html`<tr>
                  <th scope="row">${name}</th>
                  <td>${writeNumber(requestsPerMonth)}</td>
                  <td>${writeNumber(requestsPerMinute)}</td>
                  <td>${premium ? 'yes' : 'no'}</td>
                </tr>`,
            )}
          </tbody>
        </table>
      </div>
      <section class="prose">
        <h2>What counts</h2>
        <ul>
          <li>
            Each answered request counts once, no matter how many providers were tried. A request also counts if its
            answer is interrupted, or if your client disconnects or times out after a provider was called. Rejected
            requests, and other requests that fail before an answer begins, do not count toward the monthly quota.
          </li>
          ${profiles
            .filter(({ quotaUnits }) => quotaUnits !== 1)
            .map(
              ({ id, quotaUnits }) => html`<li>A request to <code>${id}</code> counts as ${quotaUnits} requests.</li>`,
            )}
          <li>Listing models, counting tokens, and reading stored responses are free.</li>
          <li>Months start at 00:00 UTC on the first day. The per-minute limit covers any 60 seconds.</li>
          <li>Limits apply to the whole account. Additional keys are free but do not raise the limits.</li>
        </ul>
        <h2>What is not included</h2>
        <p>
          Plans do not include access to providers through our own credentials. You can
          <a href="/account/managed-access">request it</a>, and a person reviews each request. We never pool customers’
          credentials.
        </p>
        <p class="faint">
          The same numbers as JSON: <a href="${new URL(baseUrl).origin}/pricing">${new URL(baseUrl).origin}/pricing</a>
        </p>
      </section>`,
  })
}
