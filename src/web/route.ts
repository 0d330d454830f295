import type { AccountVisit, Visit, WebhookVisit } from './visit.ts'
import type { WebParts } from './web-parts.ts'

/**
 * Who may call a route. `public`: anybody. `account`: whoever is signed in to an account. `operator`: whoever is signed
 * in as one, which is apart from accounts. `webhook`: another service, which proves itself by what it signed.
 */
type Access = 'public' | 'account' | 'operator' | 'webhook'

interface RouteFor<Who extends Access, Given> {
  readonly method: 'GET' | 'POST'
  /** `/account/keys/:keyId`; a part with a colon is given in `visit.params`. */
  readonly path: string
  readonly access: Who
  /** Origins besides our own that a form of this page may lead to, through a redirect too; for the content security policy. */
  readonly formTargets?: (parts: WebParts) => readonly string[]
  handle(visit: Given): Response | Promise<Response>
}

/** One row of the table of routes. What may be called, and by whom, is only said here. */
export type Route =
  | RouteFor<'public', Visit>
  | RouteFor<'account', AccountVisit>
  | RouteFor<'operator', never>
  | RouteFor<'webhook', WebhookVisit>
