import type { GenerationList } from '../generations.ts'
import { startSweep, type SweepOptions } from './sweep.ts'

/** A generation has up to thousands of chunks, which are deleted with it. */
const chunkRows = 20

/** Deletes generations that are no longer stored for retries (contract 39.11); returns a function that stops it. */
export function startGenerationSweep(
  generations: Pick<GenerationList, 'deleteExpired'>,
  { clock, onFailed }: Pick<SweepOptions, 'clock' | 'onFailed'>,
): () => void {
  const deleteOld = (nowMs: number, rows: number): Promise<number> => generations.deleteExpired(nowMs, rows)
  return startSweep({ deleteOld, chunkRows, clock, onFailed })
}
