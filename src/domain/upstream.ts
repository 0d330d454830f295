import type { CacheVerdict } from './cache-verdict.ts'
import type { Usage } from './conversation.ts'

/** The result of one attempt, as a category for errors, records, and operator pages (contract 28.6). */
export type AttemptOutcome =
  | 'answered'
  | 'rejected_credentials'
  | 'rejected_content'
  | 'context_too_long'
  /** The backend lacks a capability that the request needs, such as image input. Another backend may have it. */
  | 'not_capable'
  | 'rate_limited'
  | 'server_error'
  | 'unreachable'
  | 'reset'
  | 'timeout'
  | 'broken'
  /** The provider does not know the model or path, so the backend's configuration is wrong. */
  | 'not_found'
  /** This service could not send the request: it had no file descriptors, ports, or connections left. */
  | 'not_sent'
  | 'cancelled'

/** How the text of one backend follows the text of another one that broke off (contract 40.4, 40.7). */
export type Seam = 'verified' | 'marked'

/** One call to one backend (contract 1.5). `upstreamRequestId` is the provider's own id, at most 128 characters. */
export interface Attempt {
  readonly backend: string
  readonly outcome: AttemptOutcome
  readonly status?: number
  readonly ms: number
  readonly upstreamRequestId?: string
  /** Whether the model or its provider refused to answer for safety, in its answer or with an error (contract 7.29). */
  readonly refused?: true
  /**
   * What it used and costs, if the request had several attempts: decimal US dollars, null if unknown. Absent if nothing is
   * due (contract 42.8).
   */
  readonly usage?: Usage
  readonly costUsd?: string | null
  /** How it continued the answer of the attempt before it, which broke off after content (contract 40.8). */
  readonly rescued?: Seam
  /** Of an answer: what the provider read from its cache, and why not more (contract 45.12, 45.13). */
  readonly cache?: CacheVerdict
  /** Whether it ran beside the attempt before it, because that one was slow (contract 7.30). */
  readonly hedge?: true
  /**
   * Of the first attempt: the kind of the request by size of its prompt, reasoning, and streaming, as `PromptKind`. For
   * `svc-router replay`.
   */
  readonly kind?: number
  /** Of the first attempt: whether the request had routing preferences of its own (contract 7.27). */
  readonly ownRouting?: true
}

/**
 * Who caused a failure (contract 7.20). Only `backend` counts for a circuit breaker. `request`: the backend rejected
 * this request but would answer others. `gateway`: this service gave up or could not call, so nothing is known of the
 * backend.
 */
export type Blame = 'backend' | 'request' | 'gateway'

const blames: Readonly<Partial<Record<AttemptOutcome, Blame>>> = {
  rejected_content: 'request',
  context_too_long: 'request',
  not_capable: 'request',
  not_sent: 'gateway',
  cancelled: 'gateway',
}

/** Who caused a failure with this outcome, as far as the outcome shows. An `UpstreamError` can know better. */
export function blameOf(outcome: Exclude<AttemptOutcome, 'answered'>): Blame {
  return blames[outcome] ?? 'backend'
}

/**
 * The result of a test request to a provider, for its owner. `status` and `reason` are the provider's, if it sent them
 * (contract 21.11).
 */
export interface UpstreamTest {
  readonly outcome: AttemptOutcome
  readonly status?: number
  readonly reason?: string
  readonly ms: number
}

/** Outcomes of calls that no provider has begun to answer. */
const unbilled: ReadonlySet<AttemptOutcome> = new Set([
  'rejected_credentials',
  'rejected_content',
  'context_too_long',
  'not_capable',
  'not_found',
  'not_sent',
  'rate_limited',
  'unreachable',
])

/** Whether a provider may have begun to work on a call of which it sent no status (contract 42.8, 46.5). */
export function mayBeBilled({ outcome, status }: Pick<Attempt | UpstreamError, 'outcome' | 'status'>): boolean {
  return status === undefined && !unbilled.has(outcome)
}

/** A capability that a request may need and that some backends lack. */
export type Need = 'images' | 'audio' | 'files' | 'tools' | 'structured_outputs'

/** The provider's rule that a request violated, if its rejection names one. */
export type ViolatedRule =
  | 'answer_length'
  | 'content_filter'
  | 'image_unreadable'
  | 'schema_invalid'
  | 'tool_results'
  | 'turn_order'
  | 'unknown_field'
  | 'unsupported_value'

/** Whether a failure is a refusal for safety: no other backend is asked after it (contract 7.29). */
export function isRefusal(error: unknown): error is UpstreamError {
  return error instanceof UpstreamError && error.rejection?.rule === 'content_filter'
}

/** What a provider's rejection says, in our terms: never its text. */
export interface ProviderRejection {
  /** The capabilities that the backend may lack: at least one of these, as far as its message says. */
  readonly lacks?: readonly Need[]
  /** Whether this applies to every request, and not only to the value in this one. */
  readonly isGeneral?: boolean
  /** Unsupported optional request fields, from `optionalFields`, and unsupported names of chat's length limit. */
  readonly fields?: readonly string[]
  /** The context window that it named, in tokens. */
  readonly windowTokens?: number
  readonly rule?: ViolatedRule
}

interface UpstreamErrorDetail {
  readonly status?: number | undefined
  readonly retryAfterMs?: number | undefined
  readonly param?: string | undefined
  readonly rejection?: ProviderRejection | undefined
  /** Derived from the outcome by default. */
  readonly blames?: Blame | undefined
}

/** A failed upstream request. Has a category and never an upstream's text (contract 4.10, 35.5). */
export class UpstreamError extends Error {
  override readonly name = 'UpstreamError'
  readonly outcome: Exclude<AttemptOutcome, 'answered'>
  readonly status: number | undefined
  /** The upstream's `Retry-After` in milliseconds, not clamped. */
  readonly retryAfterMs: number | undefined
  /** The name of the request field that the upstream rejected. */
  readonly param: string | undefined
  /** What the upstream rejected, if its message was recognized. */
  readonly rejection: ProviderRejection | undefined
  /** Who caused it. Default: implied by the outcome. */
  readonly blames: Blame

  constructor(outcome: Exclude<AttemptOutcome, 'answered'>, detail: UpstreamErrorDetail = {}) {
    super(outcome)
    this.outcome = outcome
    this.status = detail.status
    this.retryAfterMs = detail.retryAfterMs
    this.param = detail.param
    this.rejection = detail.rejection
    this.blames = detail.blames ?? blameOf(outcome)
  }
}
