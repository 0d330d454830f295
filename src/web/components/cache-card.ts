import { html } from 'hono/html'
import { type CacheGroup, cacheUses, writeMisses, writeReadShare } from '../../domain/cache-usage.ts'
import type { Html } from './html.ts'
import type { Names } from './names.ts'
import { writeNumber } from './time.ts'

/** Keys and clients that are listed. */
const maxUses = 10

/** What providers read from their caches, by key and client; empty if no request was long enough. */
export function cacheCard(groups: readonly CacheGroup[], names: Names): Html | string {
  const uses = cacheUses(groups)
  if (uses.length === 0) return ''
  return html`<section class="card">
    <h2>Prompt caches</h2>
    <p>
      What providers read from their caches, and why they read less than they could have.
      <a href="/docs/caching#why-a-cache-missed">What to do</a>
    </p>
    <div class="scroll" tabindex="0" role="region" aria-label="Prompt caches">
      <table>
        <thead>
          <tr>
            <th scope="col">Key</th>
            <th scope="col">Client</th>
            <th scope="col" class="number">Turns</th>
            <th scope="col" class="number">From caches</th>
            <th scope="col">Misses</th>
          </tr>
        </thead>
        <tbody>
          ${uses.slice(0, maxUses).map(
            (use) =>
              html`<tr>
                <td>${names.key(use.keyId)}</td>
                <td>${use.client}</td>
                <td class="number">${writeNumber(use.turns)}</td>
                <td class="number">${writeReadShare(use)}</td>
                <td>${writeMisses(use)}</td>
              </tr>`,
          )}
        </tbody>
      </table>
    </div>
  </section>`
}
