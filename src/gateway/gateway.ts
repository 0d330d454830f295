import type { UsageSignals } from '../domain/account-meter.ts'
import type { Account } from '../domain/accounts.ts'
import type { Budget } from '../domain/budgets.ts'
import type { Conversation } from '../domain/conversation.ts'
import { ServiceError } from '../domain/errors.ts'
import { estimateTokens } from '../domain/estimate-tokens.ts'
import { outcomeName, type EventLog } from '../domain/events.ts'
import type { JsonObject } from '../domain/json.ts'
import type { Links } from '../domain/links.ts'
import { fusionId, profileNamed, type Profile } from '../domain/profiles.ts'
import { failedBackends, rescueOf, type RequestOpening, type RequestOutcome } from '../domain/requests.ts'
import type { RoutingPlan } from '../domain/routing-plan.ts'
import { routingFor } from '../domain/routing-policy.ts'
import type { ClientFormatId, Formats } from '../formats/format.ts'
import type { RelayRules } from '../formats/relay.ts'
import type { Clock } from '../runtime/clock.ts'
import { errorName } from '../runtime/describe-bug.ts'
import type { RandomBytes } from '../runtime/random.ts'
import { SwapRemoveSet } from '../runtime/swap-remove-set.ts'
import { type AdmitDeps, type AdmittedRequest, admitRequest } from './admit-request.ts'
import { allowedProfile, profilesWithin } from './auth/allowed-profile.ts'
import { authenticate, principalOf, type AuthenticationDeps } from './auth/authenticate.ts'
import { assertProfileAllowed } from './auth/key-limits.ts'
import { unservedProfile } from './auth/unknown-profile.ts'
import type { CacheSessions } from './cache/cache-sessions.ts'
import type { SessionTurn } from './cache/session-turn.ts'
import { seededRandom } from './fusion/engine/seeded-random.ts'
import type { FusedAnswerDeps } from './fusion/fused-answer.ts'
import type { FusionNotes } from './fusion/fusion-notes.ts'
import { FusionPlanner, isFusable, type AnswerPlan, type FusionPool } from './fusion/fusion-planner.ts'
import { orFailed } from './or-failed.ts'
import type { LoadShedder } from './overload/load-shedder.ts'
import type {
  AnswerSink,
  Backend,
  Backends,
  Ledger,
  ModelRequest,
  Principal,
  RequestObserver,
  RequestTracer,
} from './ports.ts'
import { assertSupported } from './request/backend-request.ts'
import { DurabilityWait } from './request/durability-wait.ts'
import type { ProviderErrors } from './request/provider-errors.ts'
import type { RequestRunOptions } from './request/request-run-options.ts'
import { RequestRun, type RequestRunEnd, type RequestRunDeps } from './request/request-run.ts'
import type { ServedRequest } from './request/served-request.ts'
import { totalMsOf } from './request/total-time.ts'
import { refersToStored, type StoredResponses } from './responses/stored-responses.ts'
import { planRouting } from './routing-planner.ts'
import type { BackendStatistics } from './routing/backend-statistics.ts'
import type { CircuitBreakers } from './routing/circuit-breakers.ts'
import { countBackends, type BackendCount } from './routing/count-backends.ts'
import { HedgeBudget } from './routing/hedge-budget.ts'
import type { LearnedLimits } from './routing/learned-limits.ts'
import { readRoutingPreferences } from './routing/read-preferences.ts'
import { RetryBudget } from './routing/retry-budget.ts'
import { matchingBackends, withoutFiltered } from './routing/routing-filters.ts'

