import type { Clock, Timer } from '../../runtime/clock.ts'

/** Pause between two chunks while there are more. */
const pauseMs = 100
const everyMs = 10_000

export interface SweepOptions {
  /** Deletes at most `chunkRows` rows that are past their retention at `nowMs`; returns how many. */
  readonly deleteOld: (nowMs: number, chunkRows: number) => Promise<number>
  /** Rows per chunk, so that nothing else waits for long. */
  readonly chunkRows: number
  readonly clock: Clock
  /** Called after each failed sweep; the next one runs as usual. */
  readonly onFailed: (error: unknown) => void
}

/** Deletes rows past their retention periodically; returns a function that stops it. */
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
