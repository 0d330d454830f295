import { html } from 'hono/html'
import { AccountsError } from '../../accounts/accounts-error.ts'
import { controlBackend, type BackendCommand } from '../../accounts/backends/backend-controls.ts'
import { holdReasons, type BackendControl, type HoldReason } from '../../domain/backend-controls.ts'
import type { BackendState } from '../../domain/backend-state.ts'
import { describeBackend } from '../../domain/backend-status-text.ts'
import { hasRole, operatorActions } from '../../domain/operators.ts'
import { describeExclusion } from '../../domain/routing-plan-text.ts'
import { breadcrumbs } from '../components/breadcrumbs.ts'
import { select } from '../components/field.ts'
import type { Html } from '../components/html.ts'
import { csrfInput } from '../components/layout.ts'
import { withNotice, type Notice } from '../components/notices.ts'
import { writeMinute } from '../components/time.ts'
import { operatorAccountsDepsFor } from '../http/control.ts'
import { PageError } from '../http/page-error.ts'
import { redirect } from '../http/redirect.ts'
import type { OperatorRoute, PageRoute } from '../http/route.ts'
import type { OperatorVisit } from '../http/visit.ts'
import { backendStanding, standingTag } from './backend-state-text.ts'
import { hourWords, servesWords } from './backends.ts'
import type { ConsoleBackend } from './console-deps.ts'
import { consolePage } from './console-page.ts'
import { nameOperator, operatorEmails } from './operator-emails.ts'

const path = '/operator/backends/:backendId'
const { see, steerBackend } = operatorActions

/** One backend and the actions for operators. */
export const backendRoutes: readonly PageRoute[] = [
  { method: 'GET', path, access: 'operator', ...see, handle: (visit) => show(visit) },
  ordering('drain', 'drained', 'backend-drained'),
  ordering('undrain', 'undrained', 'backend-undrained'),
  ordering('quarantine', 'quarantined', 'backend-quarantined'),
  ordering('release', 'released', 'backend-released'),
]

const reasonWords: Readonly<Record<HoldReason, string>> = {
  asked: 'requested',
  maintenance: 'maintenance',
  failing: 'failing',
  credential: 'credential problem',
  cost: 'cost',
}

function ordering(verb: string, step: BackendCommand['step'], notice: Notice): OperatorRoute {
  return {
    method: 'POST',
    path: `${path}/${verb}`,
    access: 'operator',
    ...steerBackend,
    async handle(visit) {
      const { id } = found(visit)
      const order = orderOf(visit, step, id)
      if (order === undefined) return show(visit, 'Choose a reason.')
      try {
        await controlBackend({ ...operatorAccountsDepsFor(visit), store: visit.deps.consoleDeps.controls }, order)
      } catch (error) {
        if (!(error instanceof AccountsError && error.code === 'backend_unchanged')) throw error
        return show(visit, 'The backend is already in this state. Someone else may have just changed it.')
      }
      visit.deps.consoleDeps.forgetStatus()
      return redirect(withNotice(`/operator/backends/${id}`, notice))
    },
  }
}

function orderOf({ form }: OperatorVisit, step: BackendCommand['step'], backend: string): BackendCommand | undefined {
  if (step === 'undrained' || step === 'released') return { step, backend }
  const reason = form.choice('reason', holdReasons)
  return reason === undefined ? undefined : { step, backend, reason }
}

function found({ deps, params }: OperatorVisit): ConsoleBackend {
  const backend = deps.consoleDeps.backends.find(({ id }) => id === params['backendId'])
  if (backend === undefined) throw new PageError('not_found')
  return backend
}

async function show(visit: OperatorVisit, problem?: string): Promise<Response> {
  const backend = found(visit)
  const { consoleDeps, profiles } = visit.deps
  const [all, emails, health] = await Promise.all([
    consoleDeps.controls.listBackendControls(),
    operatorEmails(visit.deps),
    consoleDeps.health(),
  ])
  const controls = all.filter(({ backendId }) => backendId === backend.id)
  const condition = backendStanding(health.condition(backend.id), controls)
  const serving = profiles.filter(({ backends }) => backends.includes(backend.id)).map(({ id }) => id)
  return consolePage(visit, {
    title: backend.id,
    above: breadcrumbs({ path: '/operator/backends', name: 'Backends' }),
    lead: html`${standingTag(condition, health.lastHour(backend.id))}
    ${backend.simulated ? html`<span class="tag">simulated</span>` : ''}`,
    status: problem === undefined ? 200 : 422,
    problem,
    body: html`<section class="card">
        <h2>State</h2>
        <dl class="facts">
          ${facts(condition, controls, emails).map(([name, value]) => fact(name, value))}
          ${fact('Last hour', hourWords(health.lastHour(backend.id)))}
        </dl>
        <p class="faint">
          As reported by the <a href="/operator/nodes">nodes</a> of the service. Restarting a node resets its circuit
          breakers and counts.
        </p>
      </section>
      <section class="card">
        <h2>Details</h2>
        <dl class="facts">
          ${fact('Provider', backend.provider)} ${fact('Model', backend.model)}
          ${fact('Serves', servesWords[backend.serves])}
          ${fact('Profiles', serving.length === 0 ? 'none' : serving.join(', '))}
        </dl>
      </section>
      ${
        hasRole(visit.operator.role, steerBackend.role)
          ? steering(visit, backend.id, { condition, controls })
          : html`<p class="faint">Only admins can drain and quarantine backends.</p>`
      }`,
  })
}

