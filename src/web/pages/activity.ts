import { html } from 'hono/html'
import { maxListedKeys } from '../../accounts/keys.ts'
import type { ActivitySelection } from '../../accounts/ports.ts'
import type { StoredKey } from '../../domain/accounts.ts'
import { playgroundKeyId } from '../../domain/keys.ts'
import type { RefusedCount } from '../../domain/refused-requests.ts'
import { describeCost } from '../../domain/request-cost.ts'
import type { RequestRecord } from '../../domain/requests.ts'
import { describeSessionCost, isSessionId, type SessionCost } from '../../domain/session-costs.ts'
import { dayMs } from '../../runtime/durations.ts'
import { select } from '../components/field.ts'
import type { Html } from '../components/html.ts'
import { page } from '../components/layout.ts'
import { buildNames, playgroundName, type Names } from '../components/names.ts'
import { paging } from '../components/paging.ts'
import { refusedList } from '../components/refused-list.ts'
import { stateTag, writeMs } from '../components/request-line.ts'
import { writeDay, writeMinute, writeNumber } from '../components/time.ts'
import { download, writeCsv } from '../http/download.ts'
import type { PageRoute } from '../http/route.ts'
import type { AccountVisit } from '../http/visit.ts'

const perPage = 25
/** Maximum number of rows in a downloaded file. */
const maxRows = 5_000
/** A filter scans at most this many requests; choosing a day reaches further back. */
const among = 20_000
/** Rejected requests are summed over this many days if no day is chosen. */
const refusedDays = 7
/** More than the number of distinct errors that rejected requests of one account can have. */
const maxErrors = 200
/** Maximum number of keys listed in the filter. */
const maxShownKeys = 100

/** Every admitted request of an account, as a page, CSV, and JSON (contract 20.9). */
export const activityRoutes: readonly PageRoute[] = [
  { method: 'GET', path: '/activity', access: 'account', handle: showActivity },
  { method: 'GET', path: '/activity.csv', access: 'account', handle: giveCsv },
  { method: 'GET', path: '/activity.json', access: 'account', handle: giveJson },
]

/** The filter chosen above the list, without invalid values. */
interface Filter {
  readonly outcome?: 'answered' | 'failed'
  readonly profile?: string
  readonly key?: string
  readonly day?: string
  readonly session?: string
}

function filterOf(query: URLSearchParams): Filter {
  const names = ['outcome', 'profile', 'key', 'day', 'session']
  const [outcome, profile, key, day, session] = names.map((name) => query.get(name) ?? '')
  return {
    ...((outcome === 'answered' || outcome === 'failed') && { outcome }),
    ...(/^[\w./:-]{1,100}$/.test(profile ?? '') && { profile: profile! }),
    ...((/^key_\w{1,40}$/.test(key ?? '') || key === playgroundKeyId) && { key: key! }),
    ...(isDay(day ?? '') && { day: day! }),
    ...(isSessionId(session ?? '') && { session: session! }),
  }
}

function isDay(text: string): boolean {
  return /^20\d\d-\d\d-\d\d$/.test(text) && !Number.isNaN(Date.parse(text))
}

function selectionOf(filter: Filter, limit: number, beforeId: string | null): ActivitySelection {
  const { outcome, profile, key, day, session } = filter
  const fromMs = day === undefined ? undefined : Date.parse(day)
  return {
    limit,
    ...(outcome && { outcome }),
    ...(profile !== undefined && { profile }),
    ...(key !== undefined && { keyId: key }),
    ...(session !== undefined && { session }),
    ...(fromMs !== undefined && { fromMs, untilMs: fromMs + dayMs }),
    ...(beforeId !== null && /^req_\w{1,40}$/.test(beforeId) && { beforeId }),
  }
}

