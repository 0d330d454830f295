import type { EventLog } from '../domain/events.ts'
import { UpstreamError, type Attempt } from '../domain/upstream.ts'
import type { AttemptRun } from './attempt.ts'
import type { BackendsHealth } from './routing/health.ts'

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

/** Tells what an attempt says of its backend: content has come, or `error` in its place (contract 5.1, 5.4). */
export function noteAttempt(
  { health, log }: { readonly health: BackendsHealth; readonly log: EventLog },
  { backend, requestId }: { readonly backend: string; readonly requestId: string },
  error?: unknown,
): void {
  if (error === undefined) return health.succeeded(backend)
  if (!(error instanceof UpstreamError) || error.blames === 'gateway') return health.undecided(backend)
  if (error.blames === 'request') return health.succeeded(backend)
  health.failed(backend, error)
  if (error.outcome === 'rejected_credentials') log({ event: 'upstream_credentials_rejected', requestId, backend })
}
