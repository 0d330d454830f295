import type { Clock, Timer } from '../domain/clock.ts'

/** Between two chunks while there is more. */
const pauseMs = 100
const everyMs = 10_000

export interface SweepOptions {
  /** Deletes at most `chunkRows` of what is older than it is kept at `nowMs`; gives how many. */
  readonly deleteOld: (nowMs: number, chunkRows: number) => Promise<number>
  /** Old records are deleted in chunks of this many, so that nothing else waits for long. */
  readonly chunkRows: number
  readonly clock: Clock
  /** Told of each sweep that failed; the next one is tried as usual. */
  readonly onFailed: (error: unknown) => void
}

/** Deletes what is older than it is kept, for as long as it runs; gives what ends it. */
export function startSweep({ deleteOld, chunkRows, clock, onFailed }: SweepOptions): () => void {
  let isEnded = false
  let timer: Timer | undefined
  const sweep = async (): Promise<void> => {
    let waitMs = everyMs
    try {
      const deleted = await deleteOld(clock.nowMs(), chunkRows)
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
