import type { ErrorCode } from '../../src/domain/errors.ts'
import { linksFor } from '../../src/domain/links.ts'
import type { ExpectedRefusal } from '../refusals.ts'
import type { Service, ServiceOptions } from '../service.ts'
import type { Answer } from '../wire.ts'

/** One way in which a code reaches a caller, and what the caller must get. */
export interface RefusalRow extends Omit<ExpectedRefusal, 'code'> {
  readonly code: ErrorCode
  /** Where one code is provoked in several ways. */
  readonly how?: string
  readonly options?: ServiceOptions
  readonly provoke: (service: Service) => Promise<Answer>
}

/** What is the same in many rows of contract 4. */
export const client = { source: 'client', retryable: false } as const
/** 400 to who has a good key. */
export const refused = { ...client, status: 400, type: 'invalid_request_error', usage: true } as const
/** 401. */
export const unauthorized = {
  ...client,
  status: 401,
  type: 'authentication_error',
  signals: 'authentication',
  usage: false,
} as const
/** 503, to be asked again in a second. */
export const unavailable = {
  status: 503,
  type: 'server_error',
  source: 'gateway',
  retryable: true,
  retryAfter: 1,
} as const
/** The links in which `APP` stands for their origin. */
export const links = linksFor('APP')

/** Plans that are used up quickly. */
export const plans = {
  max: { name: 'Max', requests_per_minute: 600, requests_per_month: 100_000, premium: true },
  plain: { name: 'Plain', requests_per_minute: 600, requests_per_month: 100_000 },
  slow: { name: 'Slow', requests_per_minute: 1, requests_per_month: 100 },
  small: { name: 'Small', requests_per_minute: 100, requests_per_month: 1 },
}
