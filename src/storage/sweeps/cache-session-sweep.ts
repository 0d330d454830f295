import type { Store } from '../store.ts'
import { startSweep, type SweepOptions } from './sweep.ts'

const chunkRows = 500

/** Deletes sessions a day after their last turn (contract 45.8); returns a function that stops it. */
export function startCacheSessionSweep(
  store: Pick<Store, 'deleteCacheSessions'>,
  { clock, onFailed }: Pick<SweepOptions, 'clock' | 'onFailed'>,
): () => void {
  const deleteOld = (nowMs: number, rows: number): Promise<number> => store.deleteCacheSessions(nowMs, rows)
  return startSweep({ deleteOld, chunkRows, clock, onFailed })
}
