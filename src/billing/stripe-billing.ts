import { Agent as HttpAgent } from 'node:http'
import { Agent as HttpsAgent } from 'node:https'
import { Stripe } from 'stripe'
import type { Billing, BillingHint } from '../accounts/billing/ports.ts'
import { WebhookRejected } from '../accounts/billing/ports.ts'
import type { Offer, Subscription } from '../domain/billing.ts'
import type { Clock } from '../runtime/clock.ts'
import type { Secret } from '../runtime/secret.ts'
import { toBillingFailure, isMissing } from './billing-failure.ts'
import { findPortalConfiguration } from './portal-configuration.ts'
import { periodStartMs, readPrice, readSubscription, type PlanOfPrice } from './read-subscription.ts'

/** The API version this adapter was written for; the library's types match it. */
export const stripeApiVersion = '2026-10-28.endive'
/** Timeout of one attempt. With two retries and their pauses a call ends within half a minute. */
const timeoutMs = 8_000
const maxRetries = 2
const maxSockets = 16
/** How long a signature is valid. */
const toleranceSeconds = 300
/** Far more than any customer has. */
const maxSubscriptions = 100
const maxOpenInvoices = 100
const maxOpenCheckouts = 100
/** Stripe's minimum checkout lifetime, 30 minutes, plus a margin for clock differences. */
const checkoutMs = 40 * 60_000
/** How long prices are cached. */
const offersMs = 10 * 60_000
/** Event types that affect plans; all others are ignored. */
const relevantEvents = /^(customer\.(subscription\.|deleted$)|invoice\.|checkout\.session\.|subscription_schedule\.)/

/** Overrides Stripe's own address, for the fake. */
interface StripeAddress {
  readonly host: string
  readonly port: number
}

export interface StripeSettings {
  readonly secretKey: Secret
  readonly webhookSecret: Secret
  /** The prices of each plan for sale, in order: the first is sold, the others are still honored. */
  readonly prices: ReadonlyMap<string, readonly string[]>
  readonly clock: Clock
  /** Only for the fake; payments are then simulated. */
  readonly simulation?: StripeAddress
}

/** Stripe through its official library. `close` ends its connections. */
export function createStripeBilling(settings: StripeSettings): Billing & { close(): void } {
  const { prices, clock, simulation } = settings
  const agent =
    simulation === undefined ? new HttpsAgent({ keepAlive: true, maxSockets }) : new HttpAgent({ maxSockets })
  const stripe = new Stripe(settings.secretKey.reveal(), {
    apiVersion: stripeApiVersion,
    timeout: timeoutMs,
    maxNetworkRetries: maxRetries,
    telemetry: false,
    httpAgent: agent,
    ...(simulation === undefined ? {} : { host: simulation.host, port: simulation.port, protocol: 'http' as const }),
  })
  const planByPrice = new Map(Array.from(prices, ([planId, ids]) => ids.map((id) => [id, planId] as const)).flat())
  const planOf: PlanOfPrice = (priceId) => planByPrice.get(priceId) ?? null
  const sold = new SoldPrices(stripe, prices, clock)
  return {
    isSimulated: simulation !== undefined,
    pageOrigins:
      simulation === undefined
        ? ['https://checkout.stripe.com', 'https://billing.stripe.com']
        : [`http://${simulation.host}:${simulation.port}`],
    offers: () => toBillingFailure(() => sold.offers()),
    createCustomer: (accountId, name) =>
      toBillingFailure(async () => {
        const draft = { name, metadata: { svc_router_account: accountId } }
        return (await stripe.customers.create(draft, { idempotencyKey: `customer-${accountId}` })).id
      }),
    openCheckout: ({ accountId, customerId, planId, idempotencyKey, returnUrl, cancelUrl }) =>
      toBillingFailure(async () => {
        const session = await stripe.checkout.sessions.create(
          {
            mode: 'subscription',
            customer: customerId,
            client_reference_id: accountId,
            line_items: [{ price: prices.get(planId)?.[0] ?? '', quantity: 1 }],
            expires_at: Math.floor((clock.nowMs() + checkoutMs) / 1000),
            success_url: returnUrl,
            cancel_url: cancelUrl,
          },
          { idempotencyKey },
        )
        return session.url ?? cancelUrl
      }),
    closeCheckouts: (customerId) => toBillingFailure(() => closeCheckouts(stripe, customerId)),
    openPortal: (customerId, returnUrl) =>
      toBillingFailure(async () => {
        const configuration = await sold.portal()
        const draft = { customer: customerId, return_url: returnUrl, configuration }
        return (await stripe.billingPortal.sessions.create(draft)).url
      }),
    subscriptionsOf: (customerId) => toBillingFailure(() => readSubscriptions(stripe, customerId, planOf)),
    cancel: (subscriptionId) =>
      toBillingFailure(async () => {
        try {
          await stripe.subscriptions.cancel(subscriptionId)
        } catch (error) {
          // It was already canceled.
          if (!isMissing(error)) throw error
        }
      }),
    readWebhook: (rawBody, signature, nowMs) =>
      readWebhook(stripe, { rawBody, signature, secret: settings.webhookSecret, nowMs }),
    close: () => agent.destroy(),
  }
}

