import { html } from 'hono/html'
import { maxListedKeys } from '../../accounts/keys.ts'
import type { Account } from '../../domain/accounts.ts'
import { cacheCard } from '../components/cache-card.ts'
import { costFacts, costNote, costTables } from '../components/cost-tables.ts'
import type { Html } from '../components/html.ts'
import { buildNames } from '../components/names.ts'
import { writeNumber } from '../components/time.ts'
import { maxPerDay, recentDays, usageRange } from '../components/usage-range.ts'
import { costOf, sumOf } from '../components/usage-sums.ts'
import type { OperatorVisit } from '../http/visit.ts'

/** What an account's requests of the last days cost, by key and model, and what came from caches (contract 42.12). */
export async function costsBody({ deps }: OperatorVisit, { id }: Account): Promise<Html> {
  const { fromMs, untilMs } = usageRange('30d', deps.clock.nowMs())
  const [groups, cache, keys, upstreams] = await Promise.all([
    deps.activity.addUpUsage(id, { fromMs, untilMs, maxPerDay }),
    deps.activity.addUpCache({ accountId: id, fromMs, untilMs }),
    deps.control.store.listKeys(id, maxListedKeys),
    deps.control.store.listUpstreams(id),
  ])
  const cost = costOf(groups)
  const names = buildNames(keys, upstreams, deps.backends)
  if (groups.length === 0)
    return html`<section class="card">
      <p class="empty">This account sent no requests in the last ${recentDays} days.</p>
    </section>`
  return html`<section class="card">
      <h2>Totals</h2>
      <dl class="facts">
        <dt>Requests</dt>
        <dd>${writeNumber(sumOf(groups, ({ requests }) => requests))}</dd>
        ${costFacts(cost)}
      </dl>
      <p class="faint">${costNote(cost)} <a href="/docs/costs">How costs are computed</a></p>
    </section>
    ${costTables(groups, names)} ${cacheCard(cache, names)}`
}
