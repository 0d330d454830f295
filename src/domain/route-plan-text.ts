import type { ExcludedBackend, ExclusionReason, RouteDoubt } from './route-plan.ts'

/** Why a backend is not asked, as operators read it. */
const reasonWords: Readonly<Record<ExclusionReason, string>> = {
  credentials: 'its provider rejected the credential',
  rate: 'its provider limits our rate',
  failing: 'it fails too often',
  drained: 'drained by an operator',
  quarantined: 'quarantined by an operator',
  another_account: 'its credential belongs to another account',
  managed_not_approved: 'managed access is not approved for this account',
  managed_off: 'managed access is off for its provider',
  simulated: 'it only pretends to be a model, and real ones serve',
  not_capable: 'it is configured as not capable of what is asked',
  cannot_say: 'its format cannot say what is asked',
  window_small: 'its window is no larger than one that is too small',
  enough_asked: 'enough others are asked before it',
}

const doubtWords: Readonly<Record<RouteDoubt, string>> = {
  window_small: 'its window is smaller than that',
  open: 'its circuit breaker is open: it is asked only because no other is left',
  refused_before: 'it refused such a request in the last 15 minutes',
}

/** Why a backend is left out, and for how long yet. */
export function describeExclusion(
  { reason, untilMs }: Pick<ExcludedBackend, 'reason' | 'untilMs'>,
  nowMs: number,
): string {
  if (untilMs === undefined) return reasonWords[reason]
  return `${reasonWords[reason]}; asked again in ${Math.max(1, Math.ceil((untilMs - nowMs) / 1000))}s`
}

/** What may go wrong where it is asked, as operators read it. */
export function describeDoubt(doubt: RouteDoubt): string {
  return doubtWords[doubt]
}
