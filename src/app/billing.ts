import { join } from 'node:path'
import type { BillingDeps, PlanSales, PlansDeps } from '../accounts/billing/billing-deps.ts'
import { startChecks } from '../accounts/billing/checks.ts'
import type { HandleWebhook } from '../accounts/billing/ports.ts'
import { createWebhookHandler } from '../accounts/billing/webhook.ts'
import type { BillingConfig, StripeConfig } from '../config/config.ts'
import { dayMs } from '../runtime/durations.ts'
import { randomBase62 } from '../runtime/ids.ts'
import { Secret } from '../runtime/secret.ts'
import { startSweep } from '../storage/sweeps/sweep.ts'
import type { Runtime } from './runtime.ts'
import type { Storage } from './storage.ts'

/** How long processed events are remembered, to ignore repetitions. Stripe repeats an event for up to three days. */
const eventsKeptMs = 30 * dayMs
const eventRows = 500
const simulatedSecretCharacters = 32
/** The simulated price of the first sold plan, in cents; each further plan costs five times as much. */
const simulatedMinorUnits = 2000
const simulatedFactor = 5
const simulatedFile = 'simulated-billing.json'

export interface OpenBillingDeps {
  readonly storage: Storage
  readonly onFailed: (error: unknown) => void
}

/**
 * How accounts change their plan, with the checks and sweeps of billing. Stripe's library is loaded only if plans are
 * sold. @throws SetupError if the simulation cannot start
 */
export async function openBilling(runtime: Runtime, deps: OpenBillingDeps): Promise<PlanSales & AsyncDisposable> {
  const { config, served, clock, random } = runtime
  await using opened = new AsyncDisposableStack()
  const plansDeps: PlansDeps = {
    accounts: deps.storage.store,
    store: deps.storage.store.billing,
    clock,
    random,
    get plans() {
      return served.plans
    },
    defaultPlan: config.defaultPlan,
    graceMs: config.billing?.graceMs ?? 0,
  }
  const sold =
    config.billing === undefined ? undefined : await sell(runtime, config.billing, { ...deps, plansDeps, opened })
  const owned = opened.move()
  return { plansDeps, sold, [Symbol.asyncDispose]: () => owned.disposeAsync() }
}

interface SellDeps extends OpenBillingDeps {
  readonly plansDeps: PlansDeps
  readonly opened: AsyncDisposableStack
}

async function sell(
  runtime: Runtime,
  { stripe }: BillingConfig,
  { plansDeps, opened, onFailed }: SellDeps,
): Promise<PlanSales['sold']> {
  const { clock, log } = runtime
  const { createStripeBilling } = await import('../billing/stripe-billing.ts')
  // The simulation sends webhooks to a handler that is created after it.
  const hook: { handle: HandleWebhook | undefined } = { handle: undefined }
  const simulated = stripe === undefined ? await simulate(runtime, hook) : undefined
  if (simulated !== undefined) opened.defer(() => simulated.close())
  const billing = createStripeBilling({
    ...(stripe ?? simulated!.settings),
    clock,
    ...(simulated === undefined ? {} : { simulation: simulated }),
  })
  opened.defer(() => billing.close())
  if (simulated !== undefined) log({ event: 'billing_simulated', origin: `http://${simulated.host}:${simulated.port}` })
  const selling: BillingDeps = {
    ...plansDeps,
    get plans() {
      return plansDeps.plans
    },
    billing,
    log,
  }
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

/** A simulation of Stripe on this machine, with its own secrets and a price for every plan except the free one. */
async function simulate(
  { config, clock, random }: Runtime,
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
