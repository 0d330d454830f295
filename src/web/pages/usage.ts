import { html } from 'hono/html'
import { type BudgetState, budgetStates } from '../../accounts/budgets.ts'
import { maxListedKeys } from '../../accounts/keys.ts'
import type { UsageGroup } from '../../accounts/ports.ts'
import { type Period, periodAt, type UsageSignals } from '../../domain/account-meter.ts'
import type { StoredKey } from '../../domain/accounts.ts'
import type { CacheGroup } from '../../domain/cache-usage.ts'
import { playgroundKeyId } from '../../domain/keys.ts'
import { isSessionId } from '../../domain/session-costs.ts'
import { budgetList } from '../components/budget-list.ts'
import { cacheCard } from '../components/cache-card.ts'
import { dayChart, shareTable } from '../components/chart.ts'
import { costFacts, costNote, costTables } from '../components/cost-tables.ts'
import type { Html } from '../components/html.ts'
import { page } from '../components/layout.ts'
import { buildNames, type Names } from '../components/names.ts'
import { quotaBar } from '../components/quota-bar.ts'
import { sessionTable } from '../components/session-table.ts'
import { writeCount, writeDay, writeNumber } from '../components/time.ts'
import {
  isPartial,
  maxPerDay,
  partialNote,
  rangeLinks,
  type UsageRange,
  usageRange,
} from '../components/usage-range.ts'
import { barsByDay, costCells, costOf, countBy, projectMonth, sumOf } from '../components/usage-sums.ts'
import { download, writeCsv } from '../http/download.ts'
import type { PageRoute } from '../http/route.ts'
import type { AccountVisit } from '../http/visit.ts'

const maxShares = 10
const maxSessions = 8
/** Maximum number of rows in a downloaded file. */
const maxRows = 10_000

/** The sums of all admitted requests of an account, as a page, CSV, and JSON (contract 20.9). */
export const usageRoutes: readonly PageRoute[] = [
  { method: 'GET', path: '/usage', access: 'account', handle: showUsage },
  { method: 'GET', path: '/usage.csv', access: 'account', handle: giveCsv },
  { method: 'GET', path: '/usage.json', access: 'account', handle: giveJson },
]

/** The days shown, and which requests of them. */
interface Span extends UsageRange {
  /** Only this session, or this key. */
  readonly session: string | undefined
  readonly keyId: string | undefined
}

function spanOf({ query, deps }: AccountVisit): Span {
  const session = query.get('session') ?? ''
  const key = query.get('key') ?? ''
  return {
    ...usageRange(query.get('range'), deps.clock.nowMs()),
    session: isSessionId(session) ? session : undefined,
    keyId: /^key_\w{1,40}$/.test(key) || key === playgroundKeyId ? key : undefined,
  }
}

function readGroups(
  { deps, signedIn }: AccountVisit,
  { fromMs, untilMs, session, keyId }: Span,
): Promise<readonly UsageGroup[]> {
  return deps.activity.addUpUsage(signedIn.account.id, { fromMs, untilMs, maxPerDay, session, keyId })
}

