import type { CallGrant } from './call-grant.ts'
import type { Account, StoredKey } from '../domain/accounts.ts'
import type { JsonObject } from '../domain/conversation.ts'
import type { ModelFacts } from '../domain/model-facts.ts'
import type { Plan } from '../domain/plans.ts'
import type { RequestOpening, RequestOutcome } from '../domain/requests.ts'
import type { KeyRate, UsageSignals } from '../domain/usage.ts'
import type { UpstreamError } from '../domain/upstream.ts'
import type { ClientFormatId, Dialect, FormatId } from '../formats/format.ts'
import type { JsonMember } from '../formats/json-scan.ts'
import type { EnforcedLimits } from './enforced-limits.ts'
import type { RequestWork } from './unadmitted-work.ts'

/** Who is asking: made only in `authenticate.ts`. */
export interface Principal {
  readonly accountId: string
  readonly keyId: string
  readonly plan: Plan
  /** Undefined where the key may do all that its account may. */
  readonly limits: EnforcedLimits | undefined
  /** Who that is now, at once where nothing has changed. @throws ServiceError as `Gateway.authenticate` */
  readonly recheck: () => Principal | Promise<Principal>
}

/** A key together with the account that it belongs to. */
export interface KeyEntry {
  readonly key: StoredKey
  readonly account: Account
}

/** The same as it is remembered: with its limits ready to be asked for. */
export interface KnownKey extends KeyEntry {
  readonly limits: EnforcedLimits | undefined
}

/** Keys by digest. A throw means that the store cannot answer, and becomes 503, never 401 (contract 3.8). */
export interface KeyStore {
  /** The entry, or undefined where there is definitely none. */
  find(digest: string): Promise<KeyEntry | undefined>
  /** A number that changes whenever any key, account or upstream changes. Cheap: it is asked four times a second. */
  revision(): Promise<number>
}

/** Decides admissions and keeps the record of every request (contract 6, 35.6). */
export interface Ledger {
  /**
   * Takes one of the minute, of the key's own where it has a limit, and the units of the month, in one decision.
   * @throws ServiceError `rate_limit_exceeded`, `insufficient_quota`; any other error means that nothing can be recorded just now
   */
  admit(opening: RequestOpening, plan: Plan, rate?: KeyRate): Admission | Promise<Admission>
  /** The counters as they stand, taking nothing: the account's, or as a key with a limit of its own sees them. */
  signals(accountId: string, plan: Plan, rate?: KeyRate): UsageSignals | Promise<UsageSignals>
}

/**
 * Whether an answer that is charged still has to leave when it is settled. `due`: `deliver` is called as soon as
 * `durable` has resolved, in the same turn, whether or not the caller is still there; after a crash in between the
 * charge is taken back. `done`: `deliver` was called before. `none`: nothing is delivered; what is charged stays charged.
 */
export type Delivery = 'due' | 'done' | 'none'

/**
 * One admitted request. `settle` is called exactly once, whatever happens. A stream: admit, `durable`, `deliver`, …,
 * `settle`. A whole answer either the same way, or admit, `settle(…, 'due')`, `durable`, `deliver`.
 */
export interface Admission {
  /** The counters as they stand now, this request included. */
  signals(): UsageSignals
  /**
   * Undefined where all that was said of this request is on disk; otherwise resolves when it is. No byte of an answer
   * may leave before (contract 6.12). Rejects where it could not be written, or not within 20 s: nothing may be delivered
   * then, and what was settled as `due` is not charged.
   */
  durable(): Promise<void> | undefined
  /**
   * Says that the first byte of the answer leaves in this very turn of the loop, directly after the call returns.
   * @throws where the mark could not be written or the request is not durable: no byte may leave then
   */
  deliver(): void
  /** Ends the request: the outcome is recorded, units that were not charged are given back. */
  settle(outcome: RequestOutcome, delivery: Delivery): void
}

/** One provider, one model, one credential: what is tried, cooled and reported (contract 1.2). */
export interface Backend extends ModelFacts {
  /** Unique among all accounts' backends; shown as `X-Svc-Router-Upstream`. */
  readonly id: string
  /** What fails together with it, usually the provider. */
  readonly failureDomain: string
  readonly format: FormatId
  readonly model: string
  /** Whether it only pretends to be a model; said in every answer's headers. */
  readonly simulated: boolean
  /** The account whose own upstream it is; absent for the operator's. It alone reads what the backend says (contract 21.11). */
  readonly owner?: string | undefined
  /** Whether it is called with the operator's own credential for accounts with managed access. */
  readonly isManaged?: boolean | undefined
  /**
   * Who seals reasoning there: the same for two backends only where one reads what the other sealed. A digest of the
   * endpoint and its credential, which callers may see.
   */
  readonly issuer: string
  readonly timeouts: BackendTimeouts
  /** What this endpoint wants written differently from the plain format. */
  readonly dialect: Dialect
  /**
   * The same backend at its endpoints for other formats, with the same id: one circuit breaker, one limit. A request goes
   * to the endpoint that can say it, preferably in the caller's own format. Absent where it has one endpoint.
   */
  readonly otherEndpoints?: readonly Backend[]
  /** Opens one call. Never throws: everything is told to the listener, `onError` or `onEnd` exactly once and last. */
  call(request: UpstreamRequest, listener: UpstreamListener): UpstreamCall
}

