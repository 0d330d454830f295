import { html } from 'hono/html'
import { maxListedKeys } from '../../accounts/keys.ts'
import { describeVerdict, verdictIn } from '../../domain/cache-verdict.ts'
import type { Usage } from '../../domain/conversation.ts'
import { embeddingsFormatId } from '../../domain/format-id.ts'
import { shownName } from '../../domain/fusion-record.ts'
import { readDollars, writeUsd } from '../../domain/money.ts'
import type { ProviderError } from '../../domain/provider-error.ts'
import { describeCost, describeSavings } from '../../domain/request-cost.ts'
import type { RequestRecord } from '../../domain/requests.ts'
import { describeExclusion } from '../../domain/routing-plan-text.ts'
import { describeSessionCost, type SessionCost } from '../../domain/session-costs.ts'
import type { Attempt } from '../../domain/upstream.ts'
import { breadcrumbs } from '../components/breadcrumbs.ts'
import { fusionCard } from '../components/fusion-card.ts'
import type { Html } from '../components/html.ts'
import { page } from '../components/layout.ts'
import { buildNames, type Names } from '../components/names.ts'
import { stateTag, writeMs } from '../components/request-line.ts'
import { writeCount, writeMinute, writeNumber } from '../components/time.ts'
import { download } from '../http/download.ts'
import { PageError } from '../http/page-error.ts'
import type { PageRoute } from '../http/route.ts'
import type { AccountVisit } from '../http/visit.ts'

export const requestRoutes: readonly PageRoute[] = [
  { method: 'GET', path: '/activity/:recordId', access: 'account', handle: showRequest },
  { method: 'GET', path: '/activity/:recordId/record.json', access: 'account', handle: giveRecord },
]

/** A request of another account is reported as not found, like one that does not exist. */
async function ownRequest({ deps, params, signedIn }: AccountVisit): Promise<RequestRecord> {
  const record = await deps.activity.findActivity(signedIn.account.id, params['recordId'] ?? '')
  if (record === undefined) throw new PageError('not_found')
  return record
}

async function giveRecord(visit: AccountVisit): Promise<Response> {
  const record = await ownRequest(visit)
  return download(`${record.id}.json`, `${JSON.stringify(record, undefined, 2)}\n`)
}

async function showRequest(visit: AccountVisit): Promise<Response> {
  const { deps, signedIn, params } = visit
  const { id } = signedIn.account
  const [record, keys, upstreams, errors] = await Promise.all([
    ownRequest(visit),
    deps.control.store.listKeys(id, maxListedKeys),
    deps.control.store.listUpstreams(id),
    deps.providerErrors(id, params['recordId'] ?? ''),
  ])
  const names = buildNames(keys, upstreams)
  const { session } = record
  const sessionCost = session === undefined ? undefined : await deps.activity.findSessionCost(id, session)
  return page(visit, {
    title: 'Request',
    above: breadcrumbs({ path: '/activity', name: 'Activity' }),
    lead: html`<code>${record.id}</code> ${stateTag(record)}`,
    body: html`<section class="card">
        <h2>Result</h2>
        ${facts(record, names, sessionCost)}
      </section>
      <section class="card">
        <h2>Attempts</h2>
        ${attemptTable(record.attempts, names)} ${passedByList(record.passedBy, names)}
      </section>
      ${providerErrors(errors, names)} ${(record.fusions ?? []).map((fusion) => fusionCard(fusion, names))}
      <p class="actions">
        <a href="/activity/${record.id}/record.json">Download JSON</a>
        ${
          record.format === embeddingsFormatId
            ? ''
            : html`<a href="/playground?profile=${encodeURIComponent(record.profile)}"
                >Try this profile in the playground</a
              >`
        }
      </p>
      <p class="faint">This record contains no text from the request or the answer.</p>`,
  })
}

function facts(record: RequestRecord, names: Names, session: SessionCost | undefined): Html {
  const { usage, errorCode, firstContentMs, totalMs, charged, units, periodId } = record
  const cache = verdictIn(record.attempts)
  return html`<dl class="facts">
    <dt>Time</dt>
    <dd>${writeMinute(record.admittedAtMs)}</dd>
    <dt>Key</dt>
    <dd>${names.key(record.keyId)}</dd>
    <dt>Profile</dt>
    <dd>${record.profile}</dd>
    <dt>Format</dt>
    <dd>${record.format}${record.stream ? ', streamed' : ''}</dd>
    <dt>Error</dt>
    <dd>${errorLink(errorCode)}</dd>
    <dt>First content</dt>
    <dd>${firstContentMs === undefined ? 'none' : `after ${writeMs(firstContentMs)}`}</dd>
    <dt>Total time</dt>
    <dd>${writeMs(totalMs)}</dd>
    <dt>Tokens</dt>
    <dd>
      ${
        usage === undefined
          ? 'unknown'
          : `${writeNumber(usage.inputTokens)} in${cachedText(usage)}, ${writeNumber(usage.outputTokens)} out, ${usage.source === 'estimated' ? 'estimated by us' : 'counted by the provider'}`
      }
    </dd>
    ${
      cache === undefined
        ? ''
        : html`<dt>Cache</dt>
            <dd>${describeVerdict(cache)} · <a href="/docs/caching#why-a-cache-missed">reasons</a></dd>`
    }
    <dt>Cost</dt>
    <dd>${costText(record)}</dd>
    ${
      session === undefined
        ? ''
        : html`<dt>Session</dt>
            <dd>
              ${describeSessionCost(session)} · <a href="/activity?session=${session.session}">all requests</a> ·
              <a href="/usage?session=${session.session}">usage</a>
            </dd>`
    }
    <dt>Quota</dt>
    <dd>${writeNumber(charged)} of ${writeCount(units, 'request')} charged to ${periodId}</dd>
  </dl>`
}

