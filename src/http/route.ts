import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Principal } from '../gateway/ports.ts'

/** What is served at a path. */
export interface Route {
  readonly method: 'GET' | 'POST' | 'DELETE'
  /** All methods of the path, where it has several: `GET, DELETE`. */
  readonly allowed?: string
  /** Who may call it: anybody, or the holder of an active key. */
  readonly access: 'public' | 'key'
  /** Whether the edge gate stands before it: probes and load balancers do not say what they are. */
  readonly gated: boolean
  readonly handle: (exchange: Exchange) => void | Promise<void>
}

/** One request on its way through the API. */
export interface Exchange {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly requestId: string
  principal: Principal | undefined
}
