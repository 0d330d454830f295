import { z } from 'zod'
import { duration, env, flag, group, map, shaped } from './settings.ts'

const maxPlans = 20
const maxPricesPerPlan = 20
const planShape = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/
const stripePriceShape = /^price_[A-Za-z0-9]{1,64}$/

const stripePrice = shaped(stripePriceShape, 'the id of a price at Stripe, such as price_1AbC')
const stripe = group({
  secret_key_env: env('The variable with the secret key. Default STRIPE_SECRET_KEY.').optional(),
  webhook_secret_env: env(
    'The variable with the signing secret of the webhook endpoint. Default STRIPE_WEBHOOK_SECRET.',
  ).optional(),
  prices: map(
    planShape,
    'the id of a plan',
    z.union(
      [
        stripePrice,
        z
          .array(stripePrice)
          .min(1)
          .max(maxPricesPerPlan, { error: `expected at most ${maxPricesPerPlan} prices` }),
      ],
      { error: 'expected the id of a price at Stripe, such as price_1AbC, or a list of them' },
    ),
    maxPlans,
  ).describe(
    'For each plan that is sold the id of its price. In a list the first is sold; those behind it are honoured for customers who have them.',
  ),
})

/** How plans are sold. */
export const billingSchema = group({
  stripe: stripe.optional().describe('Sells plans through Stripe: checkout, customer portal and webhooks.'),
  simulated: flag
    .optional()
    .describe(
      'Sells every premium plan through a simulation of Stripe on this machine, in which no money moves. Not in production.',
    ),
  grace: duration(0)
    .optional()
    .describe('How long an unpaid invoice is waited for before the account falls to default_plan. Default 7d.'),
})
