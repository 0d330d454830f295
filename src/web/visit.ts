import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Account } from '../domain/accounts.ts'
import type { Session } from '../domain/identity.ts'
import type { Operator, OperatorSession } from '../domain/operators.ts'
import type { Form } from './form.ts'
import type { WebParts } from './web-parts.ts'

/** One request of a browser as a page sees it. */
export interface Visit {
  /** What the pages work with. */
  readonly parts: WebParts
  readonly requestId: string
  readonly path: string
  /** The parts of the path that the route names. */
  readonly params: Readonly<Record<string, string>>
  readonly query: URLSearchParams
  readonly headers: Headers
  /** What was filled in; empty for a GET. */
  readonly form: Form
  /** Where the browser is: its address, or the one that a trusted proxy tells. */
  readonly address: string
  /** Whether the request comes from this very machine, past no proxy. */
  readonly isFromThisMachine: boolean
  readonly userAgent: string
  /** Whoever is signed in, if anybody is. */
  readonly signedIn: SignedIn | undefined
}

/** A browser's session and its account. */
export interface SignedIn {
  readonly session: Session
  readonly account: Account
  /** Goes into every form of this session, and must come back (see csrf.ts). */
  readonly csrfToken: string
}

/** A visit of somebody who is signed in to an account. */
export interface AccountVisit extends Visit {
  readonly signedIn: SignedIn
}

/** Who is signed in to the console. */
export interface EnteredOperator {
  readonly operator: Operator
  readonly session: OperatorSession
  /** Goes into every form of the console: `csrfInput(visit)`. */
  readonly csrfToken: string
}

/** A visit of an operator to the console. Nobody's account is signed in there: `signedIn` is undefined. */
export interface OperatorVisit extends Visit, EnteredOperator {
  readonly signedIn: undefined
}

/** A visit of anybody to the console's door. */
export interface DoorVisit extends Visit {
  readonly signedIn: undefined
  /** Who went in before, in this browser. */
  readonly entered: EnteredOperator | undefined
}

/** What a script of ours asks in somebody's session: the body is not read yet, and the answer is written by who reads it. */
export interface ScriptVisit extends AccountVisit {
  readonly connection: Connection
}

/** One request as Node has it, and where its answer goes. */
export interface Connection {
  readonly request: IncomingMessage
  readonly response: ServerResponse
}

/** A call of another service: its body as it came, for checking the signature over it. */
export interface WebhookVisit extends Omit<Visit, 'form' | 'signedIn'> {
  readonly body: Uint8Array
}
