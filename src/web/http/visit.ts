import type { Account } from '../../domain/accounts.ts'
import type { Session } from '../../domain/identity.ts'
import type { Operator, OperatorSession } from '../../domain/operators.ts'
import type { WebDeps } from '../web-deps.ts'
import type { Form } from './form.ts'
import type { HttpExchange } from './http-exchange.ts'

/** A browser request as page handlers see it. */
export interface Visit {
  /** Dependencies of the pages. */
  readonly deps: WebDeps
  readonly requestId: string
  readonly path: string
  /** Path parameters of the route. */
  readonly params: Readonly<Record<string, string>>
  readonly query: URLSearchParams
  readonly headers: Headers
  /** The submitted form; empty for a GET. */
  readonly form: Form
  /** The client's IP address, from the connection or a trusted proxy. */
  readonly address: string
  /** Whether the request comes from this machine without a proxy. */
  readonly isFromThisMachine: boolean
  readonly userAgent: string
  /** The signed-in account and its session, if any. */
  readonly signedIn: SignedIn | undefined
}

/** A browser's session and its account. */
export interface SignedIn {
  readonly session: Session
  readonly account: Account
  /** The CSRF token for every form of this session (see csrf.ts). */
  readonly csrfToken: string
}

/** A request from a visitor who is signed in to an account. */
export interface AccountVisit extends Visit {
  readonly signedIn: SignedIn
}

/** An operator with a console session. */
export interface SignedInOperator {
  readonly operator: Operator
  readonly session: OperatorSession
  /** The CSRF token for every form of the console: `csrfInput(visit)`. */
  readonly csrfToken: string
}

/** A request from a signed-in operator. Console requests have no account session: `signedIn` is undefined. */
export interface OperatorVisit extends Visit, SignedInOperator {
  readonly signedIn: undefined
}

/** A request to the console's sign-in pages. */
export interface ConsoleSignInRequest extends Visit {
  readonly signedIn: undefined
  /** The operator who is already signed in with this browser, if any. */
  readonly signedInOperator: SignedInOperator | undefined
}

/** A request from one of our scripts. Its body is unread, and the handler writes the response itself. */
export interface ScriptVisit extends AccountVisit {
  readonly exchange: HttpExchange
}

/** A webhook request with its raw body, for verifying the signature. */
export interface WebhookVisit extends Omit<Visit, 'form' | 'signedIn'> {
  readonly body: Uint8Array
}
