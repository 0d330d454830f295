import type { Budget, BudgetClaim } from '../domain/budgets.ts'
import type { Conversation } from '../domain/conversation.ts'
import { ServiceError } from '../domain/errors.ts'
import type { EventLog } from '../domain/events.ts'
import { fusionDepthHeaders, type Profile } from '../domain/profiles.ts'
import type { RequestOpening } from '../domain/requests.ts'
import type { ClientFormatId } from '../formats/format.ts'
import type { RelayRules } from '../formats/relay.ts'
import type { Clock } from '../runtime/clock.ts'
import { errorName } from '../runtime/describe-bug.ts'
import type { SealingKey } from '../runtime/sealer.ts'
import { assertSameCaller, callGrant } from './auth/call-grant.ts'
import { assertProfileAllowed } from './auth/key-limits.ts'
import { budgetedFor, mayHaveBudgets } from './budgets/budgeted-request.ts'
import type { ReadSpending } from './budgets/refused-call.ts'
import { cacheContext } from './cache/provider-cache.ts'
import type { SessionTurn } from './cache/session-turn.ts'
import type { AnswerPlan } from './fusion/fusion-planner.ts'
import { orFailed } from './or-failed.ts'
import type { Admission, AllowedRequest, Backend, Backends, Ledger, Principal, RequestTrace } from './ports.ts'
import {
  assertEncodable,
  type BackendRequestBody,
  type BackendRequestDeps,
  translatedOnly,
} from './request/backend-request.ts'
import type { DurabilityWait } from './request/durability-wait.ts'
import type { ServedRequest } from './request/served-request.ts'
import { assertCapable } from './routing/capable-backends.ts'

export interface AdmitDeps extends BackendRequestDeps {
  readonly backends: Backends
  readonly clock: Clock
  readonly ledger: Ledger
  readonly log: EventLog
  readonly relays: (id: ClientFormatId) => RelayRules
  readonly commits: DurabilityWait
  /** Signs the keys that lead requests to providers' caches; without it none are sent. */
  readonly cacheKeys?: SealingKey | undefined
  /** The budgets of an account. */
  readonly readBudgets?: ((accountId: string) => Promise<readonly Budget[]>) | undefined
  readonly readSpending?: ReadSpending | undefined
}

/** A request that was admitted, in the form in which it is sent. */
export interface AdmittedRequest {
  readonly request: AllowedRequest & { trace: RequestTrace | undefined }
  readonly conversation: Conversation
  readonly opening: RequestOpening
  readonly backends: readonly Backend[]
  readonly doubtful: ReadonlySet<Backend> | undefined
  readonly admission: Admission
  /** The body that was already written for the first backend, if any. */
  readonly written: BackendRequestBody | undefined
}

/**
 * Makes the last checks of a request, and admits it in the form in which it can be sent, within the plan, limits, and budgets
 * of now. Synchronous if no budget counts the request and its account's counters are in memory. @throws ServiceError
 */
export function admitRequest(
  deps: AdmitDeps,
  principal: Principal,
  served: ServedRequest,
  session: SessionTurn | undefined,
  plan: AnswerPlan | undefined,
): AdmittedRequest | Promise<AdmittedRequest> {
  const now = principalOfNow(principal, served.profile.id)
  return now instanceof Promise
    ? now.then((one) => checkAndAdmit(deps, one, served, session, plan))
    : checkAndAdmit(deps, now, served, session, plan)
}

function checkAndAdmit(
  deps: AdmitDeps,
  principal: Principal,
  { profile, request: given, conversation, backends: served }: ServedRequest,
  session: SessionTurn | undefined,
  plan: AnswerPlan | undefined,
): AdmittedRequest | Promise<AdmittedRequest> {
  const { accountId } = principal
  const learned = deps.learned.of(accountId)
  const request = {
    ...given,
    cache: cacheContext(deps.cacheKeys, accountId, profile, session),
    grant: callGrant(principal, deps.backends),
    addedHeaders: fusionDepthHeaders(given.fusionDepth),
    trace: undefined,
  }
  const isFused = plan?.runner !== undefined
  // A fusion chooses its members by capability itself.
  const { capable, doubtful } = isFused
    ? { capable: served, doubtful: undefined }
    : assertCapable(served, conversation, deps.formats(given.format).inputField, learned)
  const checked = { principal, profile, request, conversation, learned, isFused, backends: capable, doubtful }
  return mayHaveBudgets(principal) ? admitBudgeted(deps, checked, plan) : admitChecked(deps, checked, undefined, false)
}

