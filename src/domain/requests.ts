import type { SkippedBackend } from './backend-state.ts'
import type { Usage } from './conversation.ts'
import { type ErrorCode, errorCatalog } from './errors.ts'
import type { FusionRecord } from './fusion-record.ts'
import type { CostRecord } from './request-cost.ts'
import { type Attempt, blameOf } from './upstream.ts'

/** What is known of a request at admission. Its text is never stored (contract 28.3). */
export interface RequestOpening {
  /** `req_…`, sorts by time. */
  readonly id: string
  readonly accountId: string
  readonly keyId: string
  readonly profile: string
  /** The client's format, such as `openai-chat`. */
  readonly format: string
  readonly stream: boolean
  /** Units of the month that an answer takes. */
  readonly units: number
}

/** How a request ended. */
export interface RequestOutcome {
  /** Units of the month that were charged: 0 or all units of the request (contract 6.4). */
  readonly charged: number
  readonly attempts: readonly Attempt[]
  /** Backends before the one that answered, or all of them, that were skipped; absent if none were. */
  readonly passedBy?: readonly SkippedBackend[] | undefined
  readonly usage?: Usage | undefined
  /** What all its attempts cost together; absent if that is unknown (contract 42.8). */
  readonly cost?: CostRecord | undefined
  readonly errorCode?: ErrorCode | 'client_closed' | undefined
  readonly firstContentMs?: number | undefined
  readonly totalMs: number
  /** `ses_…`, the session that it belongs to; absent if it belongs to none (contract 42.13). */
  readonly session?: string | undefined
  /** One entry per fusion; absent if there was none. */
  readonly fusions?: readonly FusionRecord[] | undefined
}

/**
 * `open` until it is settled; `delivered` while a stream is running; `lost` if the process died during it (contract
 * 28.7).
 */
export type RequestState = 'open' | 'delivered' | 'done' | 'lost'

/** The record of an admitted request. Times are epoch milliseconds. */
export interface RequestRecord extends RequestOpening, RequestOutcome {
  readonly state: RequestState
  readonly admittedAtMs: number
  readonly periodId: string
}

/** How requests end: `rejected` is the caller's fault, `failed` is the service's or a provider's. */
export const requestResults = ['answered', 'canceled', 'rejected', 'failed'] as const
export type RequestResult = (typeof requestResults)[number]

/** The result of a request. */
export function resultOf({ errorCode }: Pick<RequestOutcome, 'errorCode'>): RequestResult {
  if (errorCode === undefined) return 'answered'
  if (errorCode === 'client_closed') return 'canceled'
  return Object.hasOwn(errorCatalog, errorCode) && errorCatalog[errorCode].status < 500 ? 'rejected' : 'failed'
}

/** What `failedBackends` and `brokenBackend` read of a request. */
export type RequestFailures = Pick<RequestOutcome, 'attempts' | 'errorCode' | 'fusions'>

/** The backends that failed in a request, before or after the first content; undefined if none did, which is usual. */
export function failedBackends(outcome: RequestFailures): readonly string[] | undefined {
  const { attempts, errorCode } = outcome
  if (attempts.length === 1 && attempts[0]!.outcome === 'answered' && errorCode === undefined) return undefined
  const failed = attempts.filter(hasFailed).map(({ backend }) => backend)
  const broken = brokenBackend(outcome)
  if (broken !== undefined) failed.push(broken)
  return failed.length === 0 ? undefined : failed
}

function hasFailed({ outcome }: Attempt): boolean {
  return outcome !== 'answered' && blameOf(outcome) === 'backend'
}

/**
 * The backend whose answer broke off after its first content: its attempt is recorded as `answered`, and the error is
 * the request's. Undefined for a fusion, which replaces members that fail.
 */
export function brokenBackend({ attempts, errorCode, fusions }: RequestFailures): string | undefined {
  const last = attempts.at(-1)
  if (last?.outcome !== 'answered' || last.refused === true || fusions !== undefined) return undefined
  if (errorCode === undefined || errorCode === 'client_closed' || !Object.hasOwn(errorCatalog, errorCode))
    return undefined
  return errorCatalog[errorCode].source === 'provider' ? last.backend : undefined
}

/** How the answer was continued after its backend broke it off, by the last backend that did (contract 40.8). */
export function rescueOf({ attempts }: Pick<RequestOutcome, 'attempts'>): Pick<Attempt, 'rescued'> {
  if (attempts.length < 2) return {}
  const rescued = attempts.findLast((attempt) => attempt.rescued !== undefined)?.rescued
  return rescued === undefined ? {} : { rescued }
}
