import type { IncomingMessage, ServerResponse } from 'node:http'

/** The Node request and response objects. */
export interface HttpExchange {
  readonly request: IncomingMessage
  readonly response: ServerResponse
}
