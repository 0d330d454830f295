import { join } from 'node:path'
import type { BillingDeps, PlanSales, PlansDeps } from '../accounts/billing/billing-deps.ts'
import { startChecks } from '../accounts/billing/checks.ts'
import { createWebhookHandler, type HandleWebhook } from '../accounts/billing/webhook.ts'
import type { BillingConfig, Config, StripeConfig } from '../config/config.ts'
import type { Clock } from '../runtime/clock.ts'
import type { EventLog } from '../domain/events.ts'
import { randomBase62 } from '../runtime/ids.ts'
import type { RandomBytes } from '../runtime/random.ts'
import { Secret } from '../runtime/secret.ts'
import type { Storage } from './storage.ts'
import { startSweep } from '../storage/sweeps/sweep.ts'

/** Stripe sends an event again for three days; this long a repetition is known. */
const eventsKeptMs = 30 * 86_400_000
const eventRows = 500
const simulatedSecretCharacters = 32
/** What the simulation asks for the first plan that is sold, in cents; each further one costs five times as much. */
const simulatedMinorUnits = 2000
const simulatedFactor = 5
const simulatedFile = 'simulated-billing.json'

export interface OpenBillingDeps {
  readonly storage: Storage
  readonly clock: Clock
  readonly random: RandomBytes
  readonly log: EventLog
  readonly onFailed: (error: unknown) => void
}

/**
 * How accounts come to another plan, with the checks and sweeps that belong to it. Stripe's library is loaded only where
 * it is used. @throws SetupError where the simulation cannot be started
 */
export async function openBilling(config: Config, deps: OpenBillingDeps): Promise<PlanSales & AsyncDisposable> {
  await using opened = new AsyncDisposableStack()
  const plane: PlansDeps = {
    accounts: deps.storage.store,
    store: deps.storage.store.billing,
    clock: deps.clock,
    random: deps.random,
    plans: config.plans,
    defaultPlan: config.defaultPlan,
    graceMs: config.billing?.graceMs ?? 0,
  }
  const sold =
    config.billing === undefined ? undefined : await sell(config, config.billing, { plansDeps: plane, deps, opened })
  const owned = opened.move()
  return { plansDeps: plane, sold, [Symbol.asyncDispose]: () => owned.disposeAsync() }
}

interface Opening {
  readonly plansDeps: PlansDeps
  readonly deps: OpenBillingDeps
  readonly opened: AsyncDisposableStack
}

async function sell(
  config: Config,
  { stripe }: BillingConfig,
  { plansDeps, deps, opened }: Opening,
): Promise<PlanSales['sold']> {
  const { clock, log, onFailed } = deps
  const { createStripeBilling } = await import('../billing/stripe-billing.ts')
  // The double sends webhooks to a handler that is made after it.
  const hook: { handle: HandleWebhook | undefined } = { handle: undefined }
  const simulated = stripe === undefined ? await simulate(config, deps, hook) : undefined
  if (simulated !== undefined) opened.defer(() => simulated.close())
  const billing = createStripeBilling({
    ...(stripe ?? simulated!.settings),
    clock,
    ...(simulated === undefined ? {} : { simulation: simulated }),
  })
  opened.defer(() => billing.close())
  if (simulated !== undefined) log({ event: 'billing_simulated', origin: `http://${simulated.host}:${simulated.port}` })
  const selling: BillingDeps = { ...plansDeps, billing, log }
  hook.handle = createWebhookHandler(selling)
  opened.defer(startChecks(selling))
  const deleteOld = (nowMs: number, rows: number): Promise<number> =>
    plansDeps.store.deleteEventsBefore(nowMs - eventsKeptMs, rows)
  opened.defer(startSweep({ deleteOld, chunkRows: eventRows, clock, onFailed }))
  return { plansDeps: selling, handleWebhook: hook.handle }
}

interface Simulated {
  readonly host: string
  readonly port: number
  readonly settings: StripeConfig
  close(): Promise<void>
}

/** The double of Stripe on this machine, with secrets of its own and a price for every plan but the free one. */
async function simulate(
  config: Config,
  { clock, random }: OpenBillingDeps,
  hook: { readonly handle: HandleWebhook | undefined },
): Promise<Simulated> {
  const { startFakeStripe } = await import('../simulation/stripe/server.ts')
  const { stripeApiVersion } = await import('../billing/stripe-billing.ts')
  const sold = config.plans.filter(({ id }) => id !== config.defaultPlan)
  const secretKey = new Secret(`sk_test_${randomBase62(simulatedSecretCharacters, random)}`)
  const webhookSecret = new Secret(`whsec_${randomBase62(simulatedSecretCharacters, random)}`)
  const prices = sold.map(({ name }, index) => ({
    id: `price_simulated${index}`,
    productId: `prod_simulated${index}`,
    name,
    minorUnits: simulatedMinorUnits * simulatedFactor ** index,
  }))
  const server = await startFakeStripe({
    clock,
    random,
    prices,
    secretKey,
    webhookSecret,
    apiVersion: stripeApiVersion,
    whenUnpaid: 'canceled',
    webhooks: 'send',
    file: join(config.dataDir, simulatedFile),
    async deliver(body, signature) {
      const answer = await hook.handle?.(body, new Headers({ 'stripe-signature': signature }))
      return answer?.status ?? 503
    },
  })
  const bySold = new Map(sold.map(({ id }, index) => [id, [`price_simulated${index}`]]))
  return { ...server, settings: { secretKey, webhookSecret, prices: bySold }, close: () => server.close() }
}