/**
 * Milliseconds (contract 9). `headersMs` and `firstContentMs` are for streams: one without headers for so long is
 * left where another backend can be asked. A whole answer has `wholeAnswerMs` until its last byte.
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
  /** Our request id. Providers read the UUID that belongs to it (`uuidOf`): some refuse any other `X-Request-Id`. */
  readonly requestId: string
  /** Headers of this request alone: name, value, … */
  readonly headers?: readonly string[] | undefined
}

export interface UpstreamListener {
  /** Status and what we keep of the headers. Called once, before any data. */
  onHead(head: UpstreamHead): void
  /** All that one read of the connection brought of the body. The bytes are there only until this returns: copy what is kept. */
  onData(chunk: Buffer): void
  onEnd(): void
  /** Connection trouble: `unreachable`, `reset` or `timeout` (connecting). */
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
  /** Stops reading, so that the provider is slowed down (contract 9.12). */
  pause(): void
  resume(): void
  /** Gives the call up and closes its connection. Nothing is told to the listener afterwards. */
  abort(): void
}

/** Which backends may serve an account, in the configured order. */
export interface Backends {
  forProfile(profileId: string, accountId: string): readonly Backend[] | Promise<readonly Backend[]>
  /** Whether a backend that `forProfile` gave still serves an account, with the same credential. */
  stillServes(backend: Backend, accountId: string): boolean | Promise<boolean>
}

/** Whether the operator's own credentials may serve accounts (contract 23.3). Asked where backends are chosen. */
export interface ManagedAccess {
  /** For a provider, by its name in the configuration. Cheap: nothing is read for it. */
  isOn(provider: string): boolean
}

/** Where an answer goes. The gateway writes; the sink never blocks and never throws. */
export interface AnswerSink {
  /** Sends status and headers. Called once, and only when the first bytes follow or a keep-alive is due. */
  open(head: AnswerHead): void
  /** Returns false when the reader is slow: wait for `onDrain`. */
  write(bytes: string | Uint8Array, encoding?: 'latin1' | 'utf8'): boolean
  /** Ends the answer, with the last bytes if any. */
  end(bytes?: string | Uint8Array, encoding?: 'latin1' | 'utf8'): void
  /** Gathers everything from here on, so that `release` has nothing left to prepare. */
  hold(): void
  /** Sends what was gathered: nothing but one system call lies between the call and the bytes' leaving. */
  release(): void
  /** Throws away what was gathered, and closes the connection. */
  drop(): void
  /** Called when the reader has caught up. */
  onDrain(run: () => void): void
  /** Called once when the caller leaves before the end. */
  onGone(run: () => void): void
}

export interface AnswerHead {
  readonly stream: boolean
  /** The backend that answered; absent when a keep-alive had to be sent before any did. */
  readonly upstream: string | undefined
  /** The model that its backend was asked for (contract 2.34); absent with `upstream`, and where several had a part. */
  readonly model?: string | undefined
  readonly simulated: boolean
  readonly retryCount: number
  readonly signals: UsageSignals
}

/** Counts what a request holds in memory against its account's share (contract 29.2). */
export interface HeldBytes {
  /** @throws ServiceError `server_busy` where the account has its share */
  grow(bytes: number): void
}

/** What a request brings besides its text. */
export interface ModelRequest {
  readonly id: string
  readonly format: ClientFormatId
  /** The body as it arrived, where its outermost members lie in it, and the same parsed. */
  readonly bytes: Buffer
  readonly members: readonly JsonMember[]
  readonly body: JsonObject
  /** The client's own limit on the whole request, if it told one (`X-Stainless-Timeout`). */
  readonly timeoutMs: number | undefined
  /** Headers that go with the body to backends of the same format: name, value, … */
  readonly passedHeaders?: readonly string[] | undefined
  /** What it costs before it is admitted; absent for requests of our own. */
  readonly work?: RequestWork | undefined
  /** What whole answers to it take until it ends; absent for requests of our own. */
  readonly held?: HeldBytes | undefined
  /** How many fusions it is part of already, somewhere before us; 0 unless said. */
  readonly fusionDepth?: number | undefined
  /** True where it is our own question about a conversation and not a turn of a user's: one model answers it. */
  readonly isOwnQuestion?: true
  /** The answer that it says it goes on from, where `input` tells that already and the body names it no more. */
  readonly previousResponseId?: string | undefined
}

/** A request that the gateway has allowed. */
export interface AllowedRequest extends ModelRequest {
  /** Asked before each call that it causes. */
  readonly grant: CallGrant
}
