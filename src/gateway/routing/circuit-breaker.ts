import type { OpenReason } from '../../domain/backend-state.ts'
import type { UpstreamError } from '../../domain/upstream.ts'
import { OutcomeWindow } from './outcome-window.ts'

/**
 * A breaker opens if more than half of the outcomes in its window are failures, and at least this many (contract
 * 8.2).
 */
const failuresToOpen = 5
/**
 * After it closed on the first sign of an answer, and until an answer is complete, this many failures reopen it
 * (contract 8.8).
 */
const failuresToReopen = 2
const rateToOpen = 0.5
/** Above this error rate a backend is troubled, and retries that go to it need a budget. */
const rateOfTrouble = 0.2

/**
 * How long it stays open after failures: this share of its downtime so far, within these bounds, with 20 % jitter.
 * After an outage of 60 s the next probe is at most 18 s away; after a long one, 30 s (contract 8.5).
 */
const shareOfDowntime = 0.25
const shortestOpenMs = 1_000
const longestOpenMs = 25_000
const jitter = 0.2
/** A slow backend has calls that wait: they are its probes for this long (contract 8.11). */
const shortestSlowMs = 10_000

/**
 * After it closed, calls that wait for content are limited for this long: to two at first, and to twice as many after
 * each step (contract 8.12).
 */
const recoveryMs = 10_000
const recoveryStepMs = 2_000

/** For a 429 without `Retry-After`. */
const defaultRetryAfterMs = 5_000
/**
 * Bounds for an upstream's `Retry-After`: callers are told to wait at most 60 s, and the backend is tried again by
 * then (contract 8.6).
 */
const shortestRetryAfterMs = 1_000
const longestRetryAfterMs = 60_000
/** How long it stays open after rejected credentials if another backend can answer (contract 7.17). */
const rejectedCredentialsMs = 25_000
/**
 * Minimum interval between attempts with rejected credentials if no other backend is left: providers ban clients for
 * more.
 */
const betweenRejectedMs = 5_000
/**
 * How long one probe blocks other probes. After that another one may start, whatever became of the first (contract
 * 8.7).
 */
const probeLeaseMs = 5_000

/** `half_open`: the open interval has ended, and one probe at a time is allowed. */
export type BreakerState = 'closed' | 'open' | 'half_open'

/** A breaker's view of one attempt. Attempts that started before the last state change are ignored (contract 8.9). */
export interface Ticket {
  epoch: number
  /** Whether it counts toward the limit of a recovering backend. */
  isLimited: boolean
}

export interface CircuitBreakerOptions {
  /** Between 0 and 1; adds jitter to open intervals. */
  readonly random: () => number
  /** Called when the breaker first opens, and when a complete answer proves that the outage is over. */
  readonly onChange: (change: 'opened' | 'recovered', reason: OpenReason, downMs: number) => void
}

/** The circuit breaker of one backend (contract 8). All times are milliseconds of one monotonic clock. */
export class CircuitBreaker {
  readonly #options: CircuitBreakerOptions
  readonly #window = new OutcomeWindow()
  #epoch = 0
  /** Why it is open or half-open; undefined while closed. */
  #reason: OpenReason | undefined
  #untilMs = 0
  #openedMs = 0
  /** When it first opened; cleared by the next complete answer. */
  #downSinceMs: number | undefined
  #downReason: OpenReason = 'failing'
  #failuresInARow = 0
  #probe: Ticket | undefined
  #probeUntilMs = 0
  /** When it closed; cleared when the recovery is over. */
  #closedMs: number | undefined
  /** Calls without content that were begun during the recovery. */
  #limited = 0

  constructor(options: CircuitBreakerOptions) {
    this.#options = options
  }

  get reason(): OpenReason | undefined {
    return this.#reason
  }

  /** Why it is open, or was before it recovered. */
  get lastReason(): OpenReason {
    return this.#reason ?? this.#downReason
  }

  /** Whether it lets every request through. */
  get isPassable(): boolean {
    return this.#reason === undefined && this.#closedMs === undefined
  }

