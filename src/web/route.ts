import type { OperatorRole } from '../domain/operators.ts'
import type { AccountVisit, DoorVisit, OperatorVisit, ScriptVisit, Visit, WebhookVisit } from './visit.ts'
import type { WebParts } from './web-parts.ts'

/**
 * Who may call a route. `public`: anybody. `account`: whoever is signed in to an account; `script`: the same by a script of
 * ours, with the token in a header. `operator`: whoever is signed in as one, which is apart from accounts, and has the
 * role. `door`: anybody, on the way into the operator's console. `webhook`: another service, which proves itself by what it
 * signed.
 */
type Access = 'public' | 'account' | 'script' | 'operator' | 'door' | 'webhook'

interface RouteFor<Who extends Access, Given> {
  readonly method: 'GET' | 'POST'
  /** `/account/keys/:keyId`; a part with a colon is given in `visit.params`. */
  readonly path: string
  readonly access: Who
  /** Origins besides our own that a form of this page may lead to, through a redirect too; for the content security policy. */
  readonly formTargets?: (parts: WebParts) => readonly string[]
  handle(visit: Given): Response | Promise<Response>
}

/** A row of the console. What it needs comes from `operatorActions`: `{ ...operatorActions.see, … }`. */
export interface OperatorRoute extends RouteFor<'operator', OperatorVisit> {
  /** The lowest role that may. */
  readonly role: OperatorRole
  /** Whether it must have been proven within ten minutes who sits there. */
  readonly stepUp: boolean
}

/** A row of the console that anybody may call: signing in to it. */
export type DoorRoute = RouteFor<'door', DoorVisit>

/** One row of the table of routes. What may be called, and by whom, is only said here. */
export type Route =
  | RouteFor<'public', Visit>
  | RouteFor<'account', AccountVisit>
  | OperatorRoute
  | DoorRoute
  | RouteFor<'script', ScriptVisit>
  | RouteFor<'webhook', WebhookVisit>
