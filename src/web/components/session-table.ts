import { html } from 'hono/html'
import { type SessionCost, writeSessionSum } from '../../domain/session-costs.ts'
import type { Html } from './html.ts'
import { writeMinute, writeNumber } from './time.ts'

/** The most expensive sessions, each with a link to its requests; empty if there are none (contract 42.13). */
export function sessionTable(sessions: readonly SessionCost[]): Html | string {
  if (sessions.length === 0) return ''
  const hasUnknown = sessions.some(({ requests, priced }) => priced < requests)
  return html`<section class="card">
    <h2>Cost by session</h2>
    <p>
      The most expensive series of requests that continue one another, such as conversations with an agent.
      <a href="/docs/caching#sessions">More about sessions</a>
    </p>
    <div class="scroll" tabindex="0" role="region" aria-label="Cost by session">
      <table>
        <thead>
          <tr>
            <th scope="col">Last request</th>
            <th scope="col" class="number">Cost</th>
            <th scope="col" class="number">Saved by caching</th>
            <th scope="col" class="number">From caches</th>
            <th scope="col" class="number">Requests</th>
            ${hasUnknown ? html`<th scope="col" class="number">Cost unknown</th>` : ''}
          </tr>
        </thead>
        <tbody>
          ${sessions.map((session) => row(session, hasUnknown))}
        </tbody>
      </table>
    </div>
  </section>`
}

function row(session: SessionCost, hasUnknown: boolean): Html {
  const { session: id, requests, priced, inputTokens, cachedTokens, lastMs } = session
  return html`<tr>
    <th scope="row">
      <a href="/activity?session=${id}">${writeMinute(lastMs)}<span class="unseen">, session ${id}</span></a>
    </th>
    <td class="number">${writeSessionSum(session, session.usd)}</td>
    <td class="number">${writeSessionSum(session, session.savedUsd)}</td>
    <td class="number">${inputTokens === 0 ? '–' : `${Math.round((100 * cachedTokens) / inputTokens)}%`}</td>
    <td class="number">${writeNumber(requests)}</td>
    ${hasUnknown ? html`<td class="number">${writeNumber(requests - priced)}</td>` : ''}
  </tr>`
}
