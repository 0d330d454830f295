import type { SkippedBackend } from '../../domain/backend-state.ts'
import { ServiceError } from '../../domain/errors.ts'
import type { Attempt } from '../../domain/upstream.ts'
import type { Candidates } from '../routing/candidates.ts'

/** What became of a request for which no backend is left. */
interface ExhaustedRequest {
  readonly profile: string
  readonly attempts: readonly Attempt[]
  readonly retryCount: number
  readonly candidates: Pick<Candidates, 'hasUsable' | 'exhausted'>
  /** Skipped backends that were not asked. */
  readonly unasked: readonly SkippedBackend[]
  readonly nowMs: number
}

/** How many backends failed before the last one that was sent the request (contract 2.33). */
export function sentRetryCount(attempts: readonly Attempt[]): number {
  const sent = new Set(attempts.flatMap(({ backend, outcome }) => (outcome === 'not_sent' ? [] : [backend])))
  return Math.max(0, sent.size - 1)
}

/** The error for a request that no backend answered (contract 7.13, 7.17, 7.18). */
export function exhaustedError(request: ExhaustedRequest): ServiceError {
  const { profile, attempts, retryCount, candidates, unasked, nowMs } = request
  const { hasUsable } = candidates
  const { soonestMs = nowMs, skipped } = candidates.exhausted()
  const tried = attempts.map(({ outcome }) => outcome)
  if (unasked.length === 0 && !hasUsable && tried.length > 0 && tried.every((outcome) => outcome === 'not_found'))
    return new ServiceError('upstream_misconfigured', { retryCount })
  if (tried.length > 0 && tried.every((outcome) => outcome === 'not_sent'))
    return new ServiceError('server_busy', { retryCount, retryAfterSeconds: 1 })
  const rejected = [
    ...tried.map((outcome) => outcome === 'rejected_credentials'),
    ...skipped.map(({ reason }) => reason === 'credentials'),
  ]
  // A usable backend that was not asked may have a good credential (contract 4.52).
  if (rejected.length > 0 && rejected.every(Boolean) && !hasUsable)
    return new ServiceError('upstream_credentials_rejected', { retryCount })
  const seconds = Math.min(60, Math.max(1, Math.ceil((soonestMs - nowMs) / 1000)))
  return new ServiceError('server_is_overloaded', {
    retryCount,
    retryAfterSeconds: seconds,
    attempts: attempts.map(({ backend, outcome }) => ({ backend, outcome })),
    passedBy: unasked,
    words: { profile, seconds },
  })
}
