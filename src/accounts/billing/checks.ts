import type { Timer } from '../../runtime/clock.ts'
import { errorName } from '../../runtime/describe-bug.ts'
import type { BillingDeps } from './billing-deps.ts'
import { BillingFailure } from './ports.ts'
import { refresh } from './refresh.ts'

/** How often due checks are looked for, and the pause between two batches. */
const everyMs = 30_000
const pauseMs = 1_000
const batchSize = 20
/** A failed check is retried after this long; meanwhile no other node claims it. */
const againAfterMs = 5 * 60_000

/**
 * Reads subscriptions again when their check is due. This covers lost webhooks and changes that come with time alone.
 * Returns a function that stops the checks.
 */
export function startChecks(deps: BillingDeps): () => void {
  let isEnded = false
  let timer: Timer | undefined
  const round = async (): Promise<void> => {
    let waitMs = everyMs
    try {
      if ((await checkDue(deps, () => isEnded)) >= batchSize) waitMs = pauseMs
    } catch (error) {
      if (!isEnded) deps.log({ event: 'store_failing', reason: errorName(error) })
    }
    if (!isEnded) schedule(waitMs)
  }
  const schedule = (waitMs: number): void => {
    timer = deps.clock.after(waitMs, () => void round())
  }
  schedule(pauseMs)
  return () => {
    isEnded = true
    timer?.cancel()
  }
}

/** Runs one batch of due checks and returns how many there were. */
export async function checkDue(deps: BillingDeps, isEnded: () => boolean = () => false): Promise<number> {
  const nowMs = Math.floor(deps.clock.nowMs())
  const due = await deps.store.claimChecks(nowMs, nowMs + againAfterMs, batchSize)
  for (const { accountId } of due) {
    if (isEnded()) break
    try {
      await refresh(deps, accountId)
    } catch (error) {
      if (!(error instanceof BillingFailure)) throw error
      if (!isEnded()) deps.log({ event: 'billing_failing', reason: error.trouble })
    }
  }
  return due.length
}
