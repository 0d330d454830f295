import { html } from 'hono/html'
import { operatorActions } from '../../domain/operators.ts'
import type { Html } from '../layout.ts'
import type { Route } from '../route.ts'
import { writeNumber } from '../time.ts'
import type { OperatorVisit } from '../visit.ts'
import type { WebParts } from '../web-parts.ts'
import { reviewLine } from './audit-card.ts'
import { auditRows } from './audit-row.ts'
import { consolePage } from './console-page.ts'
import { findTroubles, troublesCard, type Trouble } from './troubles.ts'
import { operatorEmails } from './operator-emails.ts'

/** What needs somebody's attention. */
export const overviewRoutes: readonly Route[] = [
  { method: 'GET', path: '/operator', access: 'operator', ...operatorActions.see, handle: showOverview },
]

/** So many are counted at most; more are more than enough. */
const maxCounted = 1000
/** The newest entries of the audit log. */
const shownLatest = 5

interface Attention {
  readonly name: string
  /** What is said when nothing waits. */
  readonly none: string
  readonly path: string
  /** How many wait, up to `maxCounted`. */
  count(parts: WebParts): Promise<number>
}

/** What waits for an operator: one row for each queue of the console. */
const attentions: readonly Attention[] = [
  {
    name: 'Upgrade requests',
    none: 'No open requests.',
    path: '/operator/requests',
    count: async ({ sales }) =>
      (await sales.plane.store.listUpgradeRequests({ limit: maxCounted, onlyOpen: true })).length,
  },
  {
    name: 'Managed access',
    none: 'No open requests.',
    path: '/operator/managed-access',
    count: async ({ managed }) =>
      (await managed.store.listManagedRequests({ limit: maxCounted, state: 'requested' })).length,
  },
  {
    name: 'Tickets',
    none: 'No open tickets.',
    path: '/operator/tickets',
    count: async ({ desk }) => (await desk.tickets.countTickets()).open,
  },
]

async function showOverview(visit: OperatorVisit): Promise<Response> {
  const { parts } = visit
  const [troubles, latest, emails, ...counted] = await Promise.all([
    findTroubles(parts),
    parts.desk.audit.store.listAudit({ limit: shownLatest }),
    operatorEmails(parts),
    ...attentions.map(async (attention) => ({ ...attention, waiting: await attention.count(parts) })),
  ])
  const isQuiet = troubles.length === 0 && counted.every(({ waiting }) => waiting === 0)
  return consolePage(visit, {
    title: 'Overview',
    lead: isQuiet ? 'Everything works, and nothing waits for you.' : leadOf(troubles),
    body: html`${troubles.length === 0 ? '' : troublesCard(troubles, parts.clock.nowMs())}
      <div class="cards small">
        ${counted.map(attentionCard)}
        <section class="card">
          <h2>Audit log</h2>
          ${reviewLine(parts.desk.audit.last, parts.clock.nowMs())}
          <p><a href="/operator/audit">See the log</a></p>
        </section>
      </div>
      <section class="card">
        <h2>Recent changes</h2>
        ${auditRows(latest, emails)}
      </section>`,
  })
}

function leadOf(troubles: readonly Trouble[]): string {
  if (troubles.length === 0) return 'Everything works. Some requests wait for a decision.'
  return troubles.length === 1 ? '1 thing is wrong now.' : `${troubles.length} things are wrong now.`
}

function attentionCard({ name, none, path, waiting }: Omit<Attention, 'count'> & { readonly waiting: number }): Html {
  const count = waiting < maxCounted ? writeNumber(waiting) : `${writeNumber(maxCounted)} or more`
  return html`<section class="card">
    <h2>${name}${waiting === 0 ? '' : html` <span class="tag warn">${count} waiting</span>`}</h2>
    ${waiting === 0 ? html`<p class="faint">${none}</p>` : ''}
    <p><a href="${path}">${waiting === 0 ? 'See' : 'Look at'} ${name.toLowerCase()}</a></p>
  </section>`
}
