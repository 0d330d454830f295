import type { Clock } from '../domain/clock.ts'
import type { Store } from './store.ts'
import { startSweep } from './sweep.ts'

/** With the pause between two chunks 5,000 records a second, above what one process admits for long. */
const chunkRows = 500

export interface RequestSweepOptions {
  readonly retentionMs: number
  readonly clock: Clock
  /** Told of each sweep that failed; the next one is tried as usual. */
  readonly onFailed: (error: unknown) => void
}

/**
 * Deletes the records of requests that are older than they are kept, and the counts of refused requests of their time, for
 * as long as it runs; gives what ends it.
 */
export function startRequestSweep(
  store: Pick<Store, 'deleteRequestsBefore' | 'deleteRefusedBefore'>,
  { retentionMs, clock, onFailed }: RequestSweepOptions,
): () => void {
  const deleteOld = async (nowMs: number, rows: number): Promise<number> => {
    const beforeMs = nowMs - retentionMs
    const records = await store.deleteRequestsBefore(beforeMs, rows)
    return Math.max(records, await store.deleteRefusedBefore(beforeMs, rows))
  }
  return startSweep({ deleteOld, chunkRows, clock, onFailed })
}
