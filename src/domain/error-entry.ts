import type { LinkName } from './links.ts'

/** Who is at fault, as the caller reads it in `error.source` (contract 4.1). */
type ErrorSource = 'client' | 'gateway' | 'provider' | 'edge'

/** Which group of the signals of contract 4.4 and 4.5 an error's body carries besides `request_id`. */
type SignalGroup = 'authentication' | 'billing' | 'none'

/** One row of the table of errors: what is said of a refusal wherever it appears. */
export interface ErrorEntry {
  readonly status: number
  readonly type: string
  readonly source: ErrorSource
  /** Whether the same request may succeed later, unchanged. Becomes `x-should-retry` (contract 4.3). */
  readonly retryable: boolean
  readonly signals: SignalGroup
  /** The one link that the message ends with and, for authentication, the value of `primaryActionUrl`. */
  readonly action?: LinkName
  /** What happened and what to do. `{name}` is replaced by the fact of that name; the link is added behind it. */
  readonly message: string
}

/** What rows of 401 have in common. */
export const authentication = {
  status: 401,
  type: 'authentication_error',
  source: 'client',
  retryable: false,
  signals: 'authentication',
} as const
/** What rows of 400, and other faults of a request have in common. */
export const invalid = {
  status: 400,
  type: 'invalid_request_error',
  source: 'client',
  retryable: false,
  signals: 'none',
} as const
/** What rows of 403 have in common. */
export const forbidden = {
  status: 403,
  type: 'permission_error',
  source: 'client',
  retryable: false,
  signals: 'none',
} as const
/** What rows of 429 have in common. */
export const limited = {
  status: 429,
  type: 'rate_limit_error',
  source: 'client',
  retryable: true,
  signals: 'none',
} as const
/** What rows of 503 have in common. */
export const unavailable = {
  status: 503,
  type: 'server_error',
  source: 'gateway',
  retryable: true,
  signals: 'none',
} as const
