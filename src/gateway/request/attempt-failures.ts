import { ServiceError } from '../../domain/errors.ts'
import { UpstreamError, type Need } from '../../domain/upstream.ts'
import type { Backend } from '../ports.ts'
import type { Candidates } from '../routing/candidates.ts'
import { needsOf } from '../routing/capable-backends.ts'
import type { LearnedLimits } from '../routing/learned-limits.ts'
import { contentRejected } from '../routing/rejection-errors.ts'
import type { FailoverOptions } from './failover-deps.ts'

/** What the failed attempts of one request mean for the next ones, and for the error if no backend answers. */
export class AttemptFailures {
  /** A capability that the tried backends lack, if that is the only reason they failed. */
  lacking: Need | undefined
  /** Whether a backend failed in a way that does not show whether it would have accepted the request. */
  isUncommitted = false
  /** What the account's rejections taught. */
  readonly learned: LearnedLimits
  readonly #options: FailoverOptions
  readonly #candidates: Candidates

  constructor(learned: LearnedLimits, options: FailoverOptions, candidates: Candidates) {
    this.learned = learned
    this.#options = options
    this.#candidates = candidates
  }

  /**
   * The error to answer with if no backend is left after this failure (contract 7.3, 7.13). @throws errors that end the
   * request at once
   */
  errorAfter(backend: Backend, error: unknown, retryCount: number): ServiceError | undefined {
    if (!(error instanceof UpstreamError) || error.outcome === 'cancelled') throw error
    const { outcome, rejection } = error
    if (outcome === 'context_too_long') return this.#tooLong(backend, rejection?.windowTokens, retryCount)
    const needs = outcome === 'not_capable' ? needsOf(this.#options.conversation) : []
    const lacking = rejection?.lacks?.find((need) => needs.includes(need))
    if (lacking !== undefined) {
      this.learned.learnLack(backend, lacking)
      this.lacking ??= lacking
      return undefined
    }
    if (outcome === 'rejected_content' || outcome === 'not_capable') {
      const rejected = contentRejected(error, backend, this.#options.request, retryCount)
      // Engines support different schemas: another backend may enforce this one.
      if (rejection?.rule === 'schema_invalid') return rejected
      throw rejected
    }
    this.#candidates.failed(backend)
    this.isUncommitted = true
    return undefined
  }

  #tooLong(backend: Backend, toldTokens: number | undefined, retryCount: number): ServiceError {
    if (toldTokens !== undefined && backend.contextWindow === undefined) this.learned.learnWindow(backend, toldTokens)
    this.#candidates.keepLargerThan(backend.contextWindow ?? toldTokens)
    return new ServiceError('context_length_exceeded', {
      upstream: backend.id,
      retryCount,
      words: { profile: this.#options.conversation.profile },
    })
  }
}
