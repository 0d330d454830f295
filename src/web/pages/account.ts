import { html } from 'hono/html'
import type { Session } from '../../domain/identity.ts'
import { listSessions } from '../../accounts/sessions.ts'
import { csrfInput, page, type Html } from '../layout.ts'
import type { Route } from '../route.ts'
import { writeAgo } from '../time.ts'
import type { AccountVisit, SignedIn } from '../visit.ts'

export const accountRoutes: readonly Route[] = [
  { method: 'GET', path: '/account', access: 'account', handle: showAccount },
]

async function showAccount(visit: AccountVisit): Promise<Response> {
  const { parts, signedIn } = visit
  const { account } = signedIn
  const sessions = await listSessions(parts.identity, account.id)
  const plan = parts.plans.find(({ id }) => id === account.planId)
  return page(visit, {
    title: 'Account',
    lead: html`${account.name} is on the plan <strong>${plan?.name ?? account.planId}</strong>.`,
    body: html`<section class="card">
      <h2>Signed-in browsers</h2>
      ${sessionList(sessions, signedIn, parts.clock.nowMs())}
    </section>`,
  })
}

function sessionList(sessions: readonly Session[], signedIn: SignedIn, nowMs: number): Html {
  return html`<ul class="rows">
      ${sessions.map(
        (session) =>
          html`<li>
            <div>
              <strong>${session.agent}</strong>${
                session.id === signedIn.session.id ? html` <span class="tag good">this one</span>` : ''
              }<br />
              <span class="faint">used ${writeAgo(session.lastSeenAtMs, nowMs)}</span>
            </div>
            <form method="post" action="/account/sessions/${session.id}/end">
              ${csrfInput(signedIn)}<button class="quiet">Sign out<span class="unseen"> ${session.agent}</span></button>
            </form>
          </li>`,
      )}
    </ul>
    <form method="post" action="/account/sessions/end-all">
      ${csrfInput(signedIn)}<button class="secondary">Sign out everywhere</button>
    </form>`
}
