import { html } from 'hono/html'
import { capabilityIds, factsOfAll, type CapabilityId, type ModelFacts } from '../../domain/model-facts.ts'
import { frontierId, isServedByOwn, type Profile } from '../../domain/profiles.ts'
import { shareOver } from '../../domain/service-status.ts'
import { breadcrumbs } from '../components/breadcrumbs.ts'
import { codeSample } from '../components/code-sample.ts'
import type { Html } from '../components/html.ts'
import { page } from '../components/layout.ts'
import { stateTag } from '../components/status-dot.ts'
import { writeNumber } from '../components/time.ts'
import { uptimeBar, writeShare } from '../components/uptime-bar.ts'
import { PageError } from '../http/page-error.ts'
import type { PageRoute } from '../http/route.ts'
import type { Visit } from '../http/visit.ts'
import type { ShownBackend, WebDeps } from '../web-deps.ts'

export const modelRoutes: readonly PageRoute[] = [
  { method: 'GET', path: '/models', access: 'public', handle: showModels },
  // A profile id contains a slash.
  { method: 'GET', path: '/models/:maker/:name', access: 'public', handle: showModel },
  { method: 'GET', path: '/models/:name', access: 'public', handle: showModel },
]

const capabilityNames: Readonly<Record<CapabilityId, string>> = {
  tools: 'tools',
  image_input: 'images',
  file_input: 'files',
  structured_outputs: 'structured outputs',
  reasoning: 'reasoning',
}

function showModels(visit: Visit): Promise<Response> {
  const { deps } = visit
  return page(visit, {
    title: 'Models',
    lead: 'A request names a profile, and a profile is a list of models at providers. The service chooses from the list for each request, so your code does not have to.',
    body: html`<div class="cards">
        ${deps.profiles.map(
          (profile) =>
            html`<section class="card">
              <h2><a href="/models/${profile.id}">${profile.id}</a> ${marks(profile)}</h2>
              <p>${profile.description}</p>
              ${factList(deps, profile)}
            </section>`,
        )}
      </div>
      <p class="faint">
        Next: open a profile to see its providers, or <a href="/account/setup">get a key</a> to use it. With a key,
        <code>GET ${deps.baseUrl}/models</code> lists the profiles, and <code>entitled</code> says which ones your plan
        includes.
      </p>`,
  })
}

async function showModel(visit: Visit): Promise<Response> {
  const { deps, params } = visit
  const id = [params['maker'], params['name']].filter((part) => part !== undefined).join('/')
  const profile = deps.profiles.find((known) => known.id === id)
  if (profile === undefined) throw new PageError('not_found')
  const { components } = await deps.status.read()
  const part = components.find(({ kind, name }) => kind === 'profile' && name === id)
  const behind = backendsOf(deps, profile)
  return page(visit, {
    title: id,
    lead: profile.description,
    above: breadcrumbs({ path: '/models', name: 'Models' }),
    body: html`<div class="actions name-to-copy">
        ${codeSample('name', id)} ${part === undefined ? '' : stateTag(part.state)} ${marks(profile)}
      </div>
      <section class="card">
        <h2>What it can do</h2>
        ${factList(deps, profile)}
      </section>
      <section class="card">
        <h2>Providers</h2>
        ${
          behind.length === 0
            ? withoutBackends(profile)
            : html`<p>${backendsTitle(profile, behind)}</p>
                <ol>
                  ${behind.map(
                    ({ id: name, provider, simulated, managed }) =>
                      html`<li>
                        <code>${name}</code> <span class="faint">${provider}</span>
                        ${simulated ? html`<span class="tag warn">simulated</span>` : ''}
                        ${
                          managed
                            ? html`(only for accounts with <a href="/account/managed-access">managed access</a>)`
                            : ''
                        }
                      </li>`,
                  )}
                </ol>`
        }
      </section>
      ${
        part === undefined
          ? ''
          : html`<section class="card">
              <h2>Availability</h2>
              ${uptimeBar(id, part.days)}
              <p class="faint">
                ${
                  shareOver(part.days) === undefined
                    ? 'No requests were counted in the last 90 days.'
                    : `On average, ${writeShare(shareOver(part.days))} of each day's requests were answered in the last 90 days.`
                }
                Only requests to the backends of this service count, not requests to providers that accounts connect.
                Answers by fusion do not count. Failures that the request itself caused do not count.
              </p>
            </section>`
      }
      <p class="faint">
        You need an active key to use this profile. <a href="/account/setup">Get a key</a>${
          profile.embeddings === undefined
            ? html`, or <a href="/playground?profile=${encodeURIComponent(id)}">try it in the playground</a>`
            : ''
        }
      </p>`,
  })
}

