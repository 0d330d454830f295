import { html } from 'hono/html'
import { AccountsError } from '../../accounts/accounts-error.ts'
import { openIncident, updateIncident, type IncidentDeps } from '../../accounts/status/incidents.ts'
import { impacts, incidentStates, stateOf, type Impact, type Incident } from '../../domain/incidents.ts'
import { hasRole, operatorActions } from '../../domain/operators.ts'
import { field, lines, select } from '../components/field.ts'
import type { Html } from '../components/html.ts'
import { csrfInput } from '../components/layout.ts'
import { withNotice, type Notice } from '../components/notices.ts'
import { pageOf } from '../components/paging.ts'
import { toneOf } from '../components/status-dot.ts'
import { writeMinute } from '../components/time.ts'
import { operatorAccountsDepsFor } from '../http/control.ts'
import { PageError } from '../http/page-error.ts'
import { redirect } from '../http/redirect.ts'
import type { PageRoute } from '../http/route.ts'
import type { OperatorVisit } from '../http/visit.ts'
import { consolePage } from './console-page.ts'

const path = '/operator/incidents'
const maxListed = 100
/** Incidents per page and updates shown for each; fewer for resolved ones. */
const perPage = 3
const overPerPage = 2
const shownUpdates = 2
const shownOfOver = 1
const maxTextCharacters = 2_000
const { see, tellIncident } = operatorActions

/** The incidents on the status page, written by operators. */
export const incidentsRoutes: readonly PageRoute[] = [
  { method: 'GET', path, access: 'operator', ...see, handle: (visit) => show(visit) },
  { method: 'POST', path, access: 'operator', ...tellIncident, handle: open },
  { method: 'POST', path: `${path}/:incidentId`, access: 'operator', ...tellIncident, handle: update },
]

const impactWords: Readonly<Record<Impact, string>> = {
  none: 'none: announcement only',
  minor: 'minor: some components are affected',
  major: 'major: important components are affected',
  critical: 'critical: the service is down',
}

async function show(visit: OperatorVisit, problem?: string): Promise<Response> {
  const { deps, form, operator } = visit
  const all = await deps.consoleDeps.incidents.listIncidents(0, maxListed)
  const mayTell = hasRole(operator.role, tellIncident.role)
  const isOver = (incident: Incident): boolean => stateOf(incident) === 'resolved'
  const { query } = visit
  const running = pageOf(
    all.filter((incident) => !isOver(incident)),
    { path, query, name: 'running', perPage },
  )
  const over = pageOf(all.filter(isOver), { path, query, name: 'resolved', perPage: overPerPage })
  return consolePage(visit, {
    title: 'Incidents',
    lead: html`Report problems to users. Everything you write here appears on the <a href="/status">status page</a>.`,
    status: problem === undefined ? 200 : 422,
    problem,
    body: html`${
      running.shown.length === 0
        ? html`<p class="empty">No open incidents.</p>`
        : html`${running.shown.map((incident) => card(visit, incident, mayTell))} ${running.nav}`
    }
    ${
      mayTell
        ? html`<section class="card">
            <h2>Report an incident</h2>
            <form method="post" action="${path}">
              ${csrfInput(visit)}
              ${field({ name: 'title', label: 'Title', maxCharacters: 120, value: form.text('title') })}
              ${select(
                'impact',
                'Impact',
                impacts.map((impact) => [impact, impactWords[impact]] as const),
                form.choice('impact', impacts) ?? 'minor',
              )}
              ${lines({
                rows: 4,
                name: 'text',
                label: 'Description',
                hint: 'This text is public. Do not name accounts or include credentials.',
                maxCharacters: maxTextCharacters,
                value: form.text('text'),
              })}
              <button>Publish incident</button>
            </form>
          </section>`
        : ''
    }
    ${
      over.shown.length === 0
        ? ''
        : html`<h2>Resolved</h2>
            ${over.shown.map((incident) => card(visit, incident, mayTell))} ${over.nav}`
    }`,
  })
}

function card(visit: OperatorVisit, incident: Incident, mayTell: boolean): Html {
  const { id, title, impact, updates } = incident
  const state = stateOf(incident)
  const shown = updates.slice(0, state === 'resolved' ? shownOfOver : shownUpdates)
  const earlier = updates.length - shown.length
  return html`<section class="card">
    <h2>
      ${title} <span class="tag ${state === 'resolved' ? 'good' : toneOf(impact)}">${state}</span>
      <span class="tag">${impact}</span>
    </h2>
    <ul class="updates">
      ${shown.map((one) => html`<li><strong>${one.state}</strong> ${writeMinute(one.atMs)}<br />${one.text}</li>`)}
    </ul>
    <p class="faint">
      <code>${id}</code
      >${earlier === 0 ? '' : ` · ${earlier} earlier ${earlier === 1 ? 'update' : 'updates'}${state === 'resolved' ? '' : ' on the status page'}`}
    </p>
    ${
      mayTell
        ? html`<details>
            <summary>
              ${state === 'resolved' ? 'Reopen' : 'Post an update'}<span class="unseen">: ${title}</span>
            </summary>
            <form class="panel" method="post" action="${path}/${id}">
              ${csrfInput(visit)}
              ${select(
                'state',
                'State',
                incidentStates.map((known) => [known, known] as const),
                state === 'resolved' ? 'investigating' : nextOf(state),
                `state-${id}`,
              )}
              ${lines({
                rows: 4,
                id: `text-${id}`,
                name: 'text',
                label: 'Update',
                maxCharacters: maxTextCharacters,
              })}
              <button>Publish update</button>
            </form>
          </details>`
        : ''
    }
  </section>`
}

/** The next state in the usual order. */
function nextOf(state: (typeof incidentStates)[number]): string {
  return incidentStates[Math.min(incidentStates.length - 1, incidentStates.indexOf(state) + 1)]!
}

function open(visit: OperatorVisit): Promise<Response> {
  const { form } = visit
  const impact = form.choice('impact', impacts)
  if (impact === undefined) return show(visit, 'Choose an impact.')
  return explaining(visit, 'incident-opened', (incidentDeps) =>
    openIncident(incidentDeps, { title: form.text('title'), impact, text: form.text('text') }),
  )
}

async function update(visit: OperatorVisit): Promise<Response> {
  const { form, params, deps } = visit
  const known = await deps.consoleDeps.incidents.listIncidents(0, maxListed)
  if (!known.some(({ id }) => id === params['incidentId'])) throw new PageError('not_found')
  const state = form.choice('state', incidentStates)
  if (state === undefined) return show(visit, 'Choose a state.')
  return explaining(visit, 'incident-updated', (incidentDeps) =>
    updateIncident(incidentDeps, params['incidentId'] ?? '', state, form.text('text')),
  )
}

async function explaining(
  visit: OperatorVisit,
  done: Notice,
  write: (deps: IncidentDeps) => Promise<unknown>,
): Promise<Response> {
  const { consoleDeps } = visit.deps
  try {
    await write({ ...operatorAccountsDepsFor(visit), store: consoleDeps.incidents })
  } catch (error) {
    if (!(error instanceof AccountsError)) throw error
    if (error.code !== 'incident_invalid') throw error
    return show(visit, `Enter a title of at most 120 characters and a text of at most ${maxTextCharacters} characters.`)
  }
  consoleDeps.forgetStatus()
  return redirect(withNotice(path, done))
}
