import { html } from 'hono/html'
import { operatorActions } from '../../domain/operators.ts'
import type { ServiceHealth } from '../../domain/service-health.ts'
import type { Html } from '../components/html.ts'
import { writeNumber } from '../components/time.ts'
import type { PageRoute } from '../http/route.ts'
import type { OperatorVisit } from '../http/visit.ts'
import type { WebDeps } from '../web-deps.ts'
import { reviewLine } from './audit-card.ts'
import { auditRows } from './audit-row.ts'
import { consolePage } from './console-page.ts'
import { operatorEmails } from './operator-emails.ts'
import { findTroubles, troublesCard, type Trouble } from './troubles.ts'

/** What needs attention (contract 24.13). */
export const overviewRoutes: readonly PageRoute[] = [
  { method: 'GET', path: '/operator', access: 'operator', ...operatorActions.see, handle: showOverview },
]

/** Counting stops here. */
const maxCounted = 1000
/** The newest entries of the audit log. */
const shownLatest = 5

interface Attention {
  readonly name: string
  /** Shown when nothing is waiting. */
  readonly none: string
  readonly path: string
  /** How many are waiting, up to `maxCounted`. */
  count(deps: WebDeps): Promise<number>
}

/** The queues that wait for an operator. */
const attentions: readonly Attention[] = [
  {
    name: 'Upgrade requests',
    none: 'No open requests.',
    path: '/operator/requests',
    count: async ({ sales }) =>
      (await sales.plansDeps.store.listUpgradeRequests({ limit: maxCounted, onlyOpen: true })).length,
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
    count: async ({ consoleDeps }) => (await consoleDeps.tickets.countTickets()).open,
  },
]

async function showOverview(visit: OperatorVisit): Promise<Response> {
  const { deps } = visit
  const [troubles, health, latest, emails, ...counted] = await Promise.all([
    findTroubles(deps),
    deps.consoleDeps.health(),
    deps.consoleDeps.audit.store.listAudit({ limit: shownLatest }),
    operatorEmails(deps),
    ...attentions.map(async (attention) => ({ ...attention, waiting: await attention.count(deps) })),
  ])
  const isQuiet = troubles.length === 0 && counted.every(({ waiting }) => waiting === 0)
  return consolePage(visit, {
    title: 'Overview',
    lead: isQuiet ? 'Everything works, and nothing is waiting for you.' : leadOf(troubles),
    body: html`${troubles.length === 0 ? '' : troublesCard(troubles, deps.clock.nowMs())}
      <div class="cards small">
        ${counted.map(attentionCard)} ${health.nodes.length > 1 ? nodesCard(health) : ''}
        <section class="card">
          <h2>Audit log</h2>
          ${reviewLine(deps.consoleDeps.audit.last, deps.clock.nowMs())}
          <p><a href="/operator/audit">See the log</a></p>
        </section>
      </div>
      <section class="card">
        <h2>Recent changes</h2>
        ${auditRows(latest, emails)}
      </section>`,
  })
}

function nodesCard(health: ServiceHealth): Html {
  const { nodes, of } = health.serving()
  return html`<section class="card">
    <h2>Nodes</h2>
    <p class="faint">${nodes} of ${of} serve requests.</p>
    <p><a href="/operator/nodes">See nodes</a></p>
  </section>`
}

function leadOf(troubles: readonly Trouble[]): string {
  if (troubles.length === 0) return 'Everything works. Some requests or tickets are waiting for you.'
  return troubles.length === 1 ? 'There is 1 current problem.' : `There are ${troubles.length} current problems.`
}

function attentionCard({ name, none, path, waiting }: Omit<Attention, 'count'> & { readonly waiting: number }): Html {
  const count = waiting < maxCounted ? writeNumber(waiting) : `${writeNumber(maxCounted)} or more`
  return html`<section class="card">
    <h2>${name}${waiting === 0 ? '' : html` <span class="tag warn">${count} waiting</span>`}</h2>
    ${waiting === 0 ? html`<p class="faint">${none}</p>` : ''}
    <p><a href="${path}">${waiting === 0 ? 'See' : 'Review'} ${name.toLowerCase()}</a></p>
  </section>`
}
