import type { UsageSignals } from '../../src/domain/account-meter.ts'

/** Of an account that has used nothing of its one request. */
export const signals: UsageSignals = {
  rateLimit: 1,
  rateRemaining: 1,
  rateReset: 0,
  quotaLimit: 1,
  quotaUsed: 0,
  quotaRemaining: 1,
  quotaReset: 0,
}
