import { html } from 'hono/html'
import { page } from '../layout.ts'
import { planCards } from '../plan-cards.ts'
import type { Route } from '../route.ts'
import { writeNumber } from '../time.ts'
import type { Visit } from '../visit.ts'

export const pricingRoutes: readonly Route[] = [
  { method: 'GET', path: '/pricing', access: 'public', handle: showPricing },
]

async function showPricing(visit: Visit): Promise<Response> {
  const { plans, profiles, baseUrl } = visit.parts
  return page(visit, {
    title: 'Pricing',
    lead: 'A plan is a number of requests. They run on provider credentials of your own, which you pay there.',
    body: html`<h2 class="unseen">Plans</h2>
      ${planCards(visit, await visit.parts.offers())}
      <h2>Side by side</h2>
      <div class="scroll" tabindex="0" role="region" aria-label="Plans side by side">
        <table>
          <thead>
            <tr>
              <th scope="col">Plan</th>
              <th scope="col">A month</th>
              <th scope="col">A minute</th>
              <th scope="col">Premium</th>
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
            An answer counts once, however many providers were tried for it. What is refused or fails does not count.
          </li>
          ${profiles
            .filter(({ quotaUnits }) => quotaUnits !== 1)
            .map(({ id, quotaUnits }) => html`<li>An answer of <code>${id}</code> counts as ${quotaUnits}.</li>`)}
          <li>Lists of models, counts of tokens and stored answers are free.</li>
          <li>The month begins at 00:00 UTC on its first day. The minute is any 60 seconds.</li>
          <li>Limits belong to the account: more keys buy nothing, and cost nothing.</li>
        </ul>
        <h2>What is not offered</h2>
        <p>
          Access to providers through credentials of the service is off, and only ever switched on after
          <a href="/account/managed-access">a review</a>. Nobody’s credentials are pooled.
        </p>
        <p class="faint">
          The same numbers as JSON: <a href="${new URL(baseUrl).origin}/pricing">${new URL(baseUrl).origin}/pricing</a>
        </p>
      </section>`,
  })
}