export interface GatewayDeps {
  readonly clock: Clock
  /** Cryptographically secure. */
  readonly randomBytes: RandomBytes
  readonly log: EventLog
  /** Limits learned from backends' rejections. */
  readonly learned: LearnedLimits
  /** Resolves to whether other nodes have trouble with a backend. Without it, only this process counts. */
  readonly readFailsElsewhere?: () => Promise<(backendId: string) => boolean>
  readonly breakers: CircuitBreakers
  readonly statistics: BackendStatistics
  readonly links: Links
  readonly authentication: AuthenticationDeps
  readonly profiles: readonly Profile[]
  readonly backends: Backends
  readonly ledger: Ledger
  readonly formats: Formats
  readonly relays: (id: ClientFormatId) => RelayRules
  /** What deliberated requests leave for later ones. */
  readonly notes?: FusionNotes | undefined
  /** Where answers are stored; undefined if none are. */
  readonly stored?: StoredResponses | undefined
  /** Stores error messages of failing backends for their owners. */
  readonly providerErrors?: ProviderErrors | undefined
  readonly observer?: RequestObserver | undefined
  readonly tracer?: RequestTracer | undefined
  readonly shedder?: LoadShedder | undefined
  /** Absent if sessions do not stay anywhere. */
  readonly sessions?: CacheSessions | undefined
  /** The budgets of an account. */
  readonly readBudgets?: ((accountId: string) => Promise<readonly Budget[]>) | undefined
  readonly readSpending?: AdmitDeps['readSpending']
  readonly mintId: () => string
  readonly keepAliveMs: number
  readonly cacheKeys?: AdmitDeps['cacheKeys']
}

/** A profile and the backends that serve one account under its name. */
export interface ServedProfile {
  readonly profile: Profile
  readonly backends: readonly Backend[]
  readonly count: BackendCount
}

/** The data plane: authenticates callers, checks what they may use, and answers their requests. */
export class Gateway {
  readonly #deps: GatewayDeps
  readonly #runDeps: RequestRunDeps & FusedAnswerDeps
  readonly #admitDeps: AdmitDeps
  readonly #fusionPlanner: FusionPlanner
  readonly #nowSeconds = (): number => Math.floor(this.#deps.clock.nowMs() / 1000)

  readonly #running = new SwapRemoveSet<RequestRun>()
  /** Whether `abortAll` was called: no request may start anymore. */
  #isAborting = false

