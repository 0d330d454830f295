import { html } from 'hono/html'
import { AccountsError } from '../../accounts/accounts-error.ts'
import { markTicket } from '../../accounts/support/tickets.ts'
import { hasRole, operatorActions } from '../../domain/operators.ts'
import type { Ticket } from '../../domain/tickets.ts'
import { breadcrumbs } from '../components/breadcrumbs.ts'
import type { Html } from '../components/html.ts'
import { csrfInput } from '../components/layout.ts'
import { withNotice } from '../components/notices.ts'
import { pagePosition } from '../components/paging.ts'
import { writeAgo, writeMinute } from '../components/time.ts'
import { operatorAccountsDepsFor } from '../http/control.ts'
import { PageError } from '../http/page-error.ts'
import { redirect } from '../http/redirect.ts'
import type { PageRoute } from '../http/route.ts'
import type { OperatorVisit } from '../http/visit.ts'
import { consolePage } from './console-page.ts'

const path = '/operator/tickets'
/** Tickets per page, for open and closed ones each. */
const perPage = 30
/** Longest excerpt in the list. */
const shownCharacters = 90
const { see, answerTicket } = operatorActions

/** Support tickets. */
export const ticketsRoutes: readonly PageRoute[] = [
  { method: 'GET', path, access: 'operator', ...see, handle: showTickets },
  { method: 'GET', path: `${path}/:ticketId`, access: 'operator', ...see, handle: (visit) => showTicket(visit) },
  marking('close', 'closed'),
  marking('reopen', 'reopened'),
]

async function showTickets(visit: OperatorVisit): Promise<Response> {
  const { consoleDeps, clock } = visit.deps
  const { open, closed } = await consoleDeps.tickets.countTickets()
  const rows = async (state: 'open' | 'closed', count: number): Promise<Html> => {
    const { from, nav } = pagePosition(count, { path, query: visit.query, name: state, perPage })
    const shown = await consoleDeps.tickets.listTickets(perPage, { state, from })
    return html`<ul class="rows">
        ${shown.map((ticket) => row(ticket, clock.nowMs()))}
      </ul>
      ${nav}`
  }
  return consolePage(visit, {
    title: 'Tickets',
    lead: 'Messages to support. Answer them by email. They are deleted after 180 days.',
    body: html`<section class="card">
        <h2>Open</h2>
        ${open === 0 ? html`<p class="empty">No open tickets.</p>` : await rows('open', open)}
      </section>
      ${
        closed === 0
          ? ''
          : html`<section class="card">
              <h2>Closed</h2>
              ${await rows('closed', closed)}
            </section>`
      }`,
  })
}

function row({ id, replyTo, text, createdAtMs }: Ticket, nowMs: number): Html {
  const [line = ''] = text.split('\n')
  return html`<li>
    <div>
      <a href="${path}/${id}">${line.length > shownCharacters ? `${line.slice(0, shownCharacters)}…` : line}</a><br />
      <span class="faint">${replyTo}</span>
    </div>
    <span class="faint">${writeAgo(createdAtMs, nowMs)}</span>
  </li>`
}

async function found({ deps, params }: OperatorVisit): Promise<Ticket> {
  const ticket = await deps.consoleDeps.tickets.findTicket(params['ticketId'] ?? '')
  if (ticket === undefined) throw new PageError('not_found')
  return ticket
}

async function showTicket(visit: OperatorVisit, problem?: string): Promise<Response> {
  const { id, accountId, replyTo, requestId, text, createdAtMs, closedAtMs } = await found(visit)
  const mayAnswer = hasRole(visit.operator.role, answerTicket.role)
  const isOpen = closedAtMs === null
  const action = isOpen ? 'close' : 'reopen'
  return consolePage(visit, {
    title: 'Ticket',
    above: breadcrumbs({ path, name: 'Tickets' }),
    lead: html`<span class="tag ${isOpen ? 'warn' : 'good'}">${isOpen ? 'open' : 'closed'}</span>`,
    status: problem === undefined ? 200 : 422,
    problem,
    body: html`<section class="card">
        <h2>Message</h2>
        <p>${text.split('\n').map((line) => html`${line}<br />`)}</p>
      </section>
      <section class="card">
        <h2>Sender</h2>
        <dl class="facts">
          <dt>Reply to</dt>
          <dd><a href="mailto:${encodeURIComponent(replyTo)}">${replyTo}</a></dd>
          <dt>Account</dt>
          <dd>
            ${accountId === null ? 'not signed in' : html`<a href="/operator/accounts/${accountId}"><code>${accountId}</code></a>`}
          </dd>
          <dt>Request</dt>
          <dd>${requestId === null ? 'none' : html`<code>${requestId}</code>`}</dd>
          <dt>Sent</dt>
          <dd>${writeMinute(createdAtMs)}</dd>
          ${
            closedAtMs === null
              ? ''
              : html`<dt>Closed</dt>
                  <dd>${writeMinute(closedAtMs)}</dd>`
          }
          <dt>Ticket</dt>
          <dd><code>${id}</code></dd>
        </dl>
        ${
          mayAnswer
            ? html`<form method="post" action="${path}/${id}/${action}">
                ${csrfInput(visit)}<button>${isOpen ? 'Close ticket' : 'Reopen ticket'}</button>
              </form>`
            : ''
        }
      </section>`,
  })
}

function marking(verb: 'close' | 'reopen', to: 'closed' | 'reopened'): PageRoute {
  return {
    method: 'POST',
    path: `${path}/:ticketId/${verb}`,
    access: 'operator',
    ...answerTicket,
    async handle(visit) {
      const { id } = await found(visit)
      try {
        await markTicket({ ...operatorAccountsDepsFor(visit), store: visit.deps.consoleDeps.tickets }, id, to)
      } catch (error) {
        if (!(error instanceof AccountsError && error.code === 'ticket_unchanged')) throw error
        return showTicket(visit, 'The ticket is already in this state.')
      }
      return redirect(withNotice(`${path}/${id}`, `ticket-${to}`))
    },
  }
}
