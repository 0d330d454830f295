import type { KeyRate, UsageSignals } from '../domain/account-meter.ts'
import type { Account, StoredKey } from '../domain/accounts.ts'
import type { Amounts, Budget, BudgetClaim } from '../domain/budgets.ts'
import type { ServiceError } from '../domain/errors.ts'
import type { JsonObject } from '../domain/json.ts'
import type { BackendFacts } from '../domain/model-facts.ts'
import type { ModelPrice } from '../domain/model-price.ts'
import type { Plan } from '../domain/plans.ts'
import type { RequestOpening, RequestOutcome } from '../domain/requests.ts'
import type { Attempt, UpstreamError } from '../domain/upstream.ts'
import type { AnswerContext, ClientFormatId, Dialect, FormatId } from '../formats/format.ts'
import type { JsonMember } from '../formats/json-scan.ts'
import type { EnforcedLimits } from './auth/key-limits.ts'
import type { RequestWork } from './auth/unadmitted-work.ts'
import type { CallBill } from './budgets/call-bill.ts'
import type { InputBound } from './budgets/input-bound.ts'
import type { CacheContext } from './cache/cache-context.ts'

/** The authenticated caller. Created only in `authenticate.ts`. */
export interface Principal {
  readonly accountId: string
  readonly keyId: string
  readonly plan: Plan
  /** Undefined if the key may do everything that its account may. */
  readonly limits: EnforcedLimits | undefined
  /** The account's budgets; undefined if it has none. */
  readonly budgets?: readonly Budget[] | undefined
  /**
   * Authenticates the caller again; synchronous if nothing has changed.
   * @throws ServiceError as `Gateway.authenticate`
   */
  readonly recheck: () => Principal | Promise<Principal>
}

/**
 * Checks that an admitted request may still call a backend. Called before every upstream request: each attempt and
 * each sub-call of a fusion (contract 6.18, 23.6). Synchronous if nothing has changed since the last check. `input`: the
 * most input of a sub-call, which has its own conversation. `bill` identifies the call.
 * @throws ServiceError if the key or account may no longer send requests; UpstreamError `not_sent` if only this
 * backend is no longer allowed
 */
export type CallGrant<Target extends CallTarget = Backend> = (
  target: Target,
  input: InputBound | undefined,
  bill: CallBill,
) => void | Promise<void>

/** A key and the account that it belongs to. */
export interface KeyEntry {
  readonly key: StoredKey
  readonly account: Account
  /** The account's budgets; undefined if it has none. */
  readonly budgets?: readonly Budget[] | undefined
}

/** A cached entry, with its limits prepared for checks. */
export interface KnownKey extends KeyEntry {
  readonly limits: EnforcedLimits | undefined
}

/** Keys by digest. A rejected promise means that the store is unavailable, and becomes 503, never 401 (contract 3.8). */
export interface KeyStore {
  /** The entry, or undefined if there is definitely none. */
  find(digest: string): Promise<KeyEntry | undefined>
  /** A number that changes whenever a key, account, or upstream changes. Must be cheap: it is read 4 times a second. */
  revision(): Promise<number>
}

/** Decides admissions and records every request (contract 6, 35.6). */
export interface Ledger {
  /**
   * Reads what a decision about an account needs from the store, so that nothing is waited for between the last check of a
   * key and the admission. Undefined if it needs nothing. Absent if the decision is made elsewhere. Fails as `admit`.
   */
  readonly prepare?: ((accountId: string, hasClaim: boolean) => Promise<void> | undefined) | undefined
  /**
   * Takes one request from the minute (also from the key's own limit, if it has one), its units from the month, and its
   * claim from the budgets, in one decision (contract 5.12, 6.11, 46.3).
   * @throws ServiceError `rate_limit_exceeded`, `insufficient_quota`, `budget_exceeded`, `budget_held`; any other error
   * means that nothing can be recorded at the moment
   */
  admit(opening: RequestOpening, plan: Plan, rate?: KeyRate, claim?: BudgetClaim): Admission | Promise<Admission>
  /** The current counters, taking nothing: the account's, or as seen by a key with its own limit. */
  signals(accountId: string, plan: Plan, rate?: KeyRate): UsageSignals | Promise<UsageSignals>
}

/**
 * Whether a charged answer still has to be sent when it is settled. `due`: `deliver` is called as soon as `durable`
 * has resolved, in the same turn of the event loop, even if the client has disconnected; after a crash in between,
 * the charge is reverted. `done`: `deliver` was already called. `none`: nothing is delivered, and charges stay.
 */
