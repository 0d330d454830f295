import { dayMs } from '../../runtime/durations.ts'
import type { Store } from '../store.ts'
import type { RequestSweepOptions } from './request-sweep.ts'
import { startSweep } from './sweep.ts'

/** Backends' error messages may contain parts of requests: stored long enough to fix a backend, and no longer. */
const keptMs = 7 * dayMs
const chunkRows = 500

/**
 * Deletes providers' error messages after seven days, or with the records of their requests; returns a function that
 * stops it.
 */
export function startProviderErrorSweep(
  store: Pick<Store, 'deleteProviderErrorsBefore'>,
  { retentionMs, clock, onFailed }: RequestSweepOptions,
): () => void {
  const deleteOld = (nowMs: number, rows: number): Promise<number> =>
    store.deleteProviderErrorsBefore(nowMs - Math.min(keptMs, retentionMs), rows)
  return startSweep({ deleteOld, chunkRows, clock, onFailed })
}
