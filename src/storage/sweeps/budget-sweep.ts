import { longestWindowMs } from '../../domain/budget-windows.ts'
import { dayMs } from '../../runtime/durations.ts'
import type { Store } from '../store.ts'
import { startSweep, type SweepOptions } from './sweep.ts'

const chunkRows = 500
/** No window counts what is older, even if clocks differ by days. */
const keptMs = longestWindowMs + 8 * dayMs

/** Deletes counters and alerts of budgets that no window counts any more, and old messages; returns a function that stops it. */
export function startBudgetSweep(
  store: Pick<Store, 'deleteSpendingBefore' | 'deleteAlertsBefore'>,
  { clock, onFailed }: Pick<SweepOptions, 'clock' | 'onFailed'>,
): () => void {
  const deleteOld = async (nowMs: number, rows: number): Promise<number> =>
    Math.max(
      await store.deleteSpendingBefore(nowMs - keptMs, rows),
      await store.deleteAlertsBefore(nowMs - keptMs, rows),
    )
  return startSweep({ deleteOld, chunkRows, clock, onFailed })
}
