import { errorName } from '../../runtime/describe-bug.ts'
import type { BillingDeps } from './billing-deps.ts'
import { BillingFailure, type BillingHint, type HandleWebhook, type WebhookAnswer, WebhookRejected } from './ports.ts'
import { refresh } from './refresh.ts'

/**
 * The largest event accepted; Stripe's own are far smaller. The code that reads the body must not read more (contract
 * 22.11).
 */
export const maxWebhookBytes = 512 * 1024
/** Concurrent events. Stripe resends the ones beyond it later, for up to three days (contract 22.11). */
const maxConcurrent = 64

/**
 * Handles signed events. An event is only a hint: after its signature is checked on the raw body, the current state is
 * read from the provider, so order and repetition do not matter. Each event is handled once; one that fails is answered
 * with 503 and is sent again (contract 22.2).
 */
export function createWebhookHandler(deps: BillingDeps): HandleWebhook {
  let running = 0
  return async (rawBody, headers) => {
    if (rawBody.byteLength > maxWebhookBytes) return { status: 413, outcome: 'too large' }
    if (running >= maxConcurrent) return { status: 503, outcome: 'busy' }
    running += 1
    try {
      return await handle(deps, rawBody, headers.get('stripe-signature') ?? '')
    } catch (error) {
      if (error instanceof WebhookRejected) return { status: 400, outcome: 'refused' }
      if (error instanceof BillingFailure) deps.log({ event: 'billing_failing', reason: error.trouble })
      else deps.log({ event: 'store_failing', reason: errorName(error) })
      return { status: 503, outcome: 'try again' }
    } finally {
      running -= 1
    }
  }
}

async function handle(deps: BillingDeps, rawBody: Uint8Array, signature: string): Promise<WebhookAnswer> {
  const hint: BillingHint = deps.billing.readWebhook(rawBody, signature, deps.clock.nowMs())
  if (hint.customerId === undefined) return { status: 200, outcome: 'not for us' }
  if (await deps.store.hasHandled(hint.eventId)) return { status: 200, outcome: 'seen before' }
  const record = await deps.store.findBillingOf(hint.customerId)
  // A customer of another product sold through the same Stripe account.
  if (record === undefined) return { status: 200, outcome: 'not for us' }
  const outcome = await refresh(deps, record.accountId, hint.eventId)
  // The other outcomes record the event together with what they write.
  if (outcome === 'closed') await deps.store.noteHandled(hint.eventId, Math.floor(deps.clock.nowMs()))
  return { status: 200, outcome: 'applied' }
}
