import type { OpenReason } from '../../domain/backend-condition.ts'
import type { UpstreamError } from '../../domain/upstream.ts'
import { OutcomeWindow } from './outcome-window.ts'

/** A breaker opens when more than half of the outcomes in its window are failures, and at least this many (contract 8.2). */
const failuresToOpen = 5
/** After it closed on the first sign of an answer, until one answer is complete: fewer failures open it again (contract 8.8). */
const failuresToReopen = 2
const rateToOpen = 0.5
/** Above this error rate a backend is in trouble, and retries that go to it need a budget. */
const rateOfTrouble = 0.2

/**
 * How long it stays open for failures: this share of the time it has been down, within these bounds, give or take a
 * fifth. After an outage of 60 s a probe is at most 18 s away; after a long one 30 s (contract 8.5).
 */
const shareOfDowntime = 0.25
const shortestOpenMs = 1_000
const longestOpenMs = 25_000
const jitter = 0.2

/** For a 429 without `Retry-After`. */
const defaultRetryAfterMs = 5_000
/** An upstream's `Retry-After` is taken within these bounds: callers are told at most 60 s, and are asked for then (contract 8.6). */
const shortestRetryAfterMs = 1_000
const longestRetryAfterMs = 60_000
/** How long it stays open for rejected credentials where another backend can answer (contract 7.17). */
const rejectedCredentialsMs = 25_000
/** Between two attempts with them where no other backend is left: more of them are what providers ban clients for. */
const betweenRejectedMs = 5_000
/** How long one probe keeps other probes away. Later another may go, whatever became of the first (contract 8.7). */
const probeLeaseMs = 5_000

/** `half_open`: the open interval has ended, and one probe at a time is let through. */
export type BreakerState = 'closed' | 'open' | 'half_open'

/** One attempt as its breaker sees it. Attempts that began before the last change of state say nothing about it. */
export interface Ticket {
  epoch: number
}

export interface CircuitBreakerOptions {
  /** From 0 to 1; spreads the ends of open intervals. */
  readonly random: () => number
  /** Told when it opens first, and when a complete answer proves that the outage is over. */
  readonly onChange: (change: 'opened' | 'recovered', reason: OpenReason, downMs: number) => void
}

/** The circuit breaker of one backend (contract 8). All times are readings of one monotonic clock, milliseconds. */
export class CircuitBreaker {
  readonly #options: CircuitBreakerOptions
  readonly #window = new OutcomeWindow()
  #epoch = 0
  /** Why it is open or half-open; undefined while closed. */
  #reason: OpenReason | undefined
  #untilMs = 0
  #openedMs = 0
  /** When it opened first, until an answer is complete again. */
  #downSinceMs: number | undefined
  #downReason: OpenReason = 'failing'
  #failuresInARow = 0
  #probe: Ticket | undefined
  #probeUntilMs = 0

  constructor(options: CircuitBreakerOptions) {
    this.#options = options
  }

  get reason(): OpenReason | undefined {
    return this.#reason
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

  /** Whether a request may go there as to any healthy backend, or as the probe. */
  isUsable(nowMs: number): boolean {
    if (this.#reason === undefined) return true
    return nowMs >= this.#untilMs && !this.#isProbeOut(nowMs)
  }

  /** Whether a request that has no usable backend may ask it: not while the provider named a time, and rejected credentials only now and then. */
  isLastResort(nowMs: number): boolean {
    if (this.#reason === 'failing' || nowMs >= this.#untilMs) return true
    return this.#mayRetryCredentials(nowMs)
  }

  /** Whether it fails often enough for retries that go there to multiply the load (contract 7.8). */
  isTroubled(nowMs: number): boolean {
    if (this.#reason !== undefined) return true
    const { failures, rate } = this.#window.read(nowMs)
    return failures >= failuresToOpen && rate > rateOfTrouble
  }

  /** Failures since the last complete answer. */
  get failuresInARow(): number {
    return this.#failuresInARow
  }

  /** An attempt begins. Where one probe at a time is let through and none is out, it is the probe. */
  begin(nowMs: number): Ticket {
    const ticket = { epoch: this.#epoch }
    if (this.#reason !== undefined && (this.isUsable(nowMs) || this.#mayRetryCredentials(nowMs))) {
      this.#probe = ticket
      this.#probeUntilMs = nowMs + probeLeaseMs
    }
    return ticket
  }

  /** The attempt ended without saying anything about the backend. */
  release(ticket: Ticket): void {
    if (this.#probe === ticket) this.#probe = undefined
  }

  /** The first sign of an answer: closes it. */
  sawAnswer(ticket: Ticket): void {
    if (ticket.epoch !== this.#epoch || this.#reason === undefined) return
    this.#reason = undefined
    this.#probe = undefined
    this.#epoch += 1
    ticket.epoch = this.#epoch
  }

  /** The answer is complete. */
  succeeded(ticket: Ticket, account: string, nowMs: number): void {
    this.sawAnswer(ticket)
    this.release(ticket)
    if (ticket.epoch !== this.#epoch) return
    this.#failuresInARow = 0
    this.#window.record(account, false, nowMs)
    if (this.#downSinceMs === undefined) return
    this.#options.onChange('recovered', this.#downReason, nowMs - this.#downSinceMs)
    this.#downSinceMs = undefined
  }

  /** The attempt failed, before its first content or after, and the backend is to blame. */
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

  #failsTooOften(nowMs: number): boolean {
    const { failures, rate } = this.#window.read(nowMs)
    const least = this.#downSinceMs === undefined ? failuresToOpen : failuresToReopen
    return failures >= least && rate > rateToOpen
  }

  #openIntervalMs(nowMs: number): number {
    const downMs = this.#downSinceMs === undefined ? 0 : nowMs - this.#downSinceMs
    const intervalMs = Math.min(longestOpenMs, Math.max(shortestOpenMs, downMs * shareOfDowntime))
    return intervalMs * (1 - jitter + 2 * jitter * this.#options.random())
  }

  #open(reason: OpenReason, forMs: number, nowMs: number): void {
    const untilMs = nowMs + forMs
    // Of two reasons the one that lasts longer stands.
    if (this.#reason !== undefined && this.#untilMs > untilMs) return
    this.#reason = reason
    this.#untilMs = untilMs
    this.#openedMs = nowMs
    this.#probe = undefined
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

/** Whether the error speaks for the whole backend and says, or implies, when to come back: too many requests, or overload. */
function namesTime({ outcome, status, retryAfterMs }: UpstreamError): boolean {
  return outcome === 'rate_limited' || (retryAfterMs !== undefined && (status === 503 || status === 529))
}

/** Vendors also answer 402 and 403 to a prompt that is flagged, or one that costs more than is left: others are served. */
function mayFollowContent({ status }: UpstreamError): boolean {
  return status === 402 || status === 403
}
