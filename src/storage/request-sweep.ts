import type { Clock, Timer } from '../domain/clock.ts'
import type { Store } from './store.ts'

/** Old records are deleted in chunks of this many, so that nothing else waits for long. */
const chunkRows = 500
/** Between two chunks while there is more: 5,000 records a second, above what one process admits for long. */
const pauseMs = 100
const everyMs = 10_000

export interface RequestSweepOptions {
  readonly retentionMs: number
  readonly clock: Clock
  /** Told of each sweep that failed; the next one is tried as usual. */
  readonly onFailed: (error: unknown) => void
}

/** Deletes the records of requests that are older than they are kept, for as long as it runs; gives what ends it. */
export function startRequestSweep(
  store: Pick<Store, 'deleteRequestsBefore'>,
  { retentionMs, clock, onFailed }: RequestSweepOptions,
): () => void {
  let isEnded = false
  let timer: Timer | undefined
  const sweep = async (): Promise<void> => {
    let waitMs = everyMs
    try {
      const deleted = await store.deleteRequestsBefore(clock.nowMs() - retentionMs, chunkRows)
      if (deleted >= chunkRows) waitMs = pauseMs
    } catch (error) {
      if (!isEnded) onFailed(error)
    }
    if (!isEnded) schedule(waitMs)
  }
  const schedule = (waitMs: number): void => {
    timer = clock.after(waitMs, () => void sweep())
  }
  schedule(pauseMs)
  return () => {
    isEnded = true
    timer?.cancel()
  }
}