function cachedText({ cachedTokens, cacheWriteTokens = 0 }: Usage): string {
  if (cachedTokens === 0 && cacheWriteTokens === 0) return ''
  return ` (${writeNumber(cachedTokens)} read from the cache, ${writeNumber(cacheWriteTokens)} written to it)`
}

/** A request that runs has no cost yet; one whose price is unknown never shows 0 (contract 42.5). */
function costText({ cost, state }: RequestRecord): Html | string {
  if (state === 'open' || state === 'delivered') return 'not known yet'
  if (cost === undefined) return html`unknown · <a href="/docs/costs#why-a-cost-is-unknown">why</a>`
  const savings = describeSavings(cost)
  return html`${describeCost(cost)}${savings === undefined ? '' : `, ${savings}`}${
    cost.prices === undefined ? '' : html` <span class="faint">(price version ${cost.prices})</span>`
  }`
}

function errorLink(code: RequestRecord['errorCode']): string | Html {
  if (code === undefined) return 'none'
  if (code === 'client_closed') return 'your client disconnected before the response was complete'
  return html`<a href="/docs/errors/${code}">${code}</a>`
}

/** Error messages from the account's own providers. Nobody else can see them. */
function providerErrors(errors: readonly ProviderError[], names: Names): Html | string {
  if (errors.length === 0) return ''
  return html`<section class="card">
    <h2>Errors from your providers</h2>
    <dl class="facts">
      ${errors.map(
        ({ backend, text }) =>
          html`<dt>${names.backend(backend)}</dt>
            <dd><code>${text}</code></dd>`,
      )}
    </dl>
    <p class="faint">Only your account can see these messages. They are deleted after 7 days.</p>
  </section>`
}

/** The skipped backends and the reasons. */
function passedByList(passedBy: RequestRecord['passedBy'] = [], names: Names): Html | string {
  if (passedBy.length === 0) return ''
  return html`<h3>Skipped backends</h3>
    <dl class="facts">
      ${passedBy.map(
        ({ backend, reason }) =>
          html`<dt>${names.backend(backend)}</dt>
            <dd>${describeExclusion({ reason, untilMs: undefined }, 0)}</dd>`,
      )}
    </dl>`
}

function attemptTable(attempts: readonly Attempt[], names: Names): Html {
  if (attempts.length === 0) return html`<p class="empty">No backend was tried.</p>`
  const hasCosts = attempts.some(({ costUsd }) => costUsd !== undefined)
  return html`<div class="scroll" tabindex="0" role="region" aria-label="Attempts">
    <table>
      <thead>
        <tr>
          <th scope="col">Backend</th>
          <th scope="col">Outcome</th>
          <th scope="col" class="number">Status</th>
          <th scope="col" class="number">Time</th>
          ${hasCosts ? html`<th scope="col" class="number">Cost</th>` : ''}
          <th scope="col">Provider’s request ID</th>
        </tr>
      </thead>
      <tbody>
        ${attempts.map(
          ({ backend, outcome, status, ms, upstreamRequestId, refused, rescued, costUsd }) =>
            html`<tr>
              <th scope="row">${names.backend(backend)}</th>
              <td>
                <span class="tag ${outcome === 'answered' ? 'good' : 'bad'}">${shownName(outcome)}</span>
                ${refused === true ? 'refused' : ''} ${rescued === undefined ? '' : 'continued the answer'}
              </td>
              <td class="number">${status ?? '–'}</td>
              <td class="number">${writeMs(ms)}</td>
              ${hasCosts ? html`<td class="number">${attemptCost(costUsd)}</td>` : ''}
              <td>${upstreamRequestId === undefined ? '–' : html`<code>${upstreamRequestId}</code>`}</td>
            </tr>`,
        )}
      </tbody>
    </table>
  </div>`
}

/** Nothing is due for an attempt that no provider accepted. */
function attemptCost(costUsd: Attempt['costUsd']): string {
  if (costUsd === undefined) return '–'
  return costUsd === null ? 'unknown' : writeUsd(readDollars(costUsd) ?? 0n)
}