export type DeliveryState = 'due' | 'done' | 'none'

/**
 * One admitted request. `settle` is always called exactly once. A stream: admit, `durable`, `deliver`, …, `settle`. A
 * whole answer: either the same, or admit, `settle(…, 'due')`, `durable`, `deliver`.
 */
export interface Admission {
  /** The current counters, including this request. */
  signals(): UsageSignals
  /**
   * Undefined if everything recorded for this request is on disk; otherwise resolves when it is. No byte of an answer
   * may be sent before (contract 6.12). Rejects if it could not be written within 20 s: nothing may be delivered
   * then, and what was settled as `due` is not charged.
   */
  durable(): Promise<void> | undefined
  /**
   * Marks the answer as delivered. Its first byte must be sent in this turn of the event loop, directly after the
   * call returns.
   * @throws if the mark could not be written or the request is not durable: no byte may be sent then
   */
  deliver(): void
  /** What the request holds of budgets; undefined without a claim. */
  readonly held?: HeldBudgets | undefined
  /**
   * Ends the request: records the outcome and returns units that were not charged. `spent` is what its budgets lose;
   * undefined if that is unknown: then they lose everything that the request holds.
   */
  settle(outcome: RequestOutcome, delivery: DeliveryState, spent?: Amounts): void
}

/** What an admitted request holds of budgets until it ends (contract 46.3). */
export interface HeldBudgets {
  /** The output limit that the budgets can pay for. */
  readonly outputTokens: number
  /**
   * Takes more, for one more upstream call. Resolves to false, with nothing taken, if the budgets do not allow it; otherwise
   * what was taken is on disk. Rejects if it could not be recorded.
   */
  more(amounts: Amounts): Promise<boolean>
}

/** What an attempt calls: a backend, or anything else that answers like one. */
export interface CallTarget {
  /** Names the target in records. */
  readonly id: string
  /** @see Backend.owner */
  readonly owner?: string | undefined
  /** The deadlines that the attempt enforces. If absent, whatever is called must enforce its own. */
  readonly timeouts?: BackendTimeouts
  /** What its provider charges; absent if that is unknown. */
  readonly price?: ModelPrice | undefined
  /** Absent if it never reports usage after its terminal event. */
  readonly dialect?: Pick<Dialect, 'streamUsage'>
  /**
   * Opens one call. Never throws: the listener gets everything, with exactly one `onError` or `onEnd` as the last
   * call.
   */
  call(request: UpstreamRequest, listener: UpstreamListener): UpstreamCall
}

/** One provider, one model, one credential: the unit of attempts, circuit breakers, and reporting (contract 1.2). */
export interface Backend extends CallTarget, BackendFacts {
  /** Unique among all accounts' backends; returned as `X-Svc-Router-Upstream`. */
  readonly id: string
  /** Names what fails together with it, usually the provider. */
  readonly failureDomain: string
  readonly format: FormatId
  readonly model: string
  /** Whether it only simulates a model; every answer's headers say so. */
  readonly simulated: boolean
  /** The account that owns this upstream; absent for the operator's. Only the owner can read its error messages (contract 21.11). */
  readonly owner?: string | undefined
  /** Whether it uses the operator's credential on behalf of accounts with managed access. */
  readonly isManaged?: boolean | undefined
  /**
   * Identifies who encrypts reasoning there: equal for two backends only if each can read what the other encrypted. A
   * digest of the endpoint and its credential; callers may see it.
   */
  readonly issuer: string
  readonly timeouts: BackendTimeouts
  /** How this endpoint deviates from the plain format. */
  readonly dialect: Dialect
  /**
   * The same backend at its endpoints for other formats, with the same id, and so with one circuit breaker and one
   * limit. A request goes to an endpoint that can express it, preferably in the caller's own format. Absent if it has
   * one endpoint.
   */
  readonly otherEndpoints?: readonly Backend[]
}

/**
 * Milliseconds (contract 9). `headersMs` and `firstContentMs` apply to streams: a backend without headers for that
 * long is abandoned if another one can be tried. A whole answer must be complete within `wholeAnswerMs`.
 */
export interface BackendTimeouts {
  readonly connectMs: number
  readonly headersMs: number
  readonly firstContentMs: number
  readonly wholeAnswerMs: number
  readonly idleMs: number
  readonly totalMs: number
}

