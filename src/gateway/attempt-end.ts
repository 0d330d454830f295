import type { EventLog } from '../domain/events.ts'
import { UpstreamError, type Attempt } from '../domain/upstream.ts'
import type { AttemptRun } from './attempt.ts'

/** The record of an attempt that ends now: answered, or with `error`. What is no trouble of the provider cancelled it. */
export function attemptOf(run: AttemptRun, nowMs: number, error?: unknown): Attempt {
  const { backend, startedMs, upstreamRequestId } = run
  const status = error instanceof UpstreamError ? error.status : undefined
  return {
    backend: backend.id,
    outcome: error === undefined ? 'answered' : error instanceof UpstreamError ? error.outcome : 'cancelled',
    ms: Math.round(nowMs - startedMs),
    ...(status === undefined ? {} : { status }),
    ...(upstreamRequestId === undefined ? {} : { upstreamRequestId }),
  }
}

/** Logs an attempt that failed by the backend's configuration: its credential must be replaced (contract 7.17), or its model or address corrected. */
export function logConfigurationFault(
  log: EventLog,
  of: { readonly backend: string; readonly requestId: string },
  error: unknown,
): void {
  if (!(error instanceof UpstreamError)) return
  if (error.outcome === 'rejected_credentials') log({ event: 'upstream_credentials_rejected', ...of })
  if (error.outcome === 'not_found') log({ event: 'upstream_not_found', ...of })
}