async function showUsage(visit: AccountVisit): Promise<Response> {
  const { deps, signedIn } = visit
  const { id } = signedIn.account
  const nowMs = deps.clock.nowMs()
  const span = spanOf(visit)
  const { fromMs, untilMs, session, keyId } = span
  const isWhole = session === undefined && keyId === undefined
  const [groups, sessions, cache, usage, keys, upstreams, budgets] = await Promise.all([
    readGroups(visit, span),
    session === undefined ? deps.activity.addUpSessions(id, { fromMs, untilMs, limit: maxSessions, keyId }) : [],
    session === undefined ? deps.activity.addUpCache({ accountId: id, fromMs, untilMs }) : [],
    deps.usageOf(signedIn.account),
    deps.control.store.listKeys(id, maxListedKeys),
    deps.control.store.listUpstreams(id),
    budgetStates(deps.budgets.store, id, deps.budgets.clock.nowMs()),
  ])
  const names = buildNames(keys, upstreams, deps.backends)
  return page(visit, {
    title: 'Usage',
    lead: html`Your requests, tokens, costs, and remaining monthly quota. To see individual requests, open
      <a href="/activity">Activity</a>.`,
    summary: 'Your requests, tokens, costs, and remaining monthly quota.',
    body: html`${isWhole ? '' : onlyNote(span, names)}
      ${isWhole ? html`<div class="cards">${monthCard(usage, nowMs)} ${totals(groups, span)}</div>` : totals(groups, span)}
      ${isWhole && budgets.length > 0 ? budgetsCard(budgets, keys) : ''}
      <section class="card">
        <h2>Requests by day</h2>
        ${rangeLinks(span.range, (range) => `/usage${queryOf({ ...span, range })}`)}
        ${isPartial(groups) ? partialNote() : ''}
        ${
          groups.length === 0
            ? html`<p class="empty">
                No requests in this period. Send one with one of <a href="/account/keys">your keys</a>, and it appears
                here.
              </p>`
            : dayChart(barsByDay(groups, fromMs, untilMs), 'Requests by day')
        }
        <p class="actions">
          <a class="button secondary" href="/usage.csv${queryOf(span)}">Download CSV</a>
          <a class="button secondary" href="/usage.json${queryOf(span)}">Download JSON</a>
        </p>
      </section>
      ${groups.length === 0 ? '' : html`<div class="cards wide">${shares(groups, names)}</div>`}
      ${groups.length === 0 ? '' : costTables(groups, names)} ${sessionTable(sessions)}
      ${cacheCard(ofKey(cache, keyId), names)}`,
  })
}

function monthCard(usage: UsageSignals | undefined, nowMs: number): Html {
  return html`<section class="card">
    <h2>This month</h2>
    ${
      usage === undefined
        ? html`<p class="problem">Your plan no longer exists. <a href="/billing/upgrade">Choose another one</a>.</p>`
        : html`${quotaBar(usage, nowMs)} ${projectionOf(usage, periodAt(nowMs), nowMs)}`
    }
  </section>`
}

function budgetsCard(budgets: readonly BudgetState[], keys: readonly StoredKey[]): Html {
  return html`<section class="card">
    <h2>Budgets</h2>
    ${budgetList(budgets, { keys })}
    <p><a href="/account/budgets">Change budgets</a></p>
  </section>`
}

function projectionOf(usage: UsageSignals, { startMs }: Period, nowMs: number): Html {
  if (usage.quotaRemaining === 0)
    return html`<p class="problem">Your monthly quota is used up. <a href="/billing/upgrade">See plans</a></p>`
  const projection = projectMonth(usage, startMs, nowMs)
  if (projection === undefined)
    return html`<p class="faint">A projection appears after your first request and the first 12 hours of the month.</p>`
  const { units, usedUpAtMs } = projection
  return usedUpAtMs === undefined
    ? html`<p>
        At this rate you will use about <strong>${writeCount(units, 'request')}</strong> this month, which is within
        your plan.
      </p>`
    : html`<p class="warning">
        At this rate your quota will be used up around ${writeDay(usedUpAtMs)}. <a href="/billing/upgrade">See plans</a>
      </p>`
}

function totals(groups: readonly UsageGroup[], { range }: Span): Html {
  const cost = costOf(groups)
  const requests = sumOf(groups, (group) => group.requests)
  const failed = sumOf(groups, (group) => (group.errorCode === null ? 0 : group.requests))
  const estimated = sumOf(groups, (group) => group.estimated)
  return html`<section class="card">
    <h2>${range === 'month' ? 'Totals for this month' : 'Last 30 days'}</h2>
    <dl class="facts">
      <dt>Requests</dt>
      <dd>${writeNumber(requests)}</dd>
      <dt>With an error</dt>
      <dd>
        ${writeNumber(failed)}${failed === 0 ? '' : html` <span class="faint">(${percent(failed, requests)})</span>`}
      </dd>
      <dt>Charged to your quota</dt>
      <dd>${writeNumber(sumOf(groups, (group) => group.charged))}</dd>
      <dt>Input tokens</dt>
      <dd>${writeNumber(sumOf(groups, (group) => group.inputTokens))}</dd>
      <dt>Output tokens</dt>
      <dd>${writeNumber(sumOf(groups, (group) => group.outputTokens))}</dd>
      ${costFacts(cost)}
    </dl>
    ${groups.length === 0 ? '' : html`<p class="faint">${costNote(cost)} <a href="/docs/costs">How costs are computed</a></p>`}
    ${
      estimated === 0
        ? ''
        : html`<p class="faint">
            Token counts for ${writeCount(estimated, 'request')} are estimates because the provider did not report them.
          </p>`
    }
  </section>`
}