export interface UpstreamRequest {
  /** The JSON body, UTF-8. */
  readonly body: Uint8Array | string
  readonly stream: boolean
  /** Our request id. Providers get the matching UUID (`uuidOf`), because some reject any other `X-Request-Id`. */
  readonly requestId: string
  /** Headers of this request alone: name, value, … */
  readonly headers?: readonly string[] | undefined
}

export interface UpstreamListener {
  /** Whether the request may still be sent, now that it has a connection. If not, the call fails with `not_sent`. */
  mayStillSend?(): boolean | Promise<boolean>
  /** Status and the headers that are used. Called once, before any data. */
  onHead(head: UpstreamHead): void
  /** The body bytes of one read from the connection. Valid only until this returns: copy what is stored. */
  onData(chunk: Buffer): void
  onEnd(): void
  /** Connection error: `unreachable`, `reset`, or `timeout` (connecting). */
  onError(error: UpstreamError): void
}

export interface UpstreamHead {
  readonly status: number
  readonly contentType: string
  /** `Retry-After` in milliseconds from now, not yet clamped. */
  readonly retryAfterMs: number | undefined
  /** The provider's own request id, at most 128 printable characters. */
  readonly requestId: string | undefined
}

export interface UpstreamCall {
  /** Whether the provider may have got any of the request; absent if that is unknown. */
  readonly isSent?: boolean
  /** Whether the answer has ended and the whole request was flushed, so its body may be freed; absent if unknown. */
  readonly isFlushed?: boolean
  /** Stops reading, which slows the provider down (contract 9.12). */
  pause(): void
  resume(): void
  /** Aborts the call and closes its connection. The listener is not called afterwards. */
  abort(): void
}

/** Which backends may serve an account, in the configured order. */
export interface Backends {
  forProfile(profileId: string, accountId: string): readonly Backend[] | Promise<readonly Backend[]>
  /** Whether a backend returned by `forProfile` still serves an account, with the same credential. */
  stillServes(backend: Backend, accountId: string): boolean | Promise<boolean>
}

/** Whether the operator's credentials may serve accounts (contract 23.3). Checked where backends are chosen. */
export interface ManagedAccess {
  /** For a provider, by its name in the configuration. Cheap: reads nothing. */
  isOn(provider: string): boolean
}

/** Where an answer goes. The gateway writes; the sink never blocks and never throws. */
export interface AnswerSink {
  /** Sends status and headers. Called once, and only when the first bytes follow or a keep-alive is due. */
  open(head: AnswerHead): void
  /** Returns false if the reader is slow: wait for `onDrain`. */
  write(bytes: string | Uint8Array, encoding?: 'latin1' | 'utf8'): boolean
  /** Ends the answer, with the last bytes if any. */
  end(bytes?: string | Uint8Array, encoding?: 'latin1' | 'utf8'): void
  /** Buffers everything from here on, so that `release` has nothing left to prepare. */
  hold(): void
  /** Sends the buffered bytes with a single system call. */
  release(): void
  /** Discards the buffered bytes and closes the connection. */
  drop(): void
  /** Called when the reader has caught up. */
  onDrain(run: () => void): void
  /** Called once if the client disconnects before the end, or with the error if the answer cannot be stored. */
  onDisconnect(run: (failure?: ServiceError) => void): void
  /**
   * Resolves when everything written so far is stored for retries; absent if nothing is. Awaited before the first
   * content is marked as delivered. @throws ServiceError if it cannot be stored: no byte may be sent then
   */
  stored?(): Promise<void>
}

export interface AnswerHead {
  readonly stream: boolean
  /** The backend that answered; undefined if a keep-alive had to be sent before any did. */
  readonly upstream: string | undefined
  /** The model requested from the backend (contract 2.34); undefined if `upstream` is, and for a fused answer. */
  readonly model?: string | undefined
  readonly simulated: boolean
  readonly retryCount: number
  readonly signals: UsageSignals
  /** What it cost in US dollars, if its profile reports that; undefined also if it is unknown (contract 42.11). */
  readonly costUsd?: string | undefined
  /** The output limit of its calls, if budgets set it (contract 46.13). */
  readonly maxOutputTokens?: number | undefined
  /** Whether another request produced it. */
  readonly isReplayed?: true
}

/** Counts a request's memory against its account's share (contract 29.2). */
export interface HeldBytes {
  /** @throws ServiceError `server_busy` if the account's share is used up */
  grow(bytes: number): void
}

