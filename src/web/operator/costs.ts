import { html } from 'hono/html'
import type { CostGroup } from '../../accounts/ports.ts'
import { operatorActions } from '../../domain/operators.ts'
import { costFacts, costNote, costSection, costTable } from '../components/cost-tables.ts'
import type { Html } from '../components/html.ts'
import { writeNumber } from '../components/time.ts'
import {
  isPartial,
  maxPerDay,
  partialNote,
  rangeLinks,
  type UsageRange,
  usageRange,
} from '../components/usage-range.ts'
import { costBy, costCells, costOf, sumOf } from '../components/usage-sums.ts'
import { download, writeCsv } from '../http/download.ts'
import type { PageRoute } from '../http/route.ts'
import type { OperatorVisit } from '../http/visit.ts'
import { consolePage } from './console-page.ts'

const path = '/operator/costs'
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

function rangeOf({ query, deps }: OperatorVisit): UsageRange {
  return usageRange(query.get('range'), deps.clock.nowMs())
}

function read({ deps }: OperatorVisit, { fromMs, untilMs }: UsageRange): Promise<readonly CostGroup[]> {
  return deps.activity.addUpCosts({ fromMs, untilMs, maxPerDay })
}

async function showCosts(visit: OperatorVisit): Promise<Response> {
  const span = rangeOf(visit)
  const groups = await read(visit, span)
  return consolePage(visit, {
    title: 'Costs',
    lead: 'The cost of all accounts’ requests at the providers.',
    body: html`<section class="card">
        <h2>Totals</h2>
        ${rangeLinks(span.range, (range) => `${path}?range=${range}`)}
        ${groups.length === 0 ? html`<p class="empty">No account sent a request in this period.</p>` : totals(groups)}
        <p class="actions"><a class="button secondary" href="${path}.csv?range=${span.range}">Download CSV</a></p>
      </section>
      ${groups.length === 0 ? '' : await tables(visit, groups)}`,
  })
}

function totals(groups: readonly CostGroup[]): Html {
  const cost = costOf(groups)
  return html`<dl class="facts">
      <dt>Requests</dt>
      <dd>${writeNumber(sumOf(groups, ({ requests }) => requests))}</dd>
      ${costFacts(cost)}
    </dl>
    ${isPartial(groups) ? partialNote() : ''}
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
  const days = costBy(groups, ({ day }) => day).toSorted((one, other) => other.name.localeCompare(one.name))
  return costSection('Cost by day', {
    of: 'Day',
    rows: days.map((day) => ({ ...day, head: html`<th scope="row" class="nowrap">${day.name}</th>` })),
    showsUnknown: true,
  })
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
  const span = rangeOf(visit)
  const rows = (await read(visit, span))
    .slice(0, maxRows)
    .map(({ day, accountId, profile, backend, requests, cost }) => [
      day,
      accountId,
      profile,
      backend,
      requests,
      ...costCells({ requests, cost }),
    ])
  return download(`svc-router-costs-${span.range}.csv`, writeCsv(columns, rows))
}
