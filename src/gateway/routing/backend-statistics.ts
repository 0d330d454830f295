import { UpstreamError } from '../../domain/upstream.ts'
import type { Clock } from '../../runtime/clock.ts'
import { FairQueue, type Turn } from '../../runtime/fair-queue.ts'
import { FairShare } from '../../runtime/fair-share.ts'
import type { AttemptObserver } from '../ports.ts'
import { ByBackend, type BackendKey } from './by-backend.ts'
import { ConcurrencyLimit } from './concurrency-limit.ts'
import { ErrorRate } from './error-rate.ts'
import { LatencyEstimate, WaitingAttempt } from './latency-estimate.ts'
import { priorMsOf, type PromptKind } from './prompt-kind.ts'

/** Requests that wait for backends with as many open calls as they accept, in total. */
const maxWaiting = 1_024
/** The share of requests that can be sent to a backend that is avoided, to notice its recovery. */
const trialShare = 0.01

type MonotonicClock = Pick<Clock, 'monotonicMs'>

/** What is measured of one attempt. */
export interface MeasuredCall {
  readonly backend: BackendKey
  readonly accountId: string
  readonly kind: PromptKind
  /** Whether it runs beside another one, as a hedge. */
  readonly isSecond?: boolean
}

/** The measurements of one backend at one moment. */
export interface BackendReading {
  /** The expected time to first content, milliseconds; undefined if none was measured for this kind of prompt. */
  readonly firstContentMs: number | undefined
  readonly inFlight: number
  readonly limit: number
  /** Between 0 and 1. */
  readonly errorRate: number
  /** Failures since the last success, as far as several accounts saw them. */
  readonly failuresInARow: number
  /** When the last call began, monotonic milliseconds; undefined if there was none. */
  readonly calledMs: number | undefined
}

/**
 * What this process measures of backends: time to first content, open calls, error rate, and a learned limit of
 * concurrent calls (contract 7.21-7.23). In memory: every process sees a fair sample of the same backends, and a load
 * that it does not cause shows as latency.
 */
export class BackendStatistics {
  readonly #clock: MonotonicClock
  readonly #byBackend = new ByBackend<Measurements>()
  readonly #places = new FairShare(maxWaiting)
  #trials = 0

  constructor(clock: MonotonicClock) {
    this.#clock = clock
  }

