import { startBudgetSweep } from '../storage/sweeps/budget-sweep.ts'
import { startCacheSessionSweep } from '../storage/sweeps/cache-session-sweep.ts'
import { startGenerationSweep } from '../storage/sweeps/generation-sweep.ts'
import { startProviderErrorSweep } from '../storage/sweeps/provider-error-sweep.ts'
import { startRequestSweep } from '../storage/sweeps/request-sweep.ts'
import { startResponseSweep } from '../storage/sweeps/response-sweep.ts'
import type { Runtime } from './runtime.ts'
import type { Storage } from './storage.ts'

/** Starts the jobs that delete old data. */
export function startSweeps(
  { config, clock }: Runtime,
  { store, responses, conversations, generations }: Storage,
  onFailed: (error: unknown) => void,
): AsyncDisposable {
  const sweeps = new AsyncDisposableStack()
  const requestSweep = { retentionMs: config.requestRetentionMs, clock, onFailed }
  const responseSweep = { retentionMs: config.responseRetentionMs, clock, onFailed }
  sweeps.defer(startRequestSweep(store, requestSweep))
  sweeps.defer(startProviderErrorSweep(store, requestSweep))
  sweeps.defer(startResponseSweep(responses, responseSweep))
  sweeps.defer(startResponseSweep(conversations, responseSweep))
  sweeps.defer(startBudgetSweep(store, { clock, onFailed }))
  sweeps.defer(startCacheSessionSweep(store, { clock, onFailed }))
  sweeps.defer(startGenerationSweep(generations, { clock, onFailed }))
  return sweeps
}
