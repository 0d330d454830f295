import type { ExcludedBackend, ExclusionReason, PlannedBackend, RoutingDoubt } from './routing-plan.ts'

/** Why a backend is skipped, for operators. */
const reasonWords: Readonly<Record<ExclusionReason, string>> = {
  credentials: 'its provider rejected the credential, or the credit there is used up',
  rate: 'its provider is limiting our request rate',
  failing: 'it fails too often',
  slow: 'its answers take too long to begin',
  drained: 'drained by an operator',
  quarantined: 'quarantined by an operator',
  another_account: 'its credential belongs to another account',
  managed_not_approved: 'managed access is not approved for this account',
  managed_off: 'managed access is off for its provider',
  simulated: 'it is simulated, and real backends are available',
  only: 'the request does not name it in routing.only',
  ignore: 'the request excludes it in routing.ignore',
  regions: 'it is not declared to be in a required region',
  zero_retention: 'it is not declared to have zero retention',
  max_price: 'it has no declared price within the maximum',
  not_capable: 'it is configured without a capability that the request needs',
  cannot_say: 'its format cannot express the request',
  window_small: 'the context window of another backend is too small for the request, and this one is no larger',
  enough_asked: 'the backends before it use up all of the attempts that a request may make',
}

const doubtWords: Readonly<Record<RoutingDoubt, string>> = {
  window_small: 'its context window looks too small',
  open: 'its circuit breaker is open, and it is tried only because no other backend is left',
  refused_before: 'it rejected a similar request in the last 15 minutes',
}

/** Why a backend is skipped, and for how long. */
export function describeExclusion(
  { reason, untilMs }: Pick<ExcludedBackend, 'reason' | 'untilMs'>,
  nowMs: number,
): string {
  if (untilMs === undefined) return reasonWords[reason]
  return `${reasonWords[reason]}; tried again in ${Math.max(1, Math.ceil((untilMs - nowMs) / 1000))}s`
}

/** Whether a code from outside is a reason that can be described. */
export function isExclusionReason(code: unknown): code is ExclusionReason {
  return typeof code === 'string' && Object.hasOwn(reasonWords, code)
}

/** Whether a code from outside is a doubt that can be described. */
export function isDoubt(code: unknown): code is RoutingDoubt {
  return typeof code === 'string' && Object.hasOwn(doubtWords, code)
}

/** How likely a backend is to be asked first; empty if the configured order decides. */
export function describeShare({ share }: Pick<PlannedBackend, 'share'>): string {
  return share === undefined ? '' : `tried first with ${Math.round(share * 100)}% probability`
}

/** Why a backend may fail, for operators. */
export function describeDoubt(doubt: RoutingDoubt): string {
  return doubtWords[doubt]
}
