import { html } from 'hono/html'
import type { CostGroup } from '../../accounts/ports.ts'
import { periodAt } from '../../domain/account-meter.ts'
import { writeUsd } from '../../domain/money.ts'
import { operatorActions } from '../../domain/operators.ts'
import { dayMs } from '../../runtime/durations.ts'
import { costFacts, costNote, costTable } from '../components/cost-tables.ts'
import type { Html } from '../components/html.ts'
import { writeNumber } from '../components/time.ts'
import { costOf, sumOf } from '../components/usage-sums.ts'
import { download, writeCsv } from '../http/download.ts'
import type { PageRoute } from '../http/route.ts'
import type { OperatorVisit } from '../http/visit.ts'
import { consolePage } from './console-page.ts'

const path = '/operator/costs'
const recentDays = 30
/** At most this many requests are summed per day; the page says when there were more. */
const maxPerDay = 50_000
/** Maximum number of accounts whose names are looked up. */
const maxNamed = 50
/** Maximum number of rows in a downloaded file. */
const maxRows = 10_000
const own = 'connections of accounts'

/** What requests of all accounts cost, as a page and CSV (contract 42.12). */
export const costsRoutes: readonly PageRoute[] = [
  { method: 'GET', path, access: 'operator', ...operatorActions.see, handle: showCosts },
  { method: 'GET', path: `${path}.csv`, access: 'operator', ...operatorActions.see, handle: giveCsv },
]

interface Span {
  readonly range: 'month' | '30d'
  readonly fromMs: number
  readonly untilMs: number
}

/** Whole days in UTC. */
function spanOf({ query, deps }: OperatorVisit): Span {
  const nowMs = deps.clock.nowMs()
  const untilMs = (Math.floor(nowMs / dayMs) + 1) * dayMs
  return query.get('range') === 'month'
    ? { range: 'month', fromMs: periodAt(nowMs).startMs, untilMs }
    : { range: '30d', fromMs: untilMs - recentDays * dayMs, untilMs }
}

function read({ deps }: OperatorVisit, { fromMs, untilMs }: Span): Promise<readonly CostGroup[]> {
  return deps.activity.addUpCosts({ fromMs, untilMs, maxPerDay })
}

async function showCosts(visit: OperatorVisit): Promise<Response> {
  const span = spanOf(visit)
  const groups = await read(visit, span)
  return consolePage(visit, {
    title: 'Costs',
    lead: 'What the requests of all accounts cost at the providers.',
    body: html`<section class="card">
        <h2>Totals</h2>
        ${rangeLinks(span)}
        ${groups.length === 0 ? html`<p class="empty">No account sent a request in this period.</p>` : totals(groups)}
        <p class="actions"><a class="button secondary" href="${path}.csv?range=${span.range}">Download CSV</a></p>
      </section>
      ${groups.length === 0 ? '' : await tables(visit, groups)}`,
  })
}

function rangeLinks({ range }: Span): Html {
  const link = (value: Span['range'], text: string): Html =>
    html`<a href="${path}?range=${value}" ${value === range ? html`aria-current="true"` : ''}>${text}</a>`
  return html`<p class="ranges">${link('30d', 'Last 30 days')} ${link('month', 'This month')}</p>`
}

function totals(groups: readonly CostGroup[]): Html {
  const cost = costOf(groups)
  const isPartial = [...Map.groupBy(groups, ({ day }) => day).values()].some(
    (its) => sumOf(its, ({ requests }) => requests) >= maxPerDay,
  )
  return html`<dl class="facts">
      <dt>Requests</dt>
      <dd>${writeNumber(sumOf(groups, ({ requests }) => requests))}</dd>
      ${costFacts(cost)}
    </dl>
    ${
      isPartial
        ? html`<p class="warning">
            On the busiest days, only the latest ${writeNumber(maxPerDay)} requests are counted.
          </p>`
        : ''
    }
    <p class="faint">${costNote(cost)} <a href="/docs/costs">How costs are computed</a></p>`
}

async function tables({ deps }: OperatorVisit, groups: readonly CostGroup[]): Promise<Html> {
  const models = new Map(deps.backends.map(({ id, model }) => [id, model]))
  const backendOf = ({ backend }: CostGroup): string =>
    backend === null ? 'none' : models.has(backend) ? backend : own
  const modelOf = ({ backend }: CostGroup): string => (backend === null ? 'none' : (models.get(backend) ?? own))
  const names = await accountNames(deps.control.store, groups)
  return html`${costTable(
    'Cost by account',
    groups,
    ({ accountId }) => accountId,
    (id) => html`<a href="/operator/accounts/${id}/costs">${names.get(id) ?? id}</a>`,
  )}
  ${costTable('Cost by model', groups, modelOf)} ${costTable('Cost by backend', groups, backendOf)}
  ${costTable('Cost by profile', groups, ({ profile }) => profile)} ${dayTable(groups)}`
}

/** The names of the accounts with the most requests; a deleted account has none. */
async function accountNames(
  store: OperatorVisit['deps']['control']['store'],
  groups: readonly CostGroup[],
): Promise<ReadonlyMap<string, string>> {
  const ids = [...new Set(groups.map(({ accountId }) => accountId))].slice(0, maxNamed)
  const accounts = await Promise.all(ids.map((id) => store.findAccount(id)))
  return new Map(accounts.flatMap((account) => (account === undefined ? [] : [[account.id, account.name]])))
}

function dayTable(groups: readonly CostGroup[]): Html {
  const days = [...Map.groupBy(groups, ({ day }) => day)].sort(([one], [other]) => other.localeCompare(one))
  return html`<section class="card">
    <h2>Cost by day</h2>
    <div class="scroll" tabindex="0" role="region" aria-label="Cost by day">
      <table>
        <thead>
          <tr>
            <th scope="col">Day</th>
            <th scope="col" class="number">Cost</th>
            <th scope="col" class="number">Saved by caching</th>
            <th scope="col" class="number">Requests</th>
            <th scope="col" class="number">Cost unknown</th>
          </tr>
        </thead>
        <tbody>
          ${days.map(([day, its]) => {
            const cost = costOf(its)
            const count = sumOf(its, ({ requests }) => requests)
            return html`<tr>
              <th scope="row" class="nowrap">${day}</th>
              <td class="number">${cost === undefined ? 'unknown' : writeUsd(cost.amount)}</td>
              <td class="number">${cost === undefined ? 'unknown' : writeUsd(cost.saved)}</td>
              <td class="number">${writeNumber(count)}</td>
              <td class="number">${writeNumber(cost?.unknown ?? count)}</td>
            </tr>`
          })}
        </tbody>
      </table>
    </div>
  </section>`
}

const columns = [
  'day',
  'account',
  'profile',
  'backend',
  'requests',
  'cost_usd',
  'cache_saved_usd',
  'requests_with_unknown_cost',
] as const

async function giveCsv(visit: OperatorVisit): Promise<Response> {
  const span = spanOf(visit)
  const rows = (await read(visit, span))
    .slice(0, maxRows)
    .map(({ day, accountId, profile, backend, requests, cost }) => [
      day,
      accountId,
      profile,
      backend,
      requests,
      cost.priced === 0 ? null : cost.usd,
      cost.priced === 0 ? null : Number(cost.savedUsd),
      requests - cost.priced,
    ])
  return download(`svc-router-costs-${span.range}.csv`, writeCsv(columns, rows))
}
