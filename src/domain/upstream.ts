/** What became of one attempt, as a category: shown in errors, records and operator pages (contract 28.6). */
export type AttemptOutcome =
  | 'answered'
  | 'rejected_credentials'
  | 'rejected_content'
  | 'context_too_long'
  /** The backend cannot do what was asked, such as read an image. Another one may. */
  | 'not_capable'
  | 'rate_limited'
  | 'server_error'
  | 'unreachable'
  | 'reset'
  | 'timeout'
  | 'broken'
  /** The provider knows no such model or path: the backend's configuration is wrong. */
  | 'not_found'
  /** This service could not call: it was out of file descriptors, ports, or connections. */
  | 'not_sent'
  | 'cancelled'

/** One call to one backend (contract 1.5). `upstreamRequestId` is the provider's own id, at most 128 characters. */
export interface Attempt {
  readonly backend: string
  readonly outcome: AttemptOutcome
  readonly status?: number
  readonly ms: number
  readonly upstreamRequestId?: string
}

/**
 * Who caused a failure (contract 7.20). Only `backend` counts against a circuit breaker. `request`: the backend answered,
 * and would answer others. `gateway`: this service gave up or could not call, so nothing is known of the backend.
 */
export type Blame = 'backend' | 'request' | 'gateway'

const blames: Readonly<Partial<Record<AttemptOutcome, Blame>>> = {
  rejected_content: 'request',
  context_too_long: 'request',
  not_capable: 'request',
  not_sent: 'gateway',
  cancelled: 'gateway',
}

/** What an attempt can end with that says nothing against its backend. */
const blameless: readonly AttemptOutcome[] = [
  'answered',
  'rejected_content',
  'context_too_long',
  'not_capable',
  'not_sent',
  'cancelled',
]

/** The backends that failed among these attempts; undefined where none did, as mostly. */
export function failedBackends(attempts: readonly Attempt[]): readonly string[] | undefined {
  if (attempts.length === 1 && attempts[0]!.outcome === 'answered') return undefined
  const failed = attempts.filter(({ outcome }) => !blameless.includes(outcome))
  return failed.length === 0 ? undefined : failed.map(({ backend }) => backend)
}

/** What one small call to a provider showed, for its owner. `status` and `reason` are the provider's, where it said them (contract 21.11). */
export interface UpstreamTest {
  readonly outcome: AttemptOutcome
  readonly status?: number
  readonly reason?: string
  readonly ms: number
}

/** What a request may need that not every backend can do. */
export type Need = 'images' | 'audio' | 'files' | 'tools' | 'structured_outputs'

/** A rule that a request broke at a provider, where its refusal tells which. */
export type ViolatedRule =
  | 'answer_length'
  | 'content_filter'
  | 'image_unreadable'
  | 'schema_invalid'
  | 'tool_results'
  | 'turn_order'
  | 'unknown_field'
  | 'unsupported_value'

/** What a provider's refusal tells, in our own terms: never its text. */
export interface ProviderRejection {
  /** What the backend cannot do: any of these, as far as its sentence tells. */
  readonly lacks?: readonly Need[]
  /** Whether that holds for every request, and not only for the value that this one had. */
  readonly isGeneral?: boolean
  /** Optional request fields that it does not take, from `optionalFields`, and refused names of chat's length limit. */
  readonly fields?: readonly string[]
  /** The context window that it named, in tokens. */
  readonly windowTokens?: number
  readonly rule?: ViolatedRule
}

interface UpstreamErrorDetail {
  readonly status?: number | undefined
  readonly retryAfterMs?: number | undefined
  readonly param?: string | undefined
  readonly refusal?: ProviderRejection | undefined
  /** Derived from the outcome unless given. */
  readonly blames?: Blame | undefined
}

/** Upstream trouble. It carries a category and never an upstream's text (contract 35.5). */
export class UpstreamError extends Error {
  override readonly name = 'UpstreamError'
  readonly outcome: Exclude<AttemptOutcome, 'answered'>
  readonly status: number | undefined
  /** The upstream's `Retry-After` in milliseconds, not yet clamped. */
  readonly retryAfterMs: number | undefined
  /** The request field that the upstream found at fault; a field's name, nothing else. */
  readonly param: string | undefined
  /** What it refused, where it said so in a way that is known. */
  readonly rejection: ProviderRejection | undefined
  /** Who caused it; unless said, what the outcome implies. */
  readonly blames: Blame

  constructor(outcome: Exclude<AttemptOutcome, 'answered'>, detail: UpstreamErrorDetail = {}) {
    super(outcome)
    this.outcome = outcome
    this.status = detail.status
    this.retryAfterMs = detail.retryAfterMs
    this.param = detail.param
    this.rejection = detail.refusal
    this.blames = detail.blames ?? blames[outcome] ?? 'backend'
  }
}
