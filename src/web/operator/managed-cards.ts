import { html } from 'hono/html'
import type {
  ManagedReadiness,
  ManagedRequest,
  ManagedRequestState,
  ResaleControl,
} from '../../domain/managed-access.ts'
import { hasRole, operatorActions } from '../../domain/operators.ts'
import { field } from '../components/field.ts'
import type { Html } from '../components/html.ts'
import { csrfInput } from '../components/layout.ts'
import { pageOf } from '../components/paging.ts'
import { writeMinute } from '../components/time.ts'
import type { OperatorVisit } from '../http/visit.ts'
import { confirmFirst } from './confirm.ts'
import { nameOperator } from './operator-emails.ts'

const path = '/operator/managed-access'
/** Requests of one state per page. */
const perPage = 12

const stateTones: Readonly<Record<ManagedRequestState, string>> = {
  requested: 'warn',
  approved: 'good',
  rejected: 'bad',
  withdrawn: '',
}

function mayDecide({ operator }: OperatorVisit): boolean {
  return hasRole(operator.role, operatorActions.reviewManagedAccess.role)
}

/** Accounts' requests: waiting and approved ones. */
export function queue(visit: OperatorVisit, requests: readonly ManagedRequest[]): Html {
  const of = (state: ManagedRequestState) =>
    pageOf(
      requests.filter((request) => request.state === state),
      { path, query: visit.query, name: state, perPage },
    )
  const [waiting, approved] = [of('requested'), of('approved')]
  return html`<section class="card">
      <h2>Waiting for review</h2>
      ${
        waiting.shown.length === 0
          ? html`<p class="empty">No open requests.</p>`
          : html`<ul class="rows">
                ${waiting.shown.map((request) => row(visit, request, ['approve', 'reject']))}
              </ul>
              ${waiting.nav}`
      }
    </section>
    ${
      approved.shown.length === 0
        ? ''
        : html`<section class="card">
            <h2>Approved</h2>
            <ul class="rows">
              ${approved.shown.map((request) => row(visit, request, ['reject']))}
            </ul>
            ${approved.nav}
          </section>`
    }`
}

/** Closed requests. */
export function history(visit: OperatorVisit, requests: readonly ManagedRequest[]): Html | '' {
  const over = requests
    .filter(({ state }) => state === 'rejected' || state === 'withdrawn')
    .toSorted((a, b) => b.createdAtMs - a.createdAtMs)
  if (over.length === 0) return ''
  const { shown, nav } = pageOf(over, { path, query: visit.query, name: 'over', perPage })
  return html`<details ${visit.query.has('over') ? 'open' : ''}>
    <summary>${over.length} rejected or withdrawn</summary>
    <ul class="rows panel">
      ${shown.map((request) => row(visit, request, []))}
    </ul>
    ${nav}
  </details>`
}

function row(visit: OperatorVisit, request: ManagedRequest, steps: readonly ('approve' | 'reject')[]): Html {
  const { id, accountId, state, createdAtMs, decidedAtMs } = request
  return html`<li>
    <div>
      <a href="/operator/accounts/${accountId}"><code>${accountId}</code></a>
      <span class="tag ${stateTones[state]}">${state}</span><br /><span class="faint"
        >requested on
        ${writeMinute(createdAtMs)}${decidedAtMs === null ? '' : html`, decided on ${writeMinute(decidedAtMs)}`} ·
        <code>${id}</code></span
      >
    </div>
    ${
      mayDecide(visit) && steps.length > 0
        ? html`<div class="actions">
            ${steps.map(
              (step) =>
                html`<form method="post" action="${path}/${id}/${step}">
                  ${csrfInput(visit)}<button class="${step === 'reject' ? 'danger' : ''}">
                    ${step === 'approve' ? 'Approve' : state === 'approved' ? 'Revoke' : 'Reject'}<span class="unseen">
                      for ${accountId}</span
                    >
                  </button>
                </form>`,
            )}
          </div>`
        : ''
    }
  </li>`
}