async function showActivity(visit: AccountVisit): Promise<Response> {
  const { deps, signedIn, query } = visit
  const { id } = signedIn.account
  const filter = filterOf(query)
  const [refused, found, keys, upstreams, session] = await Promise.all([
    readRefused(visit, filter),
    deps.activity.listActivity(id, selectionOf(filter, perPage + 1, query.get('before')), among),
    deps.control.store.listKeys(id, maxListedKeys),
    deps.control.store.listUpstreams(id),
    filter.session === undefined ? undefined : deps.activity.findSessionCost(id, filter.session),
  ])
  const shown = found.slice(0, perPage)
  const names = buildNames(keys, upstreams)
  const last = found.length > perPage ? shown.at(-1) : undefined
  const isFiltered = Object.keys(filter).length > 0
  return page(visit, {
    title: 'Activity',
    lead: 'Every request that we accepted, and its result. Open one to see its attempts, tokens, and errors. These records contain no text from requests or answers.',
    body: html`${refusedList(refused, names, refusedWhen(filter), shown.length === 0)}
      <section class="card">
        ${session === undefined ? '' : sessionNote(session)}
        ${filterForm(
          filter,
          keys,
          deps.profiles.map((profile) => profile.id),
        )}
        ${
          shown.length === 0
            ? emptyNote(isFiltered || query.has('before'))
            : html`<ul class="rows">
                ${shown.map((record) => row(record, names))}
              </ul>`
        }
        ${activityPaging(filter, query.has('before'), last?.id)}
        ${
          isFiltered && filter.session === undefined && last === undefined
            ? html`<p class="faint">
                Searched the latest ${writeNumber(among)}
                requests${filter.day === undefined ? '. Choose a day to search further back.' : ' from this day.'}
              </p>`
            : ''
        }
      </section>
      <p class="actions">
        <a href="/activity.csv${queryOf(filter)}">Download CSV</a>
        <a href="/activity.json${queryOf(filter)}">Download JSON</a>
        <span class="faint">At most the latest ${writeNumber(maxRows)} matching requests</span>
      </p>`,
  })
}

/** Rejected requests are counted without profile and session, and only with their latest key, so those filters exclude them. */
async function readRefused({ deps, signedIn, query }: AccountVisit, filter: Filter): Promise<readonly RefusedCount[]> {
  const { outcome, profile, key, day, session } = filter
  const isNarrow = profile !== undefined || key !== undefined || session !== undefined
  if (outcome === 'answered' || isNarrow || query.has('before')) return []
  const nowMs = deps.clock.nowMs()
  const fromMs = day === undefined ? nowMs - refusedDays * dayMs : Date.parse(day)
  const untilMs = day === undefined ? nowMs : fromMs + dayMs
  return deps.activity.sumRefused({ accountId: signedIn.account.id, fromMs, untilMs, limit: maxErrors })
}

function refusedWhen({ day }: Filter): string | Html {
  return day === undefined ? `in the last ${refusedDays} days` : html`on ${writeDay(Date.parse(day))}`
}

function activityPaging(filter: Filter, isBehind: boolean, lastId: string | undefined): Html | '' {
  return paging({
    label: 'More of the list',
    start: isBehind ? `/activity${queryOf(filter)}` : undefined,
    next: lastId === undefined ? undefined : `/activity${queryOf({ ...filter, before: lastId })}`,
  })
}

function sessionNote(session: SessionCost): Html {
  return html`<p class="faint">
    Only requests in session <code>${session.session}</code>: ${describeSessionCost(session)}.
    <a href="/usage?session=${session.session}">Its usage</a> · <a href="/activity">All requests</a>
  </p>`
}

function emptyNote(isFiltered: boolean): Html {
  return isFiltered
    ? html`<p class="empty">No requests match. <a href="/activity">See all</a></p>`
    : html`<p class="empty">
        No requests yet. Send one with one of <a href="/account/keys">your keys</a>, and it appears here.
      </p>`
}

function queryOf(values: Readonly<Record<string, string>> | Filter): string {
  const text = new URLSearchParams({ ...values }).toString()
  return text === '' ? '' : `?${text}`
}