  /** The accounts with outcomes in its window. */
  accounts(nowMs: number): number {
    return this.#window.accounts(nowMs)
  }

  get untilMs(): number {
    return this.#untilMs
  }

  get downSinceMs(): number | undefined {
    return this.#downSinceMs
  }

  state(nowMs: number): BreakerState {
    if (this.#reason === undefined) return 'closed'
    return nowMs < this.#untilMs ? 'open' : 'half_open'
  }

  /** Whether a request may go there, as to any healthy backend or as the probe. */
  isUsable(nowMs: number): boolean {
    if (this.#reason === undefined) return !this.#isRecovering(nowMs) || this.#limited < this.#limit(nowMs)
    return nowMs >= this.#untilMs && !this.#isProbeOut(nowMs)
  }

  /**
   * Whether a request without a usable backend may try it: not while the provider's `Retry-After` lasts, and only
   * occasionally with rejected credentials.
   */
  isLastResort(nowMs: number): boolean {
    const mayAnswer = this.#reason === undefined || this.#reason === 'failing' || this.#reason === 'slow'
    if (mayAnswer || nowMs >= this.#untilMs) return true
    return this.#mayRetryCredentials(nowMs)
  }

  /** Whether it fails often enough that retries there would multiply the load (contract 7.8). */
  isTroubled(nowMs: number): boolean {
    if (this.#reason !== undefined) return true
    const { failures, rate } = this.#window.read(nowMs)
    return failures >= failuresToOpen && rate > rateOfTrouble
  }

  /** Failures since the last complete answer. */
  get failuresInARow(): number {
    return this.#failuresInARow
  }

  /** Starts an attempt. It becomes the probe if the breaker is half-open and no probe is running. */
  begin(nowMs: number): Ticket {
    const ticket: Ticket = { epoch: this.#epoch, isLimited: false }
    if (this.#reason === undefined) {
      if (this.#isRecovering(nowMs)) this.#limitCall(ticket)
    } else if (this.isUsable(nowMs) || this.#mayRetryCredentials(nowMs)) {
      this.#probe = ticket
      this.#probeUntilMs = nowMs + probeLeaseMs
    }
    return ticket
  }

  /** The attempt ended without a verdict on the backend. */
  release(ticket: Ticket): void {
    if (this.#probe === ticket) this.#probe = undefined
    this.#endLimit(ticket)
  }

  /** The first sign of an answer: closes the breaker, unless answers begin and their content is slow. */
  sawAnswer(ticket: Ticket, nowMs: number): void {
    if (this.#reason !== 'slow') this.#close(ticket, nowMs)
  }

  /** The first content has arrived: if in time, the backend is not slow. */
  sawContent(ticket: Ticket, isLate: boolean, nowMs: number): void {
    this.#endLimit(ticket)
    if (this.#reason !== 'slow') return
    if (ticket.epoch !== this.#epoch) {
      // A call that had waited before is answered: the backend does not hang.
      this.#untilMs = Math.min(this.#untilMs, nowMs)
    } else if (isLate) this.slow(nowMs)
    else this.#close(ticket, nowMs)
  }

  /** The answer is complete. */
  succeeded(ticket: Ticket, account: string, nowMs: number): void {
    this.#close(ticket, nowMs)
    this.release(ticket)
    if (ticket.epoch !== this.#epoch) return
    this.#failuresInARow = 0
    this.#window.record(account, false, nowMs)
    if (this.#downSinceMs === undefined) return
    this.#options.onChange('recovered', this.#downReason, nowMs - this.#downSinceMs)
    this.#downSinceMs = undefined
  }

  /** The attempt failed, before or after its first content, and the backend is to blame (contract 8.4). */
  failed(ticket: Ticket, account: string, error: UpstreamError, nowMs: number): void {
    this.release(ticket)
    this.#failuresInARow += 1
    if (ticket.epoch !== this.#epoch) return
    const { outcome, retryAfterMs = defaultRetryAfterMs } = error
    if (namesTime(error))
      return this.#open('rate', Math.min(longestRetryAfterMs, Math.max(shortestRetryAfterMs, retryAfterMs)), nowMs)
    this.#window.record(account, true, nowMs)
    const isRejected = outcome === 'rejected_credentials'
    if (isRejected && !mayFollowContent(error)) return this.#open('credentials', rejectedCredentialsMs, nowMs)
    const state = this.state(nowMs)
    if (state === 'half_open' || (state === 'closed' && this.#failsTooOften(nowMs)))
      this.#open(isRejected ? 'credentials' : 'failing', this.#openIntervalMs(nowMs), nowMs)
  }

  /** Its calls have waited too long for content, and no later one has been answered in time (contract 8.11). */
  slow(nowMs: number): void {
    this.#open('slow', this.#openIntervalMs(nowMs, shortestSlowMs), nowMs)
  }

  #close(ticket: Ticket, nowMs: number): void {
    if (ticket.epoch !== this.#epoch || this.#reason === undefined) return
    const wasOverloaded = this.#reason === 'failing' || this.#reason === 'slow'
    this.#reason = undefined
    this.#probe = undefined
    this.#epoch += 1
    ticket.epoch = this.#epoch
    if (!wasOverloaded) return
    this.#closedMs = nowMs
    this.#limited = 0
    this.#limitCall(ticket)
  }

  #isRecovering(nowMs: number): boolean {
    if (this.#closedMs !== undefined && nowMs >= this.#closedMs + recoveryMs) this.#closedMs = undefined
    return this.#closedMs !== undefined
  }

  /** How many calls may wait for content at this moment of the recovery. */
  #limit(nowMs: number): number {
    return 2 ** (1 + (nowMs - this.#closedMs!) / recoveryStepMs)
  }

  #limitCall(ticket: Ticket): void {
    ticket.isLimited = true
    this.#limited += 1
  }

  #endLimit(ticket: Ticket): void {
    if (!ticket.isLimited) return
    ticket.isLimited = false
    if (ticket.epoch === this.#epoch) this.#limited -= 1
  }

  #failsTooOften(nowMs: number): boolean {
    const { failures, rate } = this.#window.read(nowMs)
    const least = this.#downSinceMs === undefined ? failuresToOpen : failuresToReopen
    return failures >= least && rate > rateToOpen
  }

  #openIntervalMs(nowMs: number, shortestMs = shortestOpenMs): number {
    const downMs = this.#downSinceMs === undefined ? 0 : nowMs - this.#downSinceMs
    const intervalMs = Math.min(longestOpenMs, Math.max(shortestMs, downMs * shareOfDowntime))
    return intervalMs * (1 - jitter + 2 * jitter * this.#options.random())
  }

  #open(reason: OpenReason, forMs: number, nowMs: number): void {
    const untilMs = nowMs + forMs
    // Of two reasons, the one that lasts longer applies.
    if (this.#reason !== undefined && this.#untilMs > untilMs) return
    this.#reason = reason
    this.#untilMs = untilMs
    this.#openedMs = nowMs
    this.#probe = undefined
    this.#closedMs = undefined
    this.#limited = 0
    this.#epoch += 1
    this.#window.clear()
    if (this.#downSinceMs !== undefined) return
    this.#downSinceMs = nowMs
    this.#downReason = reason
    this.#options.onChange('opened', reason, 0)
  }

  #mayRetryCredentials(nowMs: number): boolean {
    return this.#reason === 'credentials' && nowMs >= this.#openedMs + betweenRejectedMs && !this.#isProbeOut(nowMs)
  }

  #isProbeOut(nowMs: number): boolean {
    return this.#probe !== undefined && nowMs < this.#probeUntilMs
  }
}

/**
 * Whether the error applies to the whole backend and states or implies when to retry: too many requests, or overload.
 */
function namesTime({ outcome, status, retryAfterMs }: UpstreamError): boolean {
  return outcome === 'rate_limited' || (retryAfterMs !== undefined && (status === 503 || status === 529))
}

/**
 * Some providers also return 402 and 403 for a flagged prompt, or for one that costs more than the remaining credit;
 * other requests still succeed.
 */
function mayFollowContent({ status }: UpstreamError): boolean {
  return status === 402 || status === 403
}
