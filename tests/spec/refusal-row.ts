import type { ErrorCode } from '../../src/domain/errors.ts'
import { linksFor } from '../../src/domain/links.ts'
import type { ExpectedRefusal } from '../refusals.ts'
import type { Service, ServiceOptions } from '../service.ts'
import type { Answer } from '../wire.ts'

/** One cause of an error code, and the answer that the client must get. */
export interface RefusalRow extends Omit<ExpectedRefusal, 'code'> {
  readonly code: ErrorCode
  /** The cause, if several rows have the same code. */
  readonly how?: string
  readonly options?: ServiceOptions
  readonly provoke: (service: Service) => Promise<Answer>
}

/** Values that many rows of contract 4 share. */
export const client = { source: 'client', retryable: false } as const
/** A 400 for a request with a valid key. */
export const refused = { ...client, status: 400, type: 'invalid_request_error', usage: true } as const
/** A 401. */
export const unauthorized = {
  ...client,
  status: 401,
  type: 'authentication_error',
  signals: 'authentication',
  usage: false,
} as const
/** A 503 that asks for a retry after one second. */
export const unavailable = {
  status: 503,
  type: 'server_error',
  source: 'gateway',
  retryable: true,
  retryAfter: 1,
} as const
/** The links, with `APP` as a placeholder for their origin. */
export const links = linksFor('APP')

/** Plans with low limits. */
export const plans = {
  max: { name: 'Max', requests_per_minute: 600, requests_per_month: 100_000, premium: true },
  plain: { name: 'Plain', requests_per_minute: 600, requests_per_month: 100_000 },
  slow: { name: 'Slow', requests_per_minute: 1, requests_per_month: 100 },
  small: { name: 'Small', requests_per_minute: 100, requests_per_month: 1 },
}
