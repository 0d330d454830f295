import { html } from 'hono/html'
import { stateOf, type Incident } from '../../domain/incidents.ts'
import { indicatorWords, shareOver, type StatusComponent } from '../../domain/service-status.ts'
import type { Html } from '../components/html.ts'
import { page } from '../components/layout.ts'
import { stateTag, toneOf } from '../components/status-dot.ts'
import { writeMinute } from '../components/time.ts'
import { uptimeBar, writeShare } from '../components/uptime-bar.ts'
import type { PageRoute } from '../http/route.ts'
import { jsonAnswer } from '../http/text-answer.ts'
import type { Visit } from '../http/visit.ts'
import { statusJson, summaryJson } from './status-json.ts'

/** How long clients may cache the status. */
const keptSeconds = 10

export const statusRoutes: readonly PageRoute[] = [
  { method: 'GET', path: '/status', access: 'public', handle: showStatus },
  {
    method: 'GET',
    path: '/status.json',
    access: 'public',
    handle: async ({ deps }) => jsonAnswer(statusJson(await deps.status.read()), keptSeconds),
  },
  {
    method: 'GET',
    path: '/api/v2/summary.json',
    access: 'public',
    handle: async ({ deps }) => jsonAnswer(summaryJson(await deps.status.read(), deps.appUrl), keptSeconds),
  },
]

async function showStatus(visit: Visit): Promise<Response> {
  const { atMs, indicator, components, incidents } = await visit.deps.status.read()
  const of = (kind: StatusComponent['kind']): readonly StatusComponent[] =>
    components.filter((part) => part.kind === kind)
  const open = incidents.filter((incident) => stateOf(incident) !== 'resolved')
  const over = incidents.filter((incident) => stateOf(incident) === 'resolved')
  return page(visit, {
    title: 'Status',
    lead: html`This page shows whether the API and its models are answering requests right now. If everything is
      operational and your requests still fail, look up the error in <a href="/docs/errors">Errors</a> or
      <a href="/support">contact support</a>.`,
    summary: 'The current state of the API and its models.',
    body: html`<p class="state ${toneOf(indicator)}">${indicatorWords[indicator]}</p>
      ${open.length === 0 ? '' : html`<h2>Current incidents</h2>`} ${open.map(incidentCard)}
      <section class="card">
        <h2>API and profiles</h2>
        <ul class="parts">
          ${[...of('api'), ...of('profile')].map(part)}
        </ul>
      </section>
      ${
        of('backend').length === 0
          ? ''
          : html`<section class="card">
              <h2>Backends</h2>
              <p class="faint">
                A backend is one model at one provider. Requests skip a backend that fails and use the others.
              </p>
              <ul class="parts">
                ${of('backend').map(part)}
              </ul>
            </section>`
      }
      <h2>Past incidents</h2>
      ${over.length === 0 ? html`<p class="empty">None in the last two weeks.</p>` : over.map(incidentCard)}
      <p class="side">
        Measured from real requests to the backends of this service, as of ${writeMinute(atMs)}. Requests to providers
        that accounts connect do not count, and neither do answers by fusion. Each bar is one day; a gray bar means that
        no requests counted. The percentage is the average share of requests answered per day. For programs:
        <a href="/status.json">status.json</a>, <a href="/api/v2/summary.json">summary.json</a>.
      </p>`,
  })
}

function part({ name, state, note, days }: StatusComponent): Html {
  return html`<li>
    <p>
      <strong>${name}</strong> ${stateTag(state)} ${note === undefined ? '' : html`<span class="faint">${note}</span>`}
    </p>
    ${
      days.length === 0
        ? ''
        : html`${uptimeBar(name, days)}
            <p class="ends">
              <span>${days.length} days ago</span><span>${writeShare(shareOver(days))}</span><span>today</span>
            </p>`
    }
  </li>`
}

function incidentCard(incident: Incident): Html {
  const { title, impact, updates } = incident
  return html`<section class="card">
    <h3>
      ${title}
      <span class="tag ${stateOf(incident) === 'resolved' ? 'good' : toneOf(impact)}">${stateOf(incident)}</span>
    </h3>
    <ul class="updates">
      ${updates.map(({ state, text, atMs }) => html`<li><strong>${state}</strong> ${writeMinute(atMs)}<br />${text}</li>`)}
    </ul>
  </section>`
}
