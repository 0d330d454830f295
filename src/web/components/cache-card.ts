import { html } from 'hono/html'
import { type CacheGroup, type CacheUse, cacheUses, missesIn, writeReadShare } from '../../domain/cache-usage.ts'
import { describeReason } from '../../domain/cache-verdict.ts'
import { shareTable } from './chart.ts'
import type { Html } from './html.ts'
import type { Names } from './names.ts'
import { writeNumber } from './time.ts'

/** Keys and clients that are listed. */
const maxUses = 10

/** What providers read from their caches, by key and client, and why not more; empty if no request was long enough. */
export function cacheCard(groups: readonly CacheGroup[], names: Names): Html | string {
  const uses = cacheUses(groups)
  if (uses.length === 0) return ''
  const misses = missesIn(groups)
  return html`<section class="card">
      <h2>Prompt caches</h2>
      <p>A miss is a request for which less than 75% of the session’s previous prompt was read from a cache.</p>
      <div class="scroll" tabindex="0" role="region" aria-label="Prompt caches">
        <table>
          <thead>
            <tr>
              <th scope="col">Key</th>
              <th scope="col">Client</th>
              <th scope="col" class="number">Requests</th>
              <th scope="col" class="number">Input from caches</th>
              <th scope="col" class="number">Misses</th>
              <th scope="col">Most frequent reason</th>
            </tr>
          </thead>
          <tbody>
            ${uses.slice(0, maxUses).map((use) => useRow(use, names))}
          </tbody>
        </table>
      </div>
      ${uses.length > maxUses ? html`<p class="faint">The ${maxUses} rows with the most requests, of ${writeNumber(uses.length)}.</p>` : ''}
    </section>
    ${
      misses.length === 0
        ? ''
        : html`<section class="card">
            ${shareTable(
              'Cache misses by reason',
              misses.map(({ reason, turns }) => ({ name: describeReason({ reason }), count: turns })),
            )}
            <p><a href="/docs/caching#why-a-cache-missed">What to do about each reason</a></p>
          </section>`
    }`
}

function useRow(use: CacheUse, names: Names): Html {
  const [first] = use.misses
  const missed = use.misses.reduce((sum, { turns }) => sum + turns, 0)
  return html`<tr>
    <th scope="row">${names.key(use.keyId)}</th>
    <td class="nowrap">${use.client}</td>
    <td class="number">${writeNumber(use.turns)}</td>
    <td class="number">${writeReadShare(use)}</td>
    <td class="number">${writeNumber(missed)}</td>
    <td class="words">${first === undefined ? '–' : describeReason(first)}</td>
  </tr>`
}
