import { html } from 'hono/html'
import { AccountsError } from '../../accounts/accounts-error.ts'
import { findAccount } from '../../accounts/accounts.ts'
import { requestFormatIds, type ClientFormatId } from '../../domain/format-id.ts'
import { operatorActions } from '../../domain/operators.ts'
import { describeDoubt, describeShare, describeExclusion } from '../../domain/routing-plan-text.ts'
import { maxQuestionTokens, type RoutingPlan, type RoutingQuestion } from '../../domain/routing-plan.ts'
import { breadcrumbs } from '../components/breadcrumbs.ts'
import { field, select } from '../components/field.ts'
import type { Html } from '../components/html.ts'
import { writeNumber } from '../components/time.ts'
import { operatorAccountsDepsFor } from '../http/control.ts'
import type { PageRoute } from '../http/route.ts'
import type { OperatorVisit } from '../http/visit.ts'
import { consolePage } from './console-page.ts'

const formats = requestFormatIds
const defaultTokens = 1_000
const maxNameCharacters = 100

/** Routing dry run. The form changes nothing, so it is a GET and can be linked. */
export const dryRunRoutes: readonly PageRoute[] = [
  { method: 'GET', path: '/operator/dry-run', access: 'operator', ...operatorActions.see, handle: showDryRun },
]

async function showDryRun(visit: OperatorVisit): Promise<Response> {
  const { query } = visit
  const answer = query.has('tokens') ? await answerOf(visit) : undefined
  return consolePage(visit, {
    title: 'Where would a request go?',
    above: breadcrumbs({ path: '/operator/profiles', name: 'Profiles' }),
    lead: 'This page uses the code that routes real requests, and the current state of the backends. Nothing is sent or counted.',
    status: typeof answer === 'string' ? 422 : 200,
    problem: typeof answer === 'string' ? answer : undefined,
    body: html`${answer === undefined || typeof answer === 'string' ? '' : answerCard(visit, answer)}
      <section class="card">
        <h2>The request</h2>
        ${form(visit)}
      </section>`,
  })
}

function form({ query, deps }: OperatorVisit): Html {
  const said = (name: string): string => query.get(name) ?? ''
  const box = (name: string, label: string): Html =>
    html`<label class="choice"
      ><input type="checkbox" name="${name}" ${query.has(name) ? 'checked' : ''} /> <span>${label}</span></label
    >`
  return html`<form method="get" action="/operator/dry-run">
    <div class="filters">
      ${select(
        'profile',
        'Profile',
        deps.profiles.map(({ id }) => [id, id] as const),
        said('profile'),
      )}
      ${select(
        'format',
        'Client format',
        formats.map((id) => [id, id] as const),
        said('format'),
      )}
      ${select(
        'plan',
        'Plan',
        deps.plans.map(({ id, name }) => [id, name] as const),
        said('plan') === '' ? deps.defaultPlan : said('plan'),
      )}
    </div>
    ${field({
      name: 'account',
      label: 'Account',
      hint: 'ID or name. The plan is then the account’s, not the one above. If empty: an account on that plan without its own providers.',
      optional: true,
      maxCharacters: maxNameCharacters,
      value: said('account'),
    })}
    ${field({
      name: 'tokens',
      label: 'Approximate tokens',
      maxCharacters: 7,
      value: said('tokens') === '' ? String(defaultTokens) : said('tokens'),
    })}
    <fieldset>
      <legend>Features</legend>
      ${box('stream', 'streaming')} ${box('images', 'images')} ${box('tools', 'tools')}
    </fieldset>
    <button>Where would it go?</button>
  </form>`
}