interface KnownPrices {
  readonly offers: readonly Offer[]
  readonly prices: readonly Stripe.Price[]
  readonly untilMs: number
}

/** The plans for sale with Stripe's prices, cached for a while. */
class SoldPrices {
  readonly #stripe: Stripe
  readonly #prices: StripeSettings['prices']
  readonly #clock: Clock
  #known: KnownPrices | undefined
  #portal: string | undefined

  constructor(stripe: Stripe, prices: StripeSettings['prices'], clock: Clock) {
    this.#stripe = stripe
    this.#prices = prices
    this.#clock = clock
  }

  async offers(): Promise<readonly Offer[]> {
    return (await this.#read()).offers
  }

  /** The id of the portal configuration. */
  async portal(): Promise<string> {
    this.#portal ??= await findPortalConfiguration(this.#stripe, (await this.#read()).prices)
    return this.#portal
  }

  async #read(): Promise<KnownPrices> {
    const nowMs = this.#clock.monotonicMs()
    if (this.#known !== undefined && nowMs < this.#known.untilMs) return this.#known
    const entries = Array.from(this.#prices, ([planId, [priceId]]) => ({ planId, priceId: priceId ?? '' }))
    const prices = await Promise.all(entries.map(({ priceId }) => this.#stripe.prices.retrieve(priceId)))
    const offers = entries.map(({ planId }, index) => ({ planId, price: readPrice(prices[index]!) }))
    return (this.#known = { offers, prices, untilMs: nowMs + offersMs })
  }
}

async function readSubscriptions(
  stripe: Stripe,
  customer: string,
  planOf: PlanOfPrice,
): Promise<readonly Subscription[]> {
  // Without a status filter, canceled subscriptions are left out.
  const { data } = await stripe.subscriptions.list({ customer, limit: maxSubscriptions, expand: ['data.schedule'] })
  const current = data.filter(({ status }) => status !== 'canceled' && status !== 'incomplete_expired')
  return Promise.all(
    current.map(async (given) => {
      const isDue = given.status === 'past_due'
      return readSubscription(given, planOf, isDue ? await dueSinceMs(stripe, given) : null)
    }),
  )
}

async function dueSinceMs(stripe: Stripe, given: Stripe.Subscription): Promise<number> {
  const { data } = await stripe.invoices.list({ subscription: given.id, status: 'open', limit: maxOpenInvoices })
  if (data.length === 0) return periodStartMs(given)
  return Math.min(...data.map(({ created }) => created)) * 1000
}

async function closeCheckouts(stripe: Stripe, customer: string): Promise<void> {
  const { data } = await stripe.checkout.sessions.list({ customer, status: 'open', limit: maxOpenCheckouts })
  for (const { id } of data) {
    try {
      await stripe.checkout.sessions.expire(id)
    } catch (error) {
      // It was paid or expired meanwhile: the next read of the subscriptions shows which.
      if (!(error instanceof Stripe.errors.StripeInvalidRequestError)) throw error
    }
  }
}

interface SignedBody {
  readonly rawBody: Uint8Array
  readonly signature: string
  readonly secret: Secret
  readonly nowMs: number
}

function readWebhook(stripe: Stripe, { rawBody, signature, secret, nowMs }: SignedBody): BillingHint {
  let event: Stripe.Event
  try {
    const bytes = Buffer.from(rawBody.buffer, rawBody.byteOffset, rawBody.byteLength)
    event = stripe.webhooks.constructEvent(bytes, signature, secret.reveal(), toleranceSeconds, undefined, nowMs)
  } catch {
    // Tell the sender nothing beyond the rejection.
    throw new WebhookRejected()
  }
  if (typeof event.id !== 'string' || typeof event.type !== 'string') throw new WebhookRejected()
  return { eventId: event.id, customerId: relevantEvents.test(event.type) ? customerIn(event) : undefined }
}

function customerIn(event: Stripe.Event): string | undefined {
  const object = event.data?.object as { id?: unknown; object?: unknown; customer?: unknown } | undefined
  const customer = object?.object === 'customer' ? object.id : object?.customer
  if (typeof customer === 'string') return customer
  const id = (customer as { id?: unknown } | null | undefined)?.id
  return typeof id === 'string' ? id : undefined
}
