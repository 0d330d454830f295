import type { CacheVerdict } from '../../domain/cache-verdict.ts'
import type { EventLog } from '../../domain/events.ts'
import { isRefusal, UpstreamError, type Attempt } from '../../domain/upstream.ts'
import type { Draft } from '../../formats/fields.ts'
import { billed, type OpenAttempt } from './attempt-bill.ts'
import type { AttemptRun } from './attempt.ts'

/**
 * The record of an attempt that ends now, answered or with `error`. An error that does not come from the provider
 * counts as `cancelled`.
 */
export function attemptRecord(run: AttemptRun, nowMs: number, error?: unknown): OpenAttempt {
  const { target, startedMs, upstreamRequestId } = run
  const record: Draft<OpenAttempt> = {
    backend: target.id,
    outcome: error === undefined ? 'answered' : error instanceof UpstreamError ? error.outcome : 'cancelled',
    ms: Math.round(nowMs - startedMs),
    [billed]: run.bill,
  }
  const status = error instanceof UpstreamError ? error.status : undefined
  if (status !== undefined) record.status = status
  if (upstreamRequestId !== undefined) record.upstreamRequestId = upstreamRequestId
  if (isRefusal(error) || run.lane.refused) record.refused = true
  return record
}

/**
 * The attempts of a request that ended. One is recorded with its first content: a stream can refuse after it (contract
 * 7.29), and only its end shows what was read from a cache (contract 45.12).
 */
export function withEnd(
  attempts: readonly Attempt[],
  { refused, cache }: { readonly refused: boolean; readonly cache: CacheVerdict | undefined },
): readonly Attempt[] {
  const last = attempts.at(-1)
  const isAnswer = last?.outcome === 'answered' && last.refused !== true
  if (!isAnswer || (!refused && cache === undefined)) return attempts
  const ended = { ...last, ...(refused && { refused }), ...(cache !== undefined && { cache }) }
  return [...attempts.slice(0, -1), ended]
}

/**
 * Logs an attempt that failed because of the backend's configuration: a rejected credential (contract 7.17), or a
 * wrong model or address.
 */
export function logConfigurationFault(
  log: EventLog,
  of: { readonly backend: string; readonly requestId: string },
  error: unknown,
): void {
  if (!(error instanceof UpstreamError)) return
  if (error.outcome === 'rejected_credentials') log({ event: 'upstream_credentials_rejected', ...of })
  if (error.outcome === 'not_found') log({ event: 'upstream_not_found', ...of })
}

/**
 * Moves the record of the attempt that answers to the end. If another one began to answer at the same moment, it was
 * cancelled.
 */
export function recordLast(attempts: Attempt[], { id }: { readonly id: string }): void {
  const [record] = attempts.splice(
    attempts.findIndex(({ backend, outcome }) => backend === id && outcome === 'answered'),
    1,
  )
  for (const [index, attempt] of attempts.entries())
    if (attempt.outcome === 'answered') attempts[index] = { ...attempt, outcome: 'cancelled' }
  attempts.push(record!)
}
