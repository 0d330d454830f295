import { html } from 'hono/html'
import { operatorActions } from '../../domain/operators.ts'
import type { Html } from '../layout.ts'
import type { Route } from '../route.ts'
import { writeNumber } from '../time.ts'
import type { OperatorVisit } from '../visit.ts'
import type { WebParts } from '../web-parts.ts'
import { consolePage } from './console-page.ts'

/** What needs somebody's attention. */
export const overviewRoutes: readonly Route[] = [
  { method: 'GET', path: '/operator', access: 'operator', ...operatorActions.see, handle: showOverview },
]

/** So many are counted at most; more are more than enough. */
const maxCounted = 1000

interface Attention {
  readonly name: string
  /** What it is when there is none. */
  readonly none: string
  readonly path: string
  count(parts: WebParts): Promise<number>
}

/** What waits for an operator: one row for each queue of the console. */
const attentions: readonly Attention[] = [
  {
    name: 'Upgrade requests',
    none: 'Nobody waits for another plan.',
    path: '/operator/requests',
    count: async ({ sales }) =>
      (await sales.plane.store.listUpgradeRequests({ limit: maxCounted, onlyOpen: true })).length,
  },
]

async function showOverview(visit: OperatorVisit): Promise<Response> {
  const { parts } = visit
  const counted = await Promise.all(
    attentions.map(async (attention) => ({ ...attention, count: await attention.count(parts) })),
  )
  const waiting = counted.filter(({ count }) => count > 0).length
  return consolePage(visit, {
    title: 'Overview',
    lead: waiting === 0 ? 'Nothing waits for you.' : 'This waits for somebody:',
    body: html`<div class="cards">${counted.map(card)}</div>`,
  })
}

function card({ name, none, path, count }: Omit<Attention, 'count'> & { readonly count: number }): Html {
  return html`<section class="card">
    <h2>${name}</h2>
    ${count === 0 ? html`<p class="faint">${none}</p>` : html`<p><strong>${writeNumber(count)}</strong> waiting.</p>`}
    <p>
      <a href="${path}">${count === 0 ? 'See them' : 'Look at them'}<span class="unseen">: ${name}</span></a>
    </p>
  </section>`
}
