import type { LinkName } from './links.ts'

/** Who caused the error, for `error.source` (contract 4.1). */
type ErrorSource = 'client' | 'gateway' | 'provider' | 'edge'

/** Which signals of contract 4.4 and 4.5 the body of an error has in addition to `request_id`. */
type SignalGroup = 'authentication' | 'billing' | 'none'

/** One row of the error catalog. */
export interface ErrorEntry {
  readonly status: number
  readonly type: string
  readonly source: ErrorSource
  /** Whether the same request may succeed later. Becomes `x-should-retry` (contract 4.3). */
  readonly retryable: boolean
  readonly signals: SignalGroup
  /** The link at the end of the message. For authentication errors, also the value of `primaryActionUrl`. */
  readonly action?: LinkName
  /**
   * What happened and what to do. `{name}` is replaced by that word of the error's facts, and `{name:noun}` by a number
   * with its noun, which is plural unless the number is 1. The link is appended.
   */
  readonly message: string
}

/** Common fields of 401 errors. */
export const authentication = {
  status: 401,
  type: 'authentication_error',
  source: 'client',
  retryable: false,
  signals: 'authentication',
} as const
/** Common fields of 400 errors and other invalid requests. */
export const invalid = {
  status: 400,
  type: 'invalid_request_error',
  source: 'client',
  retryable: false,
  signals: 'none',
} as const
/** Common fields of 403 errors. */
export const forbidden = {
  status: 403,
  type: 'permission_error',
  source: 'client',
  retryable: false,
  signals: 'none',
} as const
/** Common fields of 429 errors. */
export const limited = {
  status: 429,
  type: 'rate_limit_error',
  source: 'client',
  retryable: true,
  signals: 'none',
} as const
/** Common fields of errors about budgets. */
export const overBudget = {
  status: 402,
  type: 'insufficient_quota',
  source: 'client',
  retryable: false,
  signals: 'none',
  action: 'budgetsUrl',
} as const
/** Common fields of 503 errors. */
export const unavailable = {
  status: 503,
  type: 'server_error',
  source: 'gateway',
  retryable: true,
  signals: 'none',
} as const