/** The route plan, or a message if the input is invalid. */
async function answerOf(visit: OperatorVisit): Promise<RoutingPlan | string> {
  const { query, deps } = visit
  const format = formats.find((known): known is ClientFormatId => known === query.get('format'))
  const tokens = Number(query.get('tokens'))
  if (format === undefined) return 'Choose a client format.'
  if (!Number.isSafeInteger(tokens) || tokens < 1 || tokens > maxQuestionTokens)
    return `Enter a whole number of tokens from 1 to ${writeNumber(maxQuestionTokens)}.`
  const caller = await callerOf(visit)
  if (typeof caller === 'string') return caller
  const plan = deps.plans.find(({ id }) => id === caller.planId)
  if (plan === undefined) return 'This plan is not configured.'
  const question: RoutingQuestion = {
    profile: query.get('profile') ?? '',
    format,
    tokens,
    stream: query.has('stream'),
    images: query.has('images'),
    tools: query.has('tools'),
  }
  return deps.consoleDeps.planRouting({ accountId: caller.id, plan }, question)
}

async function callerOf(visit: OperatorVisit): Promise<{ readonly id: string; readonly planId: string } | string> {
  const { query } = visit
  const named = (query.get('account') ?? '').trim().slice(0, maxNameCharacters)
  if (named === '') return { id: '', planId: query.get('plan') ?? '' }
  try {
    return await findAccount(operatorAccountsDepsFor(visit), named)
  } catch (error) {
    if (error instanceof AccountsError && error.code === 'account_unknown') return 'No account has this ID or name.'
    throw error
  }
}

function answerCard({ deps }: OperatorVisit, { refusal, panel, asked, leftOut }: RoutingPlan): Html {
  const [first] = asked
  // An account's own providers have no page here.
  const named = (id: string): Html =>
    deps.consoleDeps.backends.some((backend) => backend.id === id)
      ? html`<a href="/operator/backends/${id}">${id}</a>`
      : html`<code>${id}</code> <span class="tag">the account’s own</span>`
  return html`<section class="card" id="answer">
    <h2>${headline(refusal, panel, first?.backend)}</h2>
    ${
      refusal === undefined
        ? ''
        : html`<p>
            <a href="/docs/errors/${refusal.code}"><code>${refusal.code}</code></a
            >${refusal.param === undefined ? '' : html` about <code>${refusal.param}</code>`}
          </p>`
    }
    ${panel === undefined ? '' : panelWords(panel)}
    ${
      asked.length === 0
        ? ''
        : html`<h3>
              ${panel === undefined ? 'Tried in order until one answers' : 'If fusion falls back to one model'}
            </h3>
            <ol>
              ${asked.map(
                ({ backend, model, lane, doubts, share }) =>
                  html`<li>
                    ${named(backend)}
                    <span class="faint"
                      >${[model, laneWords[lane], ...(share === undefined ? [] : [describeShare({ share })])].join(', ')}</span
                    >
                    ${doubts.map((doubt) => html`<span class="tag warn">${describeDoubt(doubt)}</span>`)}
                  </li>`,
              )}
            </ol>`
    }
    ${
      leftOut.length === 0
        ? ''
        : html`<h3>Skipped</h3>
            <ul>
              ${leftOut.map(
                (left) => html`<li>${named(left.backend)}: ${describeExclusion(left, deps.clock.nowMs())}</li>`,
              )}
            </ul>`
    }
  </section>`
}

const laneWords = { relay: 'relayed unchanged', translation: 'translated' } as const

function headline(refusal: RoutingPlan['refusal'], panel: RoutingPlan['panel'], first: string | undefined): string {
  if (refusal !== undefined) return 'The request would be rejected without being sent'
  if (panel !== undefined) return 'Several models would answer (fusion)'
  return first === undefined ? 'No backend is available: 503' : `It would go to ${first}`
}

function panelWords({ asked, reserves, writers }: NonNullable<RoutingPlan['panel']>): Html {
  return html`<dl class="facts">
    <dt>Panel</dt>
    <dd>${asked.join(', ')}</dd>
    <dt>Reserves</dt>
    <dd>${reserves.length === 0 ? 'none' : reserves.join(', ')}</dd>
    <dt>Judge and writer</dt>
    <dd>${writers.join(', then ')}</dd>
  </dl>`
}