function marks({ premium }: Profile): Html | '' {
  return premium ? html`<span class="tag">premium</span>` : ''
}

function withoutBackends(profile: Profile): Html {
  if (isServedByOwn(profile))
    return html`<p class="empty">
      This profile uses the providers that you connect. <a href="/account/upstreams">Connect one</a>.
    </p>`
  return profile.backends.length === 0
    ? html`<p class="empty">No backends are configured for this profile. <a href="/support">Contact support</a>.</p>`
    : html`<p class="empty">
        Each backend of this profile serves only one account. The providers that you connect do not serve this profile.
        If none of its backends serves your account, <a href="/support">contact support</a> to use it.
      </p>`
}

/** How the listed backends are used besides the account's own providers. */
function backendsTitle(profile: Profile, behind: readonly ShownBackend[]): string {
  if (!isServedByOwn(profile)) return 'This profile uses these backends, not the providers that you connect:'
  if (behind.every(({ simulated }) => simulated))
    return 'Until you connect a provider, these simulated providers answer:'
  return profile.id === frontierId
    ? 'Your own providers are tried before these:'
    : 'Fusion uses your own providers and these:'
}

function backendsOf({ backends }: WebDeps, profile: Profile): readonly ShownBackend[] {
  return profile.backends.flatMap((id) => backends.filter((backend) => backend.id === id))
}

function factList(deps: WebDeps, profile: Profile): Html {
  const behind = backendsOf(deps, profile)
  const real = behind.filter(({ simulated }) => !simulated)
  const facts = factsOfAll((real.length > 0 ? real : behind).map((backend) => backend.facts))
  const rows: readonly (readonly [string, string])[] = [
    ...sizes(facts),
    ['Capabilities', capabilities(profile, facts)],
    [
      'Plans',
      deps.plans
        .filter((plan) => plan.premium || !profile.premium)
        .map((plan) => plan.name)
        .join(', '),
    ],
    ['Counts as', profile.quotaUnits === 1 ? '1 request' : `${profile.quotaUnits} requests`],
    ['Cost', costOf(profile, real.length > 0)],
  ]
  return html`<dl class="facts">
    ${rows.map(
      ([name, text]) =>
        html`<dt>${name}</dt>
          <dd>${text}</dd>`,
    )}
  </dl>`
}

function costOf(profile: Profile, hasRealBackends: boolean): string {
  const { price } = profile
  if (price === undefined) {
    if (!isServedByOwn(profile)) return 'Not stated'
    const own = 'What your own providers charge'
    return hasRealBackends ? `${own}. Not stated for the backends of this service` : own
  }
  const { inputPerMillion, outputPerMillion, currency } = price
  const output = outputPerMillion === undefined ? '' : `, ${outputPerMillion} per million output tokens`
  return `${inputPerMillion} ${currency} per million input tokens${output}`
}

function sizes({ contextWindow, maxOutputTokens }: ModelFacts): (readonly [string, string])[] {
  return [
    ...(contextWindow === undefined ? [] : [['Context window', `${writeNumber(contextWindow)} tokens`] as const]),
    ...(maxOutputTokens === undefined ? [] : [['Maximum output', `${writeNumber(maxOutputTokens)} tokens`] as const]),
  ]
}

function capabilities({ embeddings }: Profile, { capabilities: known = {} }: ModelFacts): string {
  if (embeddings !== undefined) return 'embeddings'
  return ['streaming', ...capabilityIds.filter((id) => known[id] === true).map((id) => capabilityNames[id])].join(', ')
}
