import { html } from 'hono/html'
import type { TrafficFigures } from '../../accounts/status/live-traffic.ts'
import { operatorActions } from '../../domain/operators.ts'
import type { Html } from '../components/html.ts'
import { pageOf } from '../components/paging.ts'
import { writeNumber } from '../components/time.ts'
import type { PageRoute } from '../http/route.ts'
import type { OperatorVisit } from '../http/visit.ts'
import { consolePage } from './console-page.ts'

const path = '/operator/traffic'
const perPage = 40
const milliseconds = 1_000
const longSeconds = 10_000

/** Rates, errors, and times of the last minutes, which a script keeps current (contract 24.15). */
export const trafficRoutes: readonly PageRoute[] = [
  { method: 'GET', path, access: 'operator', ...operatorActions.see, handle: showTraffic },
  { method: 'GET', path: `${path}/figures`, access: 'operator', ...operatorActions.see, handle: sendFigures },
]

/** The columns of a row, and of the total. */
const columns: readonly { readonly id: string; readonly name: string; write(figures: TrafficFigures): string }[] = [
  { id: 'rate', name: 'Per second', write: ({ perSecond }) => writeRate(perSecond) },
  { id: 'failed', name: 'Failed', write: ({ failedShare }) => writeShare(failedShare) },
  { id: 'p50', name: 'p50', write: ({ firstContentMs }) => writeTime(firstContentMs?.p50) },
  { id: 'p95', name: 'p95', write: ({ firstContentMs }) => writeTime(firstContentMs?.p95) },
  { id: 'p99', name: 'p99', write: ({ firstContentMs }) => writeTime(firstContentMs?.p99) },
  { id: 'in', name: 'Input tokens/s', write: ({ inputTokensPerSecond }) => writeRate(inputTokensPerSecond) },
  { id: 'out', name: 'Output tokens/s', write: ({ outputTokensPerSecond }) => writeRate(outputTokensPerSecond) },
]

async function showTraffic(visit: OperatorVisit): Promise<Response> {
  const { consoleDeps } = visit.deps
  const { backends } = consoleDeps
  const traffic = await consoleDeps.traffic()
  const { shown, nav } = pageOf(backends, { path, query: visit.query, name: 'from', perPage })
  return consolePage(visit, {
    title: 'Traffic',
    lead: 'Requests on this server: rates over the last minute, and failures and response times over the last 5 minutes.',
    body: html`<section class="card" data-live="${path}/figures">
        <h2>Now</h2>
        <div class="scroll" tabindex="0" role="region" aria-label="Traffic by backend">
          <table>
            <caption class="unseen">
              Traffic by backend; p50, p95, and p99 are times to the first content of a stream
            </caption>
            <thead>
              <tr>
                <th scope="col">Backend</th>
                ${columns.map(({ name }) => html`<th scope="col" class="number">${name}</th>`)}
              </tr>
            </thead>
            <tbody>
              ${row('All requests', 'all', traffic.total())}
              ${shown.map(({ id }) =>
                row(html`<a href="/operator/backends/${id}">${id}</a>`, `of-${id}`, traffic.backend(id)),
              )}
            </tbody>
          </table>
        </div>
        ${nav}
        <p class="faint">
          p50, p95, and p99: half, 95%, and 99% of the streams had their first content within this time.
        </p>
        <p><a href="${path}">Refresh</a></p>
      </section>
      <p class="side">
        Calls to backends that accounts connected count only in the first row. For history, alerts, and all servers
        together, use <a href="/docs/observability">Prometheus</a>. <a href="/operator/nodes">See nodes</a>
      </p>`,
  })
}

function row(name: string | Html, id: string, figures: TrafficFigures): Html {
  return html`<tr>
    <th scope="row">${name}</th>
    ${columns.map((column) => html`<td class="number" data-figure="${id}-${column.id}">${column.write(figures)}</td>`)}
  </tr>`
}

/** The text of every cell by its name, for the script. */
async function sendFigures({ deps }: OperatorVisit): Promise<Response> {
  const { backends } = deps.consoleDeps
  const traffic = await deps.consoleDeps.traffic()
  const rows: readonly (readonly [string, TrafficFigures])[] = [
    ['all', traffic.total()],
    ...backends.map(({ id }) => [`of-${id}`, traffic.backend(id)] as const),
  ]
  const cells = rows.flatMap(([id, figures]) =>
    columns.map((column) => [`${id}-${column.id}`, column.write(figures)] as const),
  )
  return Response.json(Object.fromEntries(cells))
}

function writeRate(perSecond: number): string {
  if (perSecond === 0) return '0'
  return perSecond < 10 ? perSecond.toFixed(perSecond < 0.095 ? 2 : 1) : writeNumber(Math.round(perSecond))
}

function writeShare(share: number | undefined): string {
  if (share === undefined) return '–'
  return share > 0 && share < 0.001 ? '< 0.1%' : `${Math.round(share * 1000) / 10}%`
}

function writeTime(ms: number | undefined): string {
  if (ms === undefined) return '–'
  if (ms < milliseconds) return `${Math.round(ms)} ms`
  return `${(ms / milliseconds).toFixed(ms < longSeconds ? 2 : 1)} s`
}
