import type { Plan } from '../domain/plans.ts'
import { dayMs } from '../runtime/durations.ts'
import { suggest } from './check-shape.ts'
import type { BillingConfig, Mode, StripeConfig } from './config.ts'
import type { Findings } from './findings.ts'
import { readDurationMs } from './measures.ts'
import type { ConfigFile } from './schema.ts'

const defaultGraceMs = 7 * dayMs
const defaultSecretKeyEnv = 'STRIPE_SECRET_KEY'
const defaultWebhookSecretEnv = 'STRIPE_WEBHOOK_SECRET'

/** How plans are sold; undefined if they are not. Problems go to `findings`. */
export function resolveBilling(
  file: ConfigFile,
  mode: Mode,
  plans: readonly Plan[],
  findings: Findings,
): BillingConfig | undefined {
  const { billing } = file
  if (billing?.simulated === true && mode === 'production')
    findings.add(['billing', 'simulated'], 'simulated payments are not allowed in production', 'remove "simulated"')
  if (billing?.simulated === true && billing.stripe !== undefined)
    findings.add(
      ['billing', 'simulated'],
      'billing can use either Stripe or the simulation, not both',
      'remove one of the two',
    )
  if (billing?.stripe === undefined && billing?.simulated !== true) return undefined
  return {
    stripe: billing.stripe === undefined ? undefined : resolveStripe(billing.stripe, plans, findings),
    graceMs: billing.grace === undefined ? defaultGraceMs : (readDurationMs(billing.grace) ?? defaultGraceMs),
  }
}

function resolveStripe(
  given: NonNullable<NonNullable<ConfigFile['billing']>['stripe']>,
  plans: readonly Plan[],
  findings: Findings,
): StripeConfig | undefined {
  const at = ['billing', 'stripe']
  const prices = new Map(Object.entries(given.prices).map(([planId, ids]) => [planId, [ids].flat()]))
  checkPrices(prices, plans, findings)
  const secretKey = findings.secret(
    [...at, 'secret_key_env'],
    given.secret_key_env ?? defaultSecretKeyEnv,
    "it must contain Stripe's secret key",
  )
  const webhookSecret = findings.secret(
    [...at, 'webhook_secret_env'],
    given.webhook_secret_env ?? defaultWebhookSecretEnv,
    "it must contain the signing secret of Stripe's webhooks",
  )
  return secretKey === undefined || webhookSecret === undefined ? undefined : { secretKey, webhookSecret, prices }
}

function checkPrices(prices: ReadonlyMap<string, readonly string[]>, plans: readonly Plan[], findings: Findings): void {
  const at = ['billing', 'stripe', 'prices']
  const ids = plans.map(({ id }) => id)
  if (prices.size === 0) findings.add(at, 'no plan has a price', 'add one: "prices: {pro: price_…}"')
  const seen = new Set<string>()
  for (const [planId, priceIds] of prices) {
    if (!ids.includes(planId) && !findings.names('plans').includes(planId))
      findings.add([...at, planId], `there is no plan "${planId}"`, suggest(planId, ids), 'name')
    // A price must identify one plan.
    if (priceIds.some((id) => seen.has(id)))
      findings.add([...at, planId], 'two plans have the same price', 'give each plan its own price')
    for (const id of priceIds) seen.add(id)
  }
}