/** The switch and the checks of contract 23.3. */
export function checks(visit: OperatorVisit, readiness: ManagedReadiness): Html {
  const { switchedOn, providers, durableQuotas, durableAudit } = readiness
  const found = [
    ['Resale agreements', providers.length > 0, providers.length === 0 ? 'none recorded' : providers.join(', ')],
    ['Quotas are durable', durableQuotas, durableQuotas ? 'proven' : 'not proven'],
    ['Audit events are durable', durableAudit, durableAudit ? 'proven' : 'not proven'],
  ] as const
  return html`<section class="card">
    <h2>Switch and checks</h2>
    <ul class="rows">
      <li>
        <span>The switch <span class="tag ${switchedOn ? 'good' : ''}">${switchedOn ? 'on' : 'off'}</span></span>
        ${
          mayDecide(visit)
            ? html`<form method="post" action="${path}/${switchedOn ? 'off' : 'on'}">
                ${csrfInput(visit)}<button class="${switchedOn ? 'danger' : ''}">
                  Turn ${switchedOn ? 'off' : 'on'}
                </button>
              </form>`
            : ''
        }
      </li>
      ${found.map(
        ([name, holds, words]) =>
          html`<li><span>${name}</span> <span class="tag ${holds ? 'good' : 'bad'}">${words}</span></li>`,
      )}
    </ul>
    <p class="faint">
      These results are at most five seconds old. While the switch is on, the service runs the checks more than twice a
      second. If any check fails, managed access turns off for all accounts within a second.
    </p>
  </section>`
}

/** The recorded resale agreements by provider. */
export function agreements(
  visit: OperatorVisit,
  providers: readonly string[],
  controls: readonly ResaleControl[],
  emails: ReadonlyMap<string, string>,
): Html {
  // Agreements with providers that are no longer configured can still be revoked.
  const recorded = controls.filter(({ revokedAtMs }) => revokedAtMs === null)
  const names = [...new Set([...providers, ...recorded.map(({ provider }) => provider)])]
  if (names.length === 0) return html``
  return html`<section class="card">
    <h2>Resale agreements</h2>
    <ul class="rows">
      ${names.map((provider) =>
        agreement(visit, { provider, control: recorded.find((one) => one.provider === provider), emails }),
      )}
    </ul>
  </section>`
}

interface Agreement {
  readonly provider: string
  readonly control: ResaleControl | undefined
  readonly emails: ReadonlyMap<string, string>
}

function agreement(visit: OperatorVisit, { provider, control, emails }: Agreement): Html {
  const action = `${path}/resale/${encodeURIComponent(provider)}`
  return html`<li>
    <div>
      <strong>${provider}</strong>
      ${
        control === undefined
          ? html`<span class="tag bad">none recorded</span>`
          : html`<span class="tag good">recorded</span><br /><span class="faint"
                ><code>${control.noteId}</code>, by ${nameOperator(control.recordedBy, emails)} on
                ${writeMinute(control.recordedAtMs)}</span
              >`
      }
    </div>
    ${
      !mayDecide(visit)
        ? ''
        : control === undefined
          ? html`<details>
              <summary>Record agreement<span class="unseen"> with ${provider}</span></summary>
              <form class="panel" method="post" action="${action}">
                ${csrfInput(visit)} ${confirmFirst(visit, path)}
                ${field({
                  name: 'note',
                  label: 'Reference',
                  hint: 'Only the ID of a contract or ticket, such as CONTRACT-17.',
                  maxCharacters: 40,
                })}
                <button>Record agreement</button>
              </form>
            </details>`
          : html`<form method="post" action="${action}/revoke">
              ${csrfInput(visit)}<button class="danger">
                Revoke<span class="unseen"> agreement with ${provider}</span>
              </button>
            </form>`
    }
  </li>`
}