function percent(part: number, whole: number): string {
  return `${((part / whole) * 100).toFixed(1)}%`
}

/** Which requests are shown, if not all. */
function onlyNote(span: Span, names: Names): Html {
  const { session, keyId } = span
  return html`<p>
    Only
    requests${keyId === undefined ? '' : html` with the key <strong>${names.key(keyId)}</strong>`}${
      session === undefined ? '' : html` in session <code>${session}</code>`
    }. <a href="/activity${filterOf(span)}">See them</a> · <a href="/usage">Usage for all requests</a>
  </p>`
}

function ofKey(groups: readonly CacheGroup[], keyId: string | undefined): readonly CacheGroup[] {
  return keyId === undefined ? groups : groups.filter((group) => group.keyId === keyId)
}

function filterOf({ session, keyId }: Pick<Span, 'session' | 'keyId'>): string {
  const only = { ...(session !== undefined && { session }), ...(keyId !== undefined && { key: keyId }) }
  return `?${new URLSearchParams(only).toString()}`
}

function queryOf(span: Pick<Span, 'range' | 'session' | 'keyId'>): string {
  const rest = filterOf(span).slice(1)
  return `?range=${span.range}${rest === '' ? '' : `&${rest}`}`
}

function shares(groups: readonly UsageGroup[], names: Names): Html {
  const errors = countBy(groups, ({ errorCode }) => errorCode)
  const listed = (
    caption: string,
    nameOf: (group: UsageGroup) => string | null,
    show: (name: string) => string,
  ): Html =>
    html`<section class="card">
      ${shareTable(
        caption,
        countBy(groups, nameOf)
          .slice(0, maxShares)
          .map(({ name, count }) => ({ name: show(name), count })),
      )}
    </section>`
  return html`${listed(
      'By profile',
      ({ profile }) => profile,
      (name) => name,
    )}
    ${listed(
      'By backend',
      ({ backend }) => backend ?? '',
      (name) => (name === '' ? 'none' : names.backend(name)),
    )}
    ${listed('By key', ({ keyId }) => keyId, names.key)}
    <section class="card">
      ${
        errors.length === 0
          ? html`<h2>By error</h2>
              <p class="empty">No request ended with an error.</p>`
          : shareTable(
              'By error',
              errors.slice(0, maxShares).map(({ name, count }) => ({
                name: html`<a href="/activity?outcome=failed">${name}</a>`,
                count,
              })),
              'failed',
            )
      }
    </section>`
}

const columns = [
  'day',
  'profile',
  'backend',
  'key_id',
  'error',
  'requests',
  'units_charged',
  'input_tokens',
  'output_tokens',
  'requests_with_estimated_tokens',
  'cached_tokens',
  'cache_write_tokens',
  'cost_usd',
  'cache_saved_usd',
  'requests_with_unknown_cost',
] as const

async function giveCsv(visit: AccountVisit): Promise<Response> {
  const span = spanOf(visit)
  const groups = await readGroups(visit, span)
  const rows = groups
    .slice(0, maxRows)
    .map((it) => [
      it.day,
      it.profile,
      it.backend,
      it.keyId,
      it.errorCode,
      it.requests,
      it.charged,
      it.inputTokens,
      it.outputTokens,
      it.estimated,
      it.cachedTokens,
      it.cacheWriteTokens,
      ...costCells(it),
    ])
  return download(`svc-router-usage-${span.range}.csv`, writeCsv(columns, rows))
}

async function giveJson(visit: AccountVisit): Promise<Response> {
  const span = spanOf(visit)
  const groups = await readGroups(visit, span)
  const usage = await visit.deps.usageOf(visit.signedIn.account)
  const body = {
    from: new Date(span.fromMs).toISOString(),
    until: new Date(span.untilMs).toISOString(),
    /** Whether requests or groups were left out. */
    truncated: isPartial(groups) || groups.length > maxRows,
    quota: usage ?? null,
    usage: groups.slice(0, maxRows),
  }
  return download(`svc-router-usage-${span.range}.json`, `${JSON.stringify(body, undefined, 2)}\n`)
}
