import { html } from 'hono/html'
import type { HourCount } from '../../domain/backend-state.ts'
import { operatorActions } from '../../domain/operators.ts'
import type { Html } from '../components/html.ts'
import { pageOf } from '../components/paging.ts'
import { writeNumber } from '../components/time.ts'
import type { PageRoute } from '../http/route.ts'
import type { OperatorVisit } from '../http/visit.ts'
import { backendStanding, standingTag } from './backend-state-text.ts'
import type { ConsoleBackend } from './console-deps.ts'
import { consolePage } from './console-page.ts'

const path = '/operator/backends'
const perPage = 40

/** Every configured backend and its state. */
export const backendsRoutes: readonly PageRoute[] = [
  { method: 'GET', path, access: 'operator', ...operatorActions.see, handle: showBackends },
]

async function showBackends(visit: OperatorVisit): Promise<Response> {
  const { consoleDeps } = visit.deps
  const [controls, health] = await Promise.all([consoleDeps.controls.listBackendControls(), consoleDeps.health()])
  const { shown, nav } = pageOf(consoleDeps.backends, { path, query: visit.query, name: 'from', perPage })
  const rows = shown.map((backend) => {
    const condition = backendStanding(health.condition(backend.id), controls)
    const hour = health.lastHour(backend.id)
    return row(backend, standingTag(condition, hour), hour)
  })
  return consolePage(visit, {
    title: 'Backends',
    lead: 'Each backend is one model at one provider, with one credential. A profile is an ordered list of backends.',
    body: html`${
        rows.length === 0
          ? html`<p class="empty">No backends are configured.</p>`
          : html`<section class="card">
              <h2>State</h2>
              <ul class="rows">
                ${rows}
              </ul>
              ${nav}
            </section>`
      }
      <p class="side">
        State and counts are for the whole service. The counts cover the last hour. Providers that accounts connected
        are not listed here.
        <a href="/operator/profiles">Profiles and their backends</a>
      </p>`,
  })
}

function row({ id, provider, model, simulated, serves }: ConsoleBackend, state: Html, hour: HourCount): Html {
  return html`<li>
    <div>
      <a href="/operator/backends/${id}"><strong>${id}</strong></a> ${state}
      ${simulated ? html`<span class="tag">simulated</span>` : ''}<br /><span class="faint"
        >${provider} · ${model}${serves === 'everybody' ? '' : ` · serves ${servesWords[serves]}`}</span
      >
    </div>
    <span class="faint">${hourWords(hour)}</span>
  </li>`
}

/** Which accounts a backend serves. */
export const servesWords: Readonly<Record<ConsoleBackend['serves'], string>> = {
  everybody: 'every account',
  managed: 'accounts with managed access',
  'one account': 'one account, with its credential',
}

/** A short summary of the last hour. */
export function hourWords({ answered, failed, timed, sumMs }: HourCount): string {
  const asked = answered + failed
  if (asked === 0) return 'no requests'
  const share = Math.floor((answered / asked) * 1000) / 10
  const time = timed === 0 ? '' : `, ${writeNumber(Math.round(sumMs / timed))} ms on average`
  return `${share}% of ${writeNumber(asked)} answered${time}`
}
