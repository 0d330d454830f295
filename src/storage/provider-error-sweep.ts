import type { RequestSweepOptions } from './request-sweep.ts'
import type { Store } from './store.ts'
import { startSweep } from './sweep.ts'

/** What backends said may hold parts of what they were asked: it is kept long enough to mend a backend, and no longer. */
const keptMs = 7 * 86_400_000
const chunkRows = 500

/** Deletes providers' messages after seven days, or with the records of their requests; gives what ends it. */
export function startProviderErrorSweep(
  store: Pick<Store, 'deleteProviderErrorsBefore'>,
  { retentionMs, clock, onFailed }: RequestSweepOptions,
): () => void {
  const deleteOld = (nowMs: number, rows: number): Promise<number> =>
    store.deleteProviderErrorsBefore(nowMs - Math.min(keptMs, retentionMs), rows)
  return startSweep({ deleteOld, chunkRows, clock, onFailed })
}
