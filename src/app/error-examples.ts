import type { Config } from '../config/config.ts'
import { periodAt, type UsageSignals } from '../domain/account-meter.ts'
import type { ServiceError } from '../domain/errors.ts'
import { linksFor } from '../domain/links.ts'
import { openaiConventions } from '../formats/openai/client-conventions.ts'
import { errorBody, errorHeaders } from '../http/error-response.ts'
import type { WrittenError } from '../web/docs/error-docs.ts'

const requestId = 'req_0VQ3xS8k00aB7cD9eF1gH3jK'

/** An error response for the documentation, written by the functions that write the API's responses. */
export function writeExample(error: ServiceError, config: Config, nowMs: number): WrittenError {
  const model = error.status >= 402 && error.entry.source !== 'edge'
  const signals = error.entry.signals === 'authentication' ? undefined : signalsFor(error, config, nowMs)
  const context = { requestId, conventions: openaiConventions, links: linksFor(config.appUrl), nowMs, signals, model }
  const list = errorHeaders(error, context)
  const headers = Array.from({ length: list.length / 2 }, (_, at) => [list[at * 2]!, list[at * 2 + 1]!] as const)
  return { status: error.status, headers, body: errorBody(error, context) }
}

/** Plausible quota figures for this error; undefined for errors that occur before the account is known. */
function signalsFor({ code, entry }: ServiceError, { plans }: Config, nowMs: number): UsageSignals | undefined {
  const [plan] = plans
  if (plan === undefined || entry.source === 'edge' || code === 'auth_unavailable') return undefined
  const nowSeconds = Math.floor(nowMs / 1000)
  const isMinute = code === 'rate_limit_exceeded'
  const quotaUsed = code === 'insufficient_quota' ? plan.requestsPerMonth : Math.floor(plan.requestsPerMonth / 4)
  return {
    rateLimit: plan.requestsPerMinute,
    rateRemaining: isMinute ? 0 : plan.requestsPerMinute - 1,
    rateReset: nowSeconds + (isMinute ? 4 : 59),
    quotaLimit: plan.requestsPerMonth,
    quotaUsed,
    quotaRemaining: plan.requestsPerMonth - quotaUsed,
    quotaReset: Math.floor(periodAt(nowMs).endMs / 1000),
  }
}
