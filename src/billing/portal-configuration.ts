import { createHash } from 'node:crypto'
import type { Stripe } from 'stripe'

/** How many existing portal configurations are searched; Stripe allows few more. */
const maxConfigurations = 100
const markName = 'svc_router_portal'
/** Increment whenever the settings below change. */
const version = 1

/**
 * Finds or creates the portal configuration that the billing pages describe: a higher plan applies now and the
 * difference is paid; a lower plan and cancellation apply when the period ends (contract 22.4). It is created once per
 * set of prices and found again by its metadata. Returns its id.
 */
export async function findPortalConfiguration(stripe: Stripe, prices: readonly Stripe.Price[]): Promise<string> {
  const mark = markOf(prices)
  const known = await stripe.billingPortal.configurations.list({ active: true, limit: maxConfigurations })
  const found = known.data.find(({ metadata }) => metadata?.[markName] === mark)
  if (found !== undefined) return found.id
  const made = await stripe.billingPortal.configurations.create(
    {
      metadata: { [markName]: mark },
      features: {
        customer_update: { enabled: true, allowed_updates: ['email', 'address', 'tax_id'] },
        invoice_history: { enabled: true },
        payment_method_update: { enabled: true },
        subscription_cancel: { enabled: true, mode: 'at_period_end' },
        subscription_update: {
          enabled: true,
          default_allowed_updates: ['price'],
          products: byProduct(prices),
          proration_behavior: 'always_invoice',
          schedule_at_period_end: { conditions: [{ type: 'decreasing_item_amount' }] },
        },
      },
    },
    { idempotencyKey: `portal-${mark}` },
  )
  return made.id
}

function byProduct(prices: readonly Stripe.Price[]): { product: string; prices: string[] }[] {
  const products = new Map<string, string[]>()
  for (const { id, product } of prices) {
    const name = typeof product === 'string' ? product : product.id
    products.set(name, [...(products.get(name) ?? []), id])
  }
  return Array.from(products, ([product, ids]) => ({ product, prices: ids }))
}

function markOf(prices: readonly Stripe.Price[]): string {
  const ids = prices.map(({ id }) => id).toSorted()
  return createHash('sha256')
    .update(JSON.stringify([version, ids]))
    .digest('hex')
    .slice(0, 32)
}