/** A request that passed all checks but those of budgets. */
interface CheckedRequest extends Pick<AdmittedRequest, 'request' | 'conversation' | 'backends' | 'doubtful'> {
  readonly principal: Principal
  readonly profile: Profile
  readonly learned: BackendRequestDeps['learned']
  readonly isFused: boolean
}

async function admitBudgeted(
  deps: AdmitDeps,
  checked: CheckedRequest,
  plan: AnswerPlan | undefined,
): Promise<AdmittedRequest> {
  const { principal, profile, request, conversation, isFused, backends } = checked
  const { count: calls = 1, backends: called = backends, outputTokens: fusionOutput } = plan?.calls ?? {}
  const budgeted = await budgetedFor(deps.readBudgets, principal, {
    request,
    conversation,
    profile: profile.id,
    outputLimit: deps.formats(request.format).outputLimit,
    backends: called,
    calls,
    fusionOutput,
    nowMs: deps.clock.nowMs(),
  })
  if (budgeted === undefined) return admitChecked(deps, checked, undefined, true)
  const able = isFused ? checked : { ...checked, backends: budgeted.backends }
  const admitted = await admitChecked(deps, able, budgeted.claim, true)
  return { ...admitted, ...(await budgeted.prepare(admitted, deps)) }
}

/** `hasWaited`: something was waited for since the key was checked. */
function admitChecked(
  deps: AdmitDeps,
  { principal, profile, request, conversation, learned, isFused, backends, doubtful }: CheckedRequest,
  claim: BudgetClaim | undefined,
  hasWaited: boolean,
): AdmittedRequest | Promise<AdmittedRequest> {
  const { accountId, keyId } = principal
  const { id, format } = request
  const bodies = { formats: deps.formats, learned, relays: isFused ? translatedOnly : deps.relays }
  const written = assertEncodable(request, conversation, backends, bodies)
  const units = profile.quotaUnits
  const opening = { id, accountId, keyId, profile: profile.id, format, stream: conversation.stream, units }
  const entered = (admission: Admission): AdmittedRequest => {
    return { request, conversation, opening, backends, doubtful, admission, written }
  }
  const reading = askLedger(deps, () => deps.ledger.prepare?.(accountId, claim !== undefined))
  const admit = ({ plan, limits }: Principal): Admission | Promise<Admission> =>
    askLedger(deps, () => deps.ledger.admit(opening, plan, limits?.rate, claim))
  const found =
    reading === undefined && !hasWaited
      ? admit(principal)
      : Promise.resolve(reading)
          .then(() => principalOfNow(principal, profile.id))
          .then(admit)
  return found instanceof Promise ? found.then(entered) : entered(found)
}

/**
 * The caller, whose key is still valid. What was waited for since it was authenticated, such as the body or the store, can have
 * taken longer than a key may be trusted (contract 3.11, 3.13). @throws ServiceError
 */
function principalOfNow(before: Principal, profile: string): Principal | Promise<Principal> {
  const allowed = (now: Principal): Principal => {
    assertSameCaller(now, before)
    if (now.limits !== undefined && now.limits !== before.limits) assertProfileAllowed(now.limits, profile)
    return now
  }
  const now = before.recheck()
  return now instanceof Promise ? now.then(allowed) : allowed(now)
}

/** @throws ServiceError as `Ledger.admit`, and `record_unavailable` */
function askLedger<Result>({ log }: AdmitDeps, ask: () => Result | Promise<Result>): Result | Promise<Result> {
  return orFailed(ask, (cause) => {
    if (cause instanceof ServiceError) throw cause
    log({ event: 'ledger_failing', reason: errorName(cause) })
    throw new ServiceError('record_unavailable', { retryAfterSeconds: 1, cause })
  })
}
