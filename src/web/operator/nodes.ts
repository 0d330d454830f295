import { html } from 'hono/html'
import { describeNode } from '../../domain/node-status-text.ts'
import { operatorActions } from '../../domain/operators.ts'
import type { KnownNode, ServiceHealth } from '../../domain/service-health.ts'
import { breadcrumbs } from '../components/breadcrumbs.ts'
import type { Html } from '../components/html.ts'
import { pageOf } from '../components/paging.ts'
import { writeAgo, writeMinute, writeNumber } from '../components/time.ts'
import type { PageRoute } from '../http/route.ts'
import type { OperatorVisit } from '../http/visit.ts'
import { consolePage } from './console-page.ts'

const path = '/operator/nodes'
const perPage = 40

/** The processes that serve requests (contract 24.16). */
export const nodesRoutes: readonly PageRoute[] = [
  { method: 'GET', path, access: 'operator', ...operatorActions.see, handle: showNodes },
]

async function showNodes(visit: OperatorVisit): Promise<Response> {
  const { consoleDeps, clock } = visit.deps
  const health = await consoleDeps.health()
  const { shown, nav } = pageOf(health.nodes, { path, query: visit.query, name: 'from', perPage })
  return consolePage(visit, {
    title: 'Nodes',
    above: breadcrumbs({ path: '/operator', name: 'Overview' }),
    lead: 'The processes that serve requests. Each worker is a separate node.',
    body: html`<section class="card">
        <h2>State</h2>
        <div class="scroll" tabindex="0" role="region" aria-label="Nodes">
          <table>
            <caption class="unseen">
              Nodes and the state that each one last reported
            </caption>
            <thead>
              <tr>
                <th scope="col">Node</th>
                <th scope="col">State</th>
                <th scope="col">Version</th>
                <th scope="col">Started</th>
                <th scope="col">Last heartbeat</th>
                <th scope="col" class="number">Requests in 5 minutes</th>
              </tr>
            </thead>
            <tbody>
              ${shown.map((node) => row(node, health, clock.nowMs()))}
            </tbody>
          </table>
        </div>
        ${nav}
      </section>
      <p class="side">
        A node sends a heartbeat every 5 seconds. A node that was killed disappears after a minute.
        <a href="/docs/operations">Operations guide</a>
      </p>`,
  })
}

function row(node: KnownNode, health: ServiceHealth, nowMs: number): Html {
  const { id, report, startedAtMs, seenAtMs } = node
  const { tone, words } = describeNode(node, health)
  const { answered = 0, failed = 0 } = report?.requests ?? {}
  return html`<tr>
    <th scope="row">
      ${report?.name ?? id} ${report === undefined ? '' : html`<span class="faint">process ${report.pid}</span>`}
    </th>
    <td><span class="tag ${tone}">${words}</span></td>
    <td>${report?.version ?? '–'}</td>
    <td>${writeMinute(startedAtMs)}</td>
    <td>${writeAgo(seenAtMs, nowMs)}</td>
    <td class="number">${report === undefined ? '–' : writeNumber(answered + failed)}</td>
  </tr>`
}
