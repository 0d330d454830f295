import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Principal } from '../gateway/ports.ts'

/** What is served at a path. */
export interface Route {
  readonly method: 'GET' | 'HEAD' | 'POST' | 'DELETE'
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

/** For an answer of a model: a POST, with a key. */
export function modelRoute(handle: Route['handle']): Route {
  return { method: 'POST', access: 'key', gated: true, handle }
}

/** For what is read with a key. */
export function keyRoute(handle: Route['handle']): Route {
  return { method: 'GET', access: 'key', gated: true, handle }
}

/** For what everybody may read who says what they are. */
export function publicRoute(handle: Route['handle']): Route {
  return { method: 'GET', access: 'public', gated: true, handle }
}

/** For probes and load balancers, which do not say what they are. */
export function probeRoute(handle: Route['handle']): Route {
  return { method: 'GET', access: 'public', gated: false, handle }
}
