import { failureName } from '../../domain/bugs.ts'
import type { Timer } from '../../domain/clock.ts'
import type { BillingPlane } from './billing-plane.ts'
import { BillingFailure } from './ports.ts'
import { refresh } from './refresh.ts'

/** How often is looked for checks that are due, and between two batches while there are more. */
const everyMs = 30_000
const pauseMs = 1_000
const batchSize = 20
/** A check that could not be made is made again after this long; meanwhile no other node takes it. */
const againAfterMs = 5 * 60_000

/**
 * Reads subscriptions again when their check is due, for as long as it runs: what was not heard of ends right too, and
 * so does what changes by the passing of time. Gives what ends it.
 */
export function startChecks(plane: BillingPlane): () => void {
  let isEnded = false
  let timer: Timer | undefined
  const round = async (): Promise<void> => {
    let waitMs = everyMs
    try {
      if ((await checkDue(plane, () => isEnded)) >= batchSize) waitMs = pauseMs
    } catch (error) {
      if (!isEnded) plane.log({ event: 'store_failing', reason: failureName(error) })
    }
    if (!isEnded) schedule(waitMs)
  }
  const schedule = (waitMs: number): void => {
    timer = plane.clock.after(waitMs, () => void round())
  }
  schedule(pauseMs)
  return () => {
    isEnded = true
    timer?.cancel()
  }
}

/** Makes one batch of the checks that are due and says how many they were. */
export async function checkDue(plane: BillingPlane, isEnded: () => boolean = () => false): Promise<number> {
  const nowMs = Math.floor(plane.clock.nowMs())
  const due = await plane.store.claimChecks(nowMs, nowMs + againAfterMs, batchSize)
  for (const { accountId } of due) {
    if (isEnded()) break
    try {
      await refresh(plane, accountId)
    } catch (error) {
      if (!(error instanceof BillingFailure)) throw error
      if (!isEnded()) plane.log({ event: 'billing_failing', reason: error.trouble })
    }
  }
  return due.length
}
