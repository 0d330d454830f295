import type { OperatorRole } from '../../domain/operators.ts'
import type { WebDeps } from '../web-deps.ts'
import type { AccountVisit, ConsoleSignInRequest, OperatorVisit, ScriptVisit, Visit, WebhookVisit } from './visit.ts'

/**
 * Who can call a route. `public`: anyone. `account`: anyone signed in to an account. `script`: the same, from one of
 * our scripts, with the CSRF token in a header. `operator`: a signed-in operator with the required role; operator
 * sessions are separate from account sessions. `console_sign_in`: anyone, to sign in to the operator console.
 * `webhook`: another service, which authenticates with a signature.
 */
type Access = 'public' | 'account' | 'script' | 'operator' | 'console_sign_in' | 'webhook'

interface RouteFor<Who extends Access, Given> {
  readonly method: 'GET' | 'POST'
  /** `/account/keys/:keyId`; segments with a colon become `visit.params`. */
  readonly path: string
  readonly access: Who
  /**
   * Origins besides our own that forms of this page may lead to, including redirects; for the content security policy.
   */
  readonly formTargets?: (deps: WebDeps) => readonly string[]
  handle(visit: Given): Response | Promise<Response>
}

/** A console route. Its requirements come from `operatorActions`: `{ ...operatorActions.see, … }`. */
export interface OperatorRoute extends RouteFor<'operator', OperatorVisit> {
  /** The lowest role that can call it. */
  readonly role: OperatorRole
  /** Whether the operator must have confirmed their identity within the last ten minutes. */
  readonly stepUp: boolean
}

/** A console route that anyone can call, for signing in. */
export type ConsoleSignInRoute = RouteFor<'console_sign_in', ConsoleSignInRequest>

/** An entry of the route table. */
export type PageRoute =
  | RouteFor<'public', Visit>
  | RouteFor<'account', AccountVisit>
  | OperatorRoute
  | ConsoleSignInRoute
  | RouteFor<'script', ScriptVisit>
  | RouteFor<'webhook', WebhookVisit>