function filterForm(filter: Filter, keys: readonly StoredKey[], profiles: readonly string[]): Html {
  const outcomes = [
    ['', 'All'],
    ['answered', 'Answered'],
    ['failed', 'With an error'],
  ] as const
  return html`<form class="filters" method="get" action="/activity">
    ${select('outcome', 'Outcome', outcomes, filter.outcome)}
    ${select('profile', 'Profile', [['', 'All'], ...profiles.map((name) => [name, name] as const)], filter.profile)}
    ${select(
      'key',
      'Key',
      [
        ['', 'All'],
        [playgroundKeyId, playgroundName],
        ...keys.slice(0, maxShownKeys).map(({ id, name }) => [id, name] as const),
      ],
      filter.key,
    )}
    <div class="field">
      <label for="day">Day</label>
      <input id="day" name="day" type="date" value="${filter.day ?? ''}" />
    </div>
    ${filter.session === undefined ? '' : html`<input type="hidden" name="session" value="${filter.session}" />`}
    <button class="secondary">Show</button>
  </form>`
}

/** An answer without a cost must not look free (contract 42.5). Requests without usage have nothing to price. */
function unknownCost({ usage }: RequestRecord): string {
  return usage === undefined ? '' : ' · cost unknown'
}

function row(record: RequestRecord, names: Names): Html {
  const { id, profile, keyId, admittedAtMs, attempts, totalMs, cost } = record
  const backend = attempts.at(-1)?.backend
  return html`<li>
    <div>
      <a href="/activity/${id}">${writeMinute(admittedAtMs)}<span class="unseen">, request ${id}</span></a>
      ${stateTag(record)}<br />
      <span class="faint"
        >${profile} ·
        ${names.key(keyId)}${backend === undefined ? '' : html` · ${names.backend(backend)}`}${
          attempts.length > 1 ? ` · ${attempts.length} attempts` : ''
        }${cost === undefined ? unknownCost(record) : ` · ${describeCost(cost)}`}</span
      >
    </div>
    <span class="faint">${writeMs(totalMs)}</span>
  </li>`
}

const columns = [
  'id',
  'admitted_at',
  'profile',
  'key_id',
  'format',
  'stream',
  'state',
  'error',
  'units_charged',
  'attempts',
  'backend',
  'first_content_ms',
  'total_ms',
  'input_tokens',
  'output_tokens',
  'tokens_from',
  'cached_tokens',
  'cache_write_tokens',
  'cost_usd',
  'cost_from',
  'cache_saved_usd',
  'prices',
  'session',
] as const

async function readAll({ deps, signedIn, query }: AccountVisit): Promise<readonly RequestRecord[]> {
  return deps.activity.listActivity(signedIn.account.id, selectionOf(filterOf(query), maxRows, null), among)
}

function usageCells({ usage }: RequestRecord): readonly (string | number | null)[] {
  if (usage === undefined) return [null, null, null, null, null]
  const { inputTokens, outputTokens, source, cachedTokens, cacheWriteTokens = 0 } = usage
  return [inputTokens, outputTokens, source, cachedTokens, cacheWriteTokens]
}

function costCells({ cost }: RequestRecord): readonly (string | number | null)[] {
  if (cost === undefined) return [null, null, null, null]
  const { usd, estimated, savedUsd, prices } = cost
  return [
    usd ?? null,
    estimated === true ? 'estimated' : 'counted',
    savedUsd === undefined ? null : Number(savedUsd),
    prices ?? null,
  ]
}

async function giveCsv(visit: AccountVisit): Promise<Response> {
  const rows = (await readAll(visit)).map((it) => [
    it.id,
    new Date(it.admittedAtMs).toISOString(),
    it.profile,
    it.keyId,
    it.format,
    String(it.stream),
    it.state,
    it.errorCode ?? null,
    it.charged,
    it.attempts.length,
    it.attempts.at(-1)?.backend ?? null,
    it.firstContentMs ?? null,
    it.totalMs,
    ...usageCells(it),
    ...costCells(it),
    it.session ?? null,
  ])
  return download('svc-router-activity.csv', writeCsv(columns, rows))
}

async function giveJson(visit: AccountVisit): Promise<Response> {
  const requests = await readAll(visit)
  const body = { truncated: requests.length >= maxRows, requests }
  return download('svc-router-activity.json', `${JSON.stringify(body, undefined, 2)}\n`)
}
