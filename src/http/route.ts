import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Principal } from '../gateway/ports.ts'

/** A route: a method, its access rules, and its handler. */
export interface ApiRoute {
  readonly method: 'GET' | 'HEAD' | 'POST' | 'DELETE'
  /** All methods of the path, if it has several: `GET, DELETE`. */
  readonly allowed?: string
  /** Who may call it: anyone, or only holders of an active key. */
  readonly access: 'public' | 'key'
  /** Whether the edge gate applies: probes and load balancers do not identify themselves. */
  readonly gated: boolean
  readonly handle: (exchange: Exchange) => void | Promise<void>
}

/** One request on its way through the API. */
export interface Exchange {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly requestId: string
  principal: Principal | undefined
  /** Released when the response is closed. */
  held: Disposable | undefined
}

/** A model endpoint: POST, with a key. */
export function modelRoute(handle: ApiRoute['handle']): ApiRoute {
  return { method: 'POST', access: 'key', gated: true, handle }
}

/** A resource that is read with a key. */
export function keyRoute(handle: ApiRoute['handle']): ApiRoute {
  return { method: 'GET', access: 'key', gated: true, handle }
}

/** A public resource for clients that identify themselves. */
export function publicRoute(handle: ApiRoute['handle']): ApiRoute {
  return { method: 'GET', access: 'public', gated: true, handle }
}

/** For probes and load balancers, which do not identify themselves. */
export function probeRoute(handle: ApiRoute['handle']): ApiRoute {
  return { method: 'GET', access: 'public', gated: false, handle }
}