/** A parsed request and its metadata. */
export interface ModelRequest {
  readonly id: string
  readonly format: ClientFormatId
  /** The body as received, the positions of its top-level members, and the parsed body. */
  readonly bytes: Buffer
  readonly members: readonly JsonMember[]
  readonly body: JsonObject
  /** The client's own limit on the whole request, milliseconds, if it sent one (`X-Stainless-Timeout`). */
  readonly timeoutMs: number | undefined
  /** Whether the client has sent the request before and retries it (`X-Stainless-Retry-Count`). */
  readonly isRetry?: boolean | undefined
  /** Headers to forward with the body to backends of the same format: name, value, … */
  readonly passedHeaders?: readonly string[] | undefined
  /** The session that the client names in a header, at most 256 characters. */
  readonly statedSession?: string | undefined
  /** The `User-Agent` of the client, unchecked. */
  readonly userAgent?: string | undefined
  /** The `traceparent` header of the client, unchecked. */
  readonly traceparent?: string | undefined
  /** Its cost before admission; absent for the service's own requests. */
  readonly work?: RequestWork | undefined
  /** Memory used by whole answers to it until it ends; absent for the service's own requests. */
  held?: HeldBytes | undefined
  /** How many fusions of other routers it is already nested in; 0 if absent. */
  readonly fusionDepth?: number | undefined
  /** True for the service's own question about a conversation, which is not a user's turn: one model answers it. */
  readonly isOwnQuestion?: true
  /** Absent for the service's own requests. */
  readonly cache?: CacheContext | undefined
  /** Called once the request is admitted. */
  readonly onAdmitted?: ((context: AnswerContext) => void) | undefined
  /** Whether its response runs in the background. */
  readonly isBackground?: boolean | undefined
  /** The answer that it continues, if `input` already includes that answer and the body no longer names it. */
  readonly previousResponseId?: string | undefined
}

/** A request that the gateway has allowed. */
export interface AllowedRequest extends ModelRequest {
  /** Checked before each call that the request causes. */
  readonly grant: CallGrant
  /** Undefined if no budget counts it. */
  readonly spending?: CallSpending | undefined
  /** Headers that the service adds to each call, whatever the backend's format: name, value, … */
  readonly addedHeaders?: readonly string[] | undefined
  /** Undefined if tracing is off. */
  readonly trace?: RequestTrace | undefined
}

/** What the upstream calls of a request with budgets may cost. */
export interface CallSpending {
  /** The output limit of each call, in tokens. */
  readonly outputTokens: number
  /** The same, if budgets set that limit rather than the request. */
  readonly limitOfBudgets: number | undefined
  /** A call that was granted has ended, answered or with an error. */
  ended(bill: CallBill, error: unknown): void
  /** Why a request has no backend left, if its budgets still cannot pay for a call that they refused. */
  refusal(attempts: readonly Attempt[]): Promise<ServiceError | undefined> | undefined
}

/** Observes admitted requests, for figures and metrics. Its methods must not throw. */
export interface RequestObserver {
  /** A request ended, and this is what its record says. */
  ended(opening: RequestOpening, outcome: RequestOutcome): void
}

/** Traces admitted requests. Its methods, and those of what they return, must not throw. */
export interface RequestTracer {
  /** `traceparent` is the header that the client sent, unchecked. */
  begin(opening: RequestOpening, traceparent: string | undefined): RequestTrace
}

/** The trace of one request: one span for it, and one for each attempt. */
export interface RequestTrace {
  attempt(backend: Backend): AttemptTrace
  /** The request ended; attempts that are still open end with it. */
  ended(outcome: RequestOutcome): void
}

export interface AttemptTrace {
  /** The header that continues the trace at the provider; undefined if it is not told of the trace. */
  readonly traceparent: string | undefined
  /** What the record says of the attempt. `isOpen`: it has begun to answer, and ends with the request. */
  ended(record: Attempt, isOpen?: boolean): void
}

/** Receives the progress of an attempt, for what is known of its backend (contract 7.21, 8). */
export interface AttemptObserver {
  /** The backend has begun to answer: the headers of a success are there. */
  sawAnswer(): void
  /** The first content of a stream, or all of a whole answer, has arrived. Later calls are ignored. */
  sawContent(): void
  /** Another backend has answered the same request first: how long there was no content is measured. */
  lost(): void
  /** The attempt is over: complete, or with what ended it, before its content or after. Later calls are ignored. */
  ended(error?: Error): void
}
