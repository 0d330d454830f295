import type { QuotaDenial, UsageSignals } from '../../domain/account-meter.ts'
import { ServiceError } from '../../domain/errors.ts'
import type { Plan } from '../../domain/plans.ts'
import { writeReset } from '../../domain/reset-text.ts'
import { counted } from '../../runtime/counted.ts'

/** The error that a refused admission becomes, with the counters that refused it (contract 4.43, 4.45, 5.18). */
export function denialError(denial: QuotaDenial, plan: Plan, signals: UsageSignals): ServiceError {
  if (denial.reason === 'minute') {
    const seconds = denial.retryAfterSeconds
    const scope = denial.isOfKey ? 'for this key' : `on the ${plan.name} plan`
    const words = { limit: counted(denial.limit, 'request'), scope, seconds }
    return new ServiceError('rate_limit_exceeded', { retryAfterSeconds: seconds, signals, words })
  }
  const resetsOn = writeReset(denial.resetsAt * 1000)
  const words = { used: signals.quotaUsed, limit: plan.requestsPerMonth, plan: plan.name, resetsOn }
  return new ServiceError('insufficient_quota', { resetsAt: denial.resetsAt, signals, words })
}
