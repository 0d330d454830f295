import { Stripe } from 'stripe'
import { BillingFailure } from '../accounts/billing/ports.ts'

/** Runs a Stripe call. @throws BillingFailure in place of the library's errors, whose messages are never passed on */
export async function toBillingFailure<Value>(call: () => Promise<Value>): Promise<Value> {
  try {
    return await call()
  } catch (error) {
    throw asFailure(error) ?? error
  }
}

/** Whether Stripe said that the object does not exist. */
export function isMissing(error: unknown): boolean {
  return error instanceof Stripe.errors.StripeInvalidRequestError && error.code === 'resource_missing'
}

function asFailure(error: unknown): BillingFailure | undefined {
  if (!(error instanceof Stripe.errors.StripeError)) return undefined
  if (isMissing(error)) return new BillingFailure(error.param === 'customer' ? 'customer_unknown' : 'misconfigured')
  const isOurs =
    error instanceof Stripe.errors.StripeAuthenticationError ||
    error instanceof Stripe.errors.StripePermissionError ||
    error instanceof Stripe.errors.StripeInvalidRequestError
  return new BillingFailure(isOurs ? 'misconfigured' : 'unreachable')
}
