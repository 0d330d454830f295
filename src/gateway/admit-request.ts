import type { Budget } from '../domain/budgets.ts'
import type { Conversation } from '../domain/conversation.ts'
import { ServiceError } from '../domain/errors.ts'
import type { EventLog } from '../domain/events.ts'
import { fusionDepthHeaders } from '../domain/profiles.ts'
import type { RequestOpening } from '../domain/requests.ts'
import type { ClientFormatId } from '../formats/format.ts'
import type { RelayRules } from '../formats/relay.ts'
import type { Clock } from '../runtime/clock.ts'
import { errorName } from '../runtime/describe-bug.ts'
import type { SealingKey } from '../runtime/sealer.ts'
import { callGrant } from './auth/call-grant.ts'
import { budgetedFor, mayHaveBudgets } from './budgets/budgeted-request.ts'
import type { ClaimingRequest } from './budgets/request-claim.ts'
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
}

/** A request whose session was looked up; undefined if no provider caches its prompt. */
type SessionRequest = ServedRequest & { readonly session: SessionTurn | undefined }

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

/** Makes the last checks of a request, and admits it in the form in which it can be sent. @throws ServiceError */
export async function admitRequest(
  deps: AdmitDeps,
  principal: Principal,
  { profile, request: given, conversation, backends: served, session }: SessionRequest,
  plan: AnswerPlan | undefined,
): Promise<AdmittedRequest> {
  const { accountId, keyId, limits } = principal
  const { formats, relays, readBudgets } = deps
  const learned = deps.learned.of(accountId)
  const request = { ...given, cache: cacheContext(deps.cacheKeys, accountId, profile, session) }
  const { id, format } = request
  const isFused = plan?.runner !== undefined
  // A fusion chooses its members by capability itself.
  const { capable, doubtful } = isFused
    ? { capable: served, doubtful: undefined }
    : assertCapable(served, conversation, formats(format).inputField, learned)
  const { count: calls = 1, backends: called = capable } = plan?.calls ?? {}
  const asking = (): ClaimingRequest => ({
    request,
    conversation,
    profile: profile.id,
    outputLimit: formats(format).outputLimit,
    backends: called,
    calls,
    nowMs: deps.clock.nowMs(),
  })
  const budgeted = mayHaveBudgets(principal) ? await budgetedFor(readBudgets, principal, asking()) : undefined
  const backends = budgeted === undefined || isFused ? capable : budgeted.backends
  const bodies = { formats, learned, relays: isFused ? translatedOnly : relays }
  const written = assertEncodable(request, conversation, backends, bodies)
  const units = profile.quotaUnits
  const opening = { id, accountId, keyId, profile: profile.id, format, stream: conversation.stream, units }
  const found = admit(deps, opening, principal.plan, limits?.rate, budgeted?.claim)
  const admission = found instanceof Promise ? await found : found
  const allowed = {
    ...request,
    grant: callGrant(principal, deps.backends),
    addedHeaders: fusionDepthHeaders(request.fusionDepth),
    trace: undefined,
  }
  const admitted = { request: allowed, conversation, opening, backends, doubtful, admission, written }
  if (budgeted === undefined) return admitted
  return { ...admitted, ...(await budgeted.prepare(admitted, deps)) }
}

/** @throws ServiceError as `Ledger.admit`, and `record_unavailable` */
function admit({ ledger, log }: AdmitDeps, ...asked: Parameters<Ledger['admit']>): Admission | Promise<Admission> {
  return orFailed(
    () => ledger.admit(...asked),
    (cause) => {
      if (cause instanceof ServiceError) throw cause
      log({ event: 'ledger_failing', reason: errorName(cause) })
      throw new ServiceError('record_unavailable', { retryAfterSeconds: 1, cause })
    },
  )
}
