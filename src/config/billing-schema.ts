import { z } from 'zod'
import { duration, env, flag, group, map, shaped } from './settings.ts'

const maxPlans = 20
const maxPricesPerPlan = 20
const planShape = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/
const stripePriceShape = /^price_[A-Za-z0-9]{1,64}$/

const stripePrice = shaped(stripePriceShape, 'a Stripe price ID, such as price_1AbC')
const stripe = group({
  secret_key_env: env('The variable with the secret key. Default STRIPE_SECRET_KEY.').optional(),
  webhook_secret_env: env(
    'The variable with the signing secret of the webhook endpoint. Default STRIPE_WEBHOOK_SECRET.',
  ).optional(),
  prices: map(
    planShape,
    'the ID of a plan',
    z.union(
      [
        stripePrice,
        z
          .array(stripePrice)
          .min(1)
          .max(maxPricesPerPlan, { error: `expected at most ${maxPricesPerPlan} prices` }),
      ],
      { error: 'expected a Stripe price ID, such as price_1AbC, or a list of them' },
    ),
    maxPlans,
  ).describe(
    'The price ID of each plan that is sold. In a list, the first is sold; the others stay valid for customers who have them.',
  ),
})

/** How plans are sold. */
export const billingSchema = group({
  stripe: stripe.optional().describe('Sells plans through Stripe: checkout, customer portal, and webhooks.'),
  simulated: flag
    .optional()
    .describe(
      'Sells every premium plan through a simulated Stripe on this machine. No money moves. Not allowed in production.',
    ),
  grace: duration(0)
    .optional()
    .describe('How long an invoice may stay unpaid before the account moves to default_plan. Default 7d.'),
})
