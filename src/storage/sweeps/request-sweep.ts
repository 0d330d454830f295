import type { Clock } from '../../runtime/clock.ts'
import type { Store } from '../store.ts'
import { startSweep } from './sweep.ts'

/** With the pause between chunks, 5,000 records a second: more than one process admits for long. */
const chunkRows = 500

export interface RequestSweepOptions {
  readonly retentionMs: number
  readonly clock: Clock
  /** Called after each failed sweep; the next one runs as usual. */
  readonly onFailed: (error: unknown) => void
}

/**
 * Deletes request records older than their retention, and rejected request counts of the same age (contract 28.4);
 * returns a function that stops it.
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
