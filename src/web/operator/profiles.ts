import { html } from 'hono/html'
import { operatorActions } from '../../domain/operators.ts'
import { isServedByOwn, type Profile } from '../../domain/profiles.ts'
import type { Html } from '../components/html.ts'
import type { PageRoute } from '../http/route.ts'
import type { OperatorVisit } from '../http/visit.ts'
import { backendStanding, standingTag } from './backend-state-text.ts'
import { consolePage } from './console-page.ts'

/** Every profile with its backends in order. */
export const profilesRoutes: readonly PageRoute[] = [
  { method: 'GET', path: '/operator/profiles', access: 'operator', ...operatorActions.see, handle: showProfiles },
]

async function showProfiles(visit: OperatorVisit): Promise<Response> {
  const { consoleDeps, profiles } = visit.deps
  const [controls, health] = await Promise.all([consoleDeps.controls.listBackendControls(), consoleDeps.health()])
  const standing = (backend: string): Html =>
    standingTag(backendStanding(health.condition(backend), controls), health.lastHour(backend))
  return consolePage(visit, {
    title: 'Profiles',
    lead: 'Profiles and the configured backends that serve them, in order. On svc-router/frontier, and on svc-router/fusion unless it lists its own backends, an account’s own providers come first.',
    body: html`${profiles.map((profile) => card(profile, standing))}
      <p class="side">
        Profiles are defined in the configuration file, or declared with <code>svc-router apply</code>.
        <a href="/operator/backends">All backends</a>
      </p>`,
  })
}

function card(profile: Profile, standing: (backend: string) => Html): Html {
  const { id, description, premium, quotaUnits } = profile
  return html`<section class="card">
    <h2>${id} ${premium ? html`<span class="tag">premium</span>` : ''}</h2>
    <p>${description} <span class="faint">${quotaUnits === 1 ? '1 unit' : `${quotaUnits} units`} per request.</span></p>
    ${
      profile.backends.length === 0
        ? html`<p class="empty">
            ${
              isServedByOwn(profile)
                ? 'No configured backends: each account uses its own providers.'
                : 'No configured backends: no request can be answered.'
            }
          </p>`
        : html`<ol>
            ${profile.backends.map(
              (backend) => html`<li><a href="/operator/backends/${backend}">${backend}</a> ${standing(backend)}</li>`,
            )}
          </ol>`
    }
    <p><a href="/operator/dry-run?profile=${encodeURIComponent(id)}">Where would a request go?</a></p>
  </section>`
}