function facts(
  condition: BackendState,
  controls: readonly BackendControl[],
  emails: ReadonlyMap<string, string>,
): readonly (readonly [string, string | Html])[] {
  const { state, reason, sinceMs, untilMs, failures, lastFailure, skippedBy } = condition
  const holds = controls.filter(({ kind }) => kind !== 'released')
  return [
    ...holds.map(
      ({ kind, atMs, by, reason: why }) =>
        [
          kind === 'drained' ? 'Drained' : 'Quarantined',
          html`since ${writeMinute(atMs)} by ${nameOperator(by, emails)}: ${why === null ? '' : reasonWords[why]}`,
        ] as const,
    ),
    ...(skippedBy === undefined || holds.length > 0
      ? []
      : [['State', `skipped by ${skippedBy.nodes} of the ${skippedBy.of} nodes that use it`] as const]),
    ...(holds.length > 0 || state === 'closed' || sinceMs === undefined || untilMs === undefined
      ? []
      : [
          [
            'State',
            html`${describeBackend(condition).words} since ${writeMinute(sinceMs)}:
            ${reason === undefined ? '' : describeExclusion({ reason }, 0)}. From ${writeMinute(untilMs)}, one request
            tries it again.`,
          ] as const,
        ]),
    ...(failures > 0 ? [['Failures since last answer', String(failures)] as const] : []),
    [
      'Last failure',
      lastFailure === undefined
        ? 'none since the nodes started'
        : html`<code>${lastFailure.outcome}</code>, ${writeMinute(lastFailure.atMs)}`,
    ],
  ]
}

function fact(name: string, value: string | Html): Html {
  return html`<dt>${name}</dt>
    <dd>${value}</dd>`
}

function steering(
  visit: OperatorVisit,
  id: string,
  { condition, controls }: { readonly condition: BackendState; readonly controls: readonly BackendControl[] },
): Html {
  const isHeld = (kind: string): boolean => controls.some((control) => control.kind === kind)
  const isOpen = condition.state === 'open' || condition.state === 'half_open' || condition.skippedBy !== undefined
  return html`<section class="card">
    <h2>What you can do</h2>
    <ul class="rows">
      ${
        isHeld('drained')
          ? letGo(
              visit,
              `${id}/undrain`,
              'End drain',
              isHeld('quarantined')
                ? 'The backend stays quarantined.'
                : 'The backend gets requests again within a second.',
            )
          : hold(visit, `${id}/drain`, 'Drain', 'The backend gets no new requests. Requests in progress complete.')
      }
      ${
        isHeld('quarantined')
          ? letGo(
              visit,
              `${id}/release`,
              'Release',
              isHeld('drained')
                ? 'Ends the quarantine. The backend stays drained.'
                : 'Ends the quarantine. The backend gets requests again within a second.',
            )
          : html`${
              isOpen
                ? letGo(
                    visit,
                    `${id}/release`,
                    'Try it again now',
                    'Closes its circuit breaker on every server within a second. If the next requests fail too, it opens again.',
                  )
                : ''
            }
            ${hold(visit, `${id}/quarantine`, 'Quarantine', 'Takes a backend that you do not trust out of service until you release it.')}`
      }
    </ul>
  </section>`
}

function hold(visit: OperatorVisit, action: string, name: string, what: string): Html {
  return html`<li>
    <span>${what}</span>
    <details>
      <summary>${name}</summary>
      <form class="panel" method="post" action="/operator/backends/${action}">
        ${csrfInput(visit)}
        ${select(
          'reason',
          'Reason',
          holdReasons.map((reason) => [reason, reasonWords[reason]] as const),
          undefined,
          `reason-${name}`,
        )}
        <button class="danger">${name} it</button>
      </form>
    </details>
  </li>`
}

function letGo(visit: OperatorVisit, action: string, name: string, what: string): Html {
  return html`<li>
    <span>${what}</span>
    <form method="post" action="/operator/backends/${action}">${csrfInput(visit)}<button>${name}</button></form>
  </li>`
}