  constructor(deps: GatewayDeps) {
    this.#deps = deps
    const random = seededRandom(Buffer.from(deps.randomBytes(4)).readUInt32LE())
    this.#runDeps = {
      ...deps,
      random,
      budget: new RetryBudget(deps.clock),
      hedges: new HedgeBudget(),
      commits: new DurabilityWait(deps.clock),
    }
    this.#admitDeps = { ...deps, commits: this.#runDeps.commits }
    this.#fusionPlanner = new FusionPlanner({ ...deps, ...this.#runDeps })
  }

  /**
   * Authenticates a request from its `authorization` and `x-api-key` headers.
   * @throws ServiceError of the authentication rows of contract 4
   */
  authenticate(authorization: string | undefined, apiKey: string | undefined): Principal | Promise<Principal> {
    return authenticate(authorization, apiKey, this.#deps.authentication)
  }

  /**
   * The principal of an account whose session was checked and that uses no key.
   * @throws ServiceError `key_inactive`, `auth_unavailable`
   */
  principalOf(account: Account): Principal {
    return principalOf(account, this.#deps.authentication)
  }

  /**
   * Aborts every running request because the server is stopping; each gets an error and a record. Those that have not
   * started to run get the error as soon as they do. Returns how many were running.
   */
  abortAll(): number {
    this.#isAborting = true
    const running = this.#running.size
    for (const run of this.#running.all()) run.abort()
    return running
  }

  /** The current counters for this key (contract 5.5, 5.6, 5.9). @throws ServiceError `store_unavailable` */
  async signals({ accountId, plan, limits }: Principal): Promise<UsageSignals> {
    try {
      return await this.#deps.ledger.signals(accountId, plan, limits?.rate)
    } catch (cause) {
      throw new ServiceError('store_unavailable', { retryAfterSeconds: 1, cause })
    }
  }

  /**
   * Every profile that the key may use, with the backends that serve its account.
   * @throws ServiceError `store_unavailable`
   */
  async profilesFor({ accountId, limits }: Principal): Promise<ServedProfile[]> {
    const failsElsewhere = (await this.#deps.readFailsElsewhere?.()) ?? (() => false)
    const serve = async (profile: Profile): Promise<ServedProfile> => {
      const routing = routingFor(profile.routing, undefined)
      const connected = await this.#backendsOf(profile.id, accountId)
      const backends = withoutFiltered(connected, routing)
      return { profile, backends, count: countBackends(profile.id, backends, this.#deps.breakers, failsElsewhere) }
    }
    return Promise.all(profilesWithin(this.#deps.profiles, limits).map(serve))
  }

  /**
   * Rejects a request that this account, or anyone, may not make, whether for an answer, a token count, or a
   * compaction.
   * @throws ServiceError
   */
  assertAllowed(principal: Principal, conversation: Conversation, format: ClientFormatId): void {
    this.#profileOf(principal, conversation, format)
  }

  /**
   * Estimates a request's input tokens, without admitting it or calling a backend.
   * @throws ServiceError as `answer` before it admits
   */
  countTokens(principal: Principal, format: ClientFormatId, body: JsonObject): number {
    const conversation = this.#deps.formats(format).readRequest(body)
    this.assertAllowed(principal, conversation, format)
    return estimateTokens(conversation)
  }

  /**
   * Makes the checks that `answer` makes before it admits a request, and takes nothing from the quota.
   * @throws ServiceError
   */
  check(principal: Principal, { format, body }: ModelRequest): Conversation {
    const conversation = this.#deps.formats(format).readRequest(body)
    this.assertAllowed(principal, conversation, format)
    assertSupported(conversation)
    return conversation
  }

  /**
   * Where a request would go now, and why. Calls and admits nothing (contract 7.28).
   * @throws ServiceError if the request is invalid, or not allowed
   */
  async explain(principal: Principal, given: ModelRequest): Promise<RoutingPlan> {
    const { stored } = this.#deps
    const read = this.check(principal, given)
    readRoutingPreferences(given.body)
    const isStored = stored !== undefined && refersToStored(read)
    const full = isStored ? await stored.resolve(principal.accountId, given, read) : undefined
    return await planRouting(this.#deps, principal, full?.request ?? given)
  }

  /**
   * Rejects the name of an existing profile that this key may not use.
   * @throws ServiceError `key_profile_not_allowed`
   */
  assertListed({ limits }: Principal, name: string): void {
    const profile = profileNamed(name, this.#deps.profiles)
    if (limits !== undefined && profile !== undefined) assertProfileAllowed(limits, profile.id)
  }

  /** @throws ServiceError `load_shed` if an overloaded process rejects the request (contract 41.3) */
  assertAccepted(plan: Pick<Principal['plan'], 'premium' | 'name'>, isRetry: boolean): void {
    this.#deps.shedder?.assertAccepted(plan, isRetry)
  }

  /**
   * Answers one request into the sink. The profile, plan, and limits are checked before the counters (contract 3.14).
   * @throws ServiceError if the error is to be the whole response
   */
  async answer(principal: Principal, given: ModelRequest, sink: AnswerSink): Promise<void> {
    const { formats, stored } = this.#deps
    const { accountId } = principal
    this.assertAccepted(principal.plan, given.isRetry === true)
    const read = formats(given.format).readRequest(given.body)
    const profile = this.#profileOf(principal, read, given.format)
    const routing = routingFor(profile.routing, readRoutingPreferences(given.body))
    const found = this.#backendsOf(profile.id, accountId)
    const connected = found instanceof Promise ? await found : found
    if (connected.length === 0) throw unservedProfile(profile)
    const backends = matchingBackends(connected, routing, profile.id)
    assertSupported(read)
    const full = stored !== undefined && refersToStored(read) ? await stored.resolve(accountId, given, read) : undefined
    const request = full?.request ?? given
    const conversation = full === undefined ? read : formats(given.format).readRequest(request.body)
    const persister = stored?.persister(accountId, request, conversation, full?.resolved)
    const begun = this.#deps.sessions?.begin({ accountId, profile: profile.id, request, conversation })
    const served = {
      profile,
      request,
      conversation,
      backends,
      routing,
      begun,
      persister,
      previousResponseId: given.previousResponseId ?? read.hints.previousResponseId,
      conversationId: read.hints.conversationId,
    }
    const mayFuse = isFusable(profile, conversation)
    return await (mayFuse ? this.#answerFused(principal, served, sink) : this.#serve(principal, served, sink))
  }

  /** Answers a request that several models may answer together. */
  async #answerFused(principal: Principal, served: ServedRequest, sink: AnswerSink): Promise<void> {
    const pool = async (): Promise<FusionPool> => {
      const profile = this.#deps.profiles.find(({ id }) => id === fusionId)
      const asked = readRoutingPreferences(served.request.body)
      const routing = routingFor(profile?.routing, asked)
      const connected = await this.#backendsOf(fusionId, principal.accountId)
      return {
        backends: withoutFiltered(connected, routing),
        defaults: profile?.fusion,
      }
    }
    const session = await served.begun
    using plan = await this.#fusionPlanner.plan(principal, { ...served, session }, pool)
    return await this.#serve(principal, { ...served, ...plan.fusable }, sink, plan)
  }

  /** Admits a checked request and runs it to its record. Whatever is rejected before costs nothing (contract 6.1). */
  async #serve(principal: Principal, served: ServedRequest, sink: AnswerSink, plan?: AnswerPlan): Promise<void> {
    const session = served.begun instanceof Promise ? await served.begun : served.begun
    if (this.#isAborting) throw new ServiceError('restarting', { retryAfterSeconds: 1 })
    const found = admitRequest(this.#admitDeps, principal, served, session, plan)
    const admitted = found instanceof Promise ? await found : found
    const { request, opening } = admitted
    const options = this.#runOptions(admitted, served, session, sink, plan)
    const requestRun = new RequestRun(this.#runDeps, options)
    // Its admission was awaited when the others were aborted.
    if (this.#isAborting) requestRun.abort()
    this.#running.add(requestRun)
    let end: RequestRunEnd
    try {
      end = await requestRun.run()
    } finally {
      this.#running.delete(requestRun)
    }
    const { outcome, error } = end
    session?.ended(outcome.usage)
    request.trace?.ended(outcome)
    this.#report(opening, outcome, options.source?.origin?.id ?? outcome.attempts.at(-1)?.backend)
    if (error === undefined) return
    error.isRecorded = true
    throw error
  }

  #runOptions(
    { request, conversation, opening, backends, doubtful, admission, written }: AdmittedRequest,
    { profile, routing, persister, previousResponseId, conversationId }: ServedRequest,
    session: SessionTurn | undefined,
    sink: AnswerSink,
    plan: AnswerPlan | undefined,
  ): RequestRunOptions {
    const { id, accountId, units } = opening
    request.trace = this.#deps.tracer?.begin(opening, request.traceparent)
    request.work?.admitted()
    const nowSeconds = this.#nowSeconds
    const context = {
      conversation,
      requestId: id,
      createdAt: nowSeconds(),
      nowSeconds,
      isStored: persister?.isStored === true,
      isBackground: request.isBackground === true,
      previousResponseId,
      conversationId,
      report: plan?.report,
      mintId: this.#deps.mintId,
    }
    request.onAdmitted?.(context)
    const totalMs = totalMsOf(request, backends)
    return {
      request,
      accountId,
      conversation,
      context,
      written,
      backends,
      doubtful,
      routing,
      session,
      admission,
      units,
      sink,
      totalMs,
      persister,
      reportsModel: profile.reportsModel,
      reportsCost: profile.reportsCost,
      source: plan?.runner?.(request, context, totalMs),
    }
  }

  #report(opening: RequestOpening, outcome: RequestOutcome, upstream: string | undefined): void {
    this.#deps.observer?.ended(opening, outcome)
    this.#deps.log({
      event: 'request',
      requestId: opening.id,
      accountId: opening.accountId,
      profile: opening.profile,
      format: opening.format,
      outcome: outcomeName(outcome),
      upstream,
      attempts: outcome.attempts.length,
      failed: failedBackends(outcome),
      ...(outcome.attempts.at(-1)?.refused === true && { refused: true }),
      ...rescueOf(outcome),
      charged: outcome.charged,
      ms: outcome.totalMs,
    })
  }

  /** @throws ServiceError `store_unavailable` */
  #backendsOf(profileId: string, accountId: string): readonly Backend[] | Promise<readonly Backend[]> {
    return orFailed(
      () => this.#deps.backends.forProfile(profileId, accountId),
      (cause) => {
        this.#deps.log({ event: 'store_failing', reason: errorName(cause) })
        throw new ServiceError('store_unavailable', { retryAfterSeconds: 1, cause })
      },
    )
  }

  #profileOf(principal: Principal, conversation: Conversation, format: ClientFormatId): Profile {
    return allowedProfile(this.#deps.profiles, principal, conversation, format)
  }
}
