import { html } from 'hono/html'
import { hasRole, type OperatorRole } from '../../domain/operators.ts'
import type { Html } from '../components/html.ts'
import { csrfInput, frame, type Page } from '../components/layout.ts'
import { assetUrl } from '../http/assets.ts'
import { describeError } from '../http/page-error.ts'
import type { SignedInOperator, Visit } from '../http/visit.ts'

/** The console navigation, with the lowest role for each page. */
const navigation: readonly { readonly path: string; readonly name: string; readonly role: OperatorRole }[] = [
  { path: '/operator', name: 'Overview', role: 'viewer' },
  { path: '/operator/traffic', name: 'Traffic', role: 'viewer' },
  { path: '/operator/accounts', name: 'Accounts', role: 'viewer' },
  { path: '/operator/requests', name: 'Requests', role: 'viewer' },
  { path: '/operator/costs', name: 'Costs', role: 'viewer' },
  { path: '/operator/backends', name: 'Backends', role: 'viewer' },
  { path: '/operator/profiles', name: 'Profiles', role: 'viewer' },
  { path: '/operator/managed-access', name: 'Managed access', role: 'viewer' },
  { path: '/operator/incidents', name: 'Incidents', role: 'viewer' },
  { path: '/operator/tickets', name: 'Tickets', role: 'viewer' },
  { path: '/operator/operators', name: 'Operators', role: 'viewer' },
  { path: '/operator/audit', name: 'Audit', role: 'viewer' },
]

type Seen = Pick<Visit, 'path' | 'query'> & Partial<SignedInOperator>

/** The link back from a page without actions. */
export const backToOverview = html`<p><a class="button" href="/operator">Overview</a></p>`

/** Renders a console page, before or after sign-in. */
export function consolePage(visit: Seen, it: Page): Promise<Response> {
  return frame(visit.query, it, {
    titleSuffix: 'svc-router console',
    className: 'console',
    header: header(visit),
    footer: html`<footer>
      <p>svc-router operator console. All changes are recorded in the audit log. <a href="/">Go to the app</a></p>
    </footer>`,
  })
}

/** The console's error page for anything thrown. */
export function consoleErrorPage(
  visit: Visit,
  entered: SignedInOperator | undefined,
  thrown: unknown,
): Promise<Response> {
  const { title, text, status } = describeError(visit, thrown)
  return consolePage(
    { ...entered, path: visit.path, query: new URLSearchParams() },
    {
      title,
      lead: text,
      status,
      narrow: true,
      body: html`${backToOverview}
        <p class="faint">Request ID: <code>${visit.requestId}</code></p>`,
    },
  )
}

function header({ path, operator, csrfToken }: Seen): Html {
  return html`<header>
    <a class="brand" href="/operator"
      ><img src="${assetUrl('icon.svg')}" alt="" width="24" height="24" /> svc-router
      <span class="tag warn">Console</span></a
    >
    ${
      operator === undefined || csrfToken === undefined
        ? ''
        : html`<div class="who">
              <span>${operator.email} <span class="faint">(${operator.role})</span></span>
              <form method="post" action="/operator/sign-out">
                ${csrfInput({ csrfToken })}<button class="quiet">Sign out</button>
              </form>
            </div>
            <nav aria-label="Console">
              ${navigation
                .filter(({ role }) => hasRole(operator.role, role))
                .map((entry) => html`<a href="${entry.path}" ${markOf(path, entry.path)}>${entry.name}</a>`)}
            </nav>`
    }
  </header>`
}

/** Marks the navigation entry of the current page or of its parent. */
function markOf(path: string, entryPath: string): Html | '' {
  if (path === entryPath) return html`aria-current="page"`
  return entryPath !== '/operator' && path.startsWith(`${entryPath}/`) ? html`aria-current="true"` : ''
}