  /** Starts measuring an attempt; what it reports also goes to `next`. */
  begin(call: MeasuredCall, next: AttemptObserver): AttemptObserver {
    let measurements = this.#byBackend.getForCall(call.backend)
    if (measurements === undefined) this.#byBackend.add(call.backend, (measurements = noMeasurements()))
    return new MeasuredAttempt(this.#clock, measurements, call, next)
  }

  read(backendId: string, kind: PromptKind, nowMs: number): BackendReading {
    const known = this.#byBackend.get(backendId)
    if (known === undefined) return unknownBackend
    const latency = known.latencies[kind]
    return {
      firstContentMs: latency?.read(nowMs, priorMsOf(kind)),
      inFlight: known.inFlight,
      limit: known.limit.assumed(nowMs),
      errorRate: known.errors.read(nowMs),
      failuresInARow: known.errors.inARow,
      calledMs: known.calledMs,
    }
  }

  /** After this time an answer to the account is slow, milliseconds; undefined if too little is known. */
  slowMs({ backend, accountId, kind }: MeasuredCall): number | undefined {
    return this.#byBackend.get(backend.id)?.latencies[kind]?.slowMs(accountId)
  }

  /** Counts a choice. Returns whether it may be a trial of a backend that is avoided. */
  mayTry(): boolean {
    this.#trials = Math.min(1, this.#trials + trialShare)
    return this.#trials === 1
  }

  /** The choice became a trial. */
  tried(): void {
    this.#trials = 0
  }

  /** The share of the calls that the provider is known to accept that are open; 0 if nothing is known. */
  loadOf(backendId: string): number {
    const known = this.#byBackend.get(backendId)
    if (known === undefined || !known.limit.wasLearned) return 0
    const limit = known.limit.learned(this.#clock.monotonicMs())
    return limit === undefined ? 0 : known.inFlight / limit
  }

  /** Whether as many calls are open as the provider is known to accept. */
  isFull(backendId: string): boolean {
    return this.loadOf(backendId) >= 1
  }

  /**
   * Takes a place among the requests that wait for room at a full backend, in turns among accounts (contract 7.35);
   * undefined if the account has none left.
   */
  waitForRoom(backendId: string, account: string, longestMs: number, clock: Clock): Turn | undefined {
    const known = this.#byBackend.get(backendId)
    if (known === undefined) return undefined
    known.queue ??= new FairQueue(clock, this.#places)
    return known.queue.wait(account, longestMs)
  }
}

interface Measurements {
  inFlight: number
  /** When the last call began. */
  calledMs: number
  readonly limit: ConcurrencyLimit
  readonly errors: ErrorRate
  /** By prompt kind; sparse. */
  readonly latencies: LatencyEstimate[]
  /** Created when the first request waits. */
  queue: FairQueue | undefined
}

function noMeasurements(): Measurements {
  return {
    inFlight: 0,
    calledMs: 0,
    limit: new ConcurrencyLimit(),
    errors: new ErrorRate(),
    latencies: [],
    queue: undefined,
  }
}

const unknownBackend: BackendReading = {
  firstContentMs: undefined,
  inFlight: 0,
  limit: new ConcurrencyLimit().assumed(0),
  errorRate: new ErrorRate().read(0),
  failuresInARow: 0,
  calledMs: undefined,
}

/** Measures one attempt. Only what shows something of the backend counts: never an abort, or an error of the content. */
class MeasuredAttempt extends WaitingAttempt implements AttemptObserver {
  readonly #clock: MonotonicClock
  readonly #measurements: Measurements
  readonly #call: MeasuredCall
  readonly #next: AttemptObserver
  readonly #latency: LatencyEstimate
  readonly account: string
  readonly startedMs: number
  /** The calls that were open when it began, with it. */
  readonly #openCalls: number
  #isMeasured = false
  #isOver = false

  constructor(clock: MonotonicClock, measurements: Measurements, call: MeasuredCall, next: AttemptObserver) {
    super()
    this.#clock = clock
    this.#measurements = measurements
    this.#call = call
    this.#next = next
    this.startedMs = clock.monotonicMs()
    this.account = call.accountId
    measurements.inFlight += 1
    this.#openCalls = measurements.inFlight
    measurements.calledMs = this.startedMs
    this.#latency = measurements.latencies[call.kind] ??= new LatencyEstimate()
    this.#latency.wait(this)
  }

  sawAnswer(): void {
    this.#next.sawAnswer()
  }

  sawContent(): void {
    this.#next.sawContent()
    this.#measure(false)
  }

  lost(): void {
    this.#next.lost()
    this.#measure(true)
  }

  #measure(isAbandoned: boolean): void {
    if (this.#isMeasured) return
    this.#isMeasured = true
    const { accountId, isSecond = false } = this.#call
    const nowMs = this.#clock.monotonicMs()
    this.#latency.stopWaiting(this)
    this.#latency.record(accountId, nowMs - this.startedMs, nowMs, { isAbandoned, isSecond })
  }

  ended(error?: Error): void {
    this.#next.ended(error)
    if (this.#isOver) return
    this.#isOver = true
    this.#latency.stopWaiting(this)
    const { limit, errors } = this.#measurements
    const { accountId } = this.#call
    const nowMs = this.#clock.monotonicMs()
    if (error === undefined) {
      limit.answered(this.#openCalls, this.startedMs)
      errors.record(accountId, false, this.startedMs, nowMs)
    } else if (error instanceof UpstreamError && error.blames === 'backend') {
      if (error.outcome === 'rate_limited') limit.rejected(this.#measurements.inFlight, this.startedMs, nowMs)
      else errors.record(accountId, true, this.startedMs, nowMs)
    }
    this.#measurements.inFlight -= 1
    this.#letNext(nowMs)
  }

  /** As many waiting requests as there is room for get their turn. */
  #letNext(nowMs: number): void {
    const { queue, limit, inFlight } = this.#measurements
    if (queue === undefined || queue.isEmpty) return
    for (let room = (limit.learned(nowMs) ?? Infinity) - inFlight; room > 0 && queue.next(() => true);) room -= 1
  }
}
