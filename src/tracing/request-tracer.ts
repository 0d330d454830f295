import type { RequestOpening, RequestOutcome } from '../domain/requests.ts'
import { brokenBackend } from '../domain/requests.ts'
import type { Attempt } from '../domain/upstream.ts'
import type { AttemptTrace, Backend, RequestTrace, RequestTracer } from '../gateway/ports.ts'
import type { Clock } from '../runtime/clock.ts'
import type { RandomBytes } from '../runtime/random.ts'
import {
  attemptAttributes,
  type Attributes,
  type KnownBackends,
  operationOf,
  outcomeAttributes,
  requestAttributes,
} from './genai-attributes.ts'
import { newSpanId, newTraceId, type ParentContext, readTraceparent, writeTraceparent } from './trace-context.ts'

/** A complete span, ready for export. Times are epoch milliseconds. */
export interface FinishedSpan {
  readonly name: string
  readonly kind: 'server' | 'client'
  readonly traceId: string
  readonly spanId: string
  readonly parent: Pick<ParentContext, 'spanId'> | undefined
  readonly isParentRemote: boolean
  readonly startMs: number
  readonly endMs: number
  readonly hasFailed: boolean
  readonly attributes: Attributes
}

export interface RequestTracerDeps {
  readonly clock: Clock
  readonly random: RandomBytes
  /** The share of requests that are traced although nothing failed. */
  readonly sampleRate: number
  /** Whether a caller's sampled flag decides instead. */
  readonly trustCallers: boolean
  readonly backends: KnownBackends
  readonly exportSpan: (span: FinishedSpan) => void
}

/** Attempts of one request that are traced: a fusion makes at most this many calls. */
const maxAttempts = 64

/**
 * Traces admitted requests (contract 28.14). Spans are built when a request ends, from what its record says: then it is
 * known whether something failed, and a request that is neither sampled nor part of a caller's trace gets no IDs.
 */
export class SamplingTracer implements RequestTracer {
  readonly #deps: RequestTracerDeps
  /** The share of a sample that has accumulated. */
  #due = 0

  constructor(deps: RequestTracerDeps) {
    this.#deps = deps
  }

  begin(opening: RequestOpening, traceparent: string | undefined): RequestTrace {
    const parent = readTraceparent(traceparent)
    const { trustCallers } = this.#deps
    const isSampled = trustCallers && parent !== undefined ? parent.isSampled : this.#isNext()
    return new Trace(this.#deps, opening, parent, isSampled)
  }

  /** Every n-th request, whatever trace ID a caller chose. */
  #isNext(): boolean {
    this.#due += this.#deps.sampleRate
    if (this.#due < 1) return false
    this.#due -= 1
    return true
  }
}

class Trace implements RequestTrace {
  readonly deps: RequestTracerDeps
  readonly isSampled: boolean
  readonly opening: RequestOpening
  #traceId: string | undefined
  readonly #parent: ParentContext | undefined
  readonly #attempts: TracedAttempt[] = []
  readonly #startWallMs: number
  readonly #startMs: number

  constructor(deps: RequestTracerDeps, opening: RequestOpening, parent: ParentContext | undefined, isSampled: boolean) {
    this.deps = deps
    this.opening = opening
    this.isSampled = isSampled
    this.#traceId = parent?.traceId
    this.#parent = parent
    this.#startWallMs = deps.clock.nowMs()
    this.#startMs = deps.clock.monotonicMs()
  }

  /** Whether providers receive `traceparent`: a caller's is always continued. */
  get isPropagated(): boolean {
    return this.isSampled || this.#parent !== undefined
  }

  get traceId(): string {
    return (this.#traceId ??= newTraceId(this.deps.random))
  }

  attempt(backend: Backend): AttemptTrace {
    const attempt = new TracedAttempt(this, backend)
    if (this.#attempts.length < maxAttempts) this.#attempts.push(attempt)
    return attempt
  }

  ended(outcome: RequestOutcome): void {
    const { errorCode } = outcome
    const hasFailed = errorCode !== undefined && errorCode !== 'client_closed'
    const isNotable = hasFailed || this.#attempts.some(({ hasFailed: failed }) => failed)
    if (!this.isSampled && !isNotable) return
    const { exportSpan, random } = this.deps
    const { opening, traceId } = this
    const spanId = newSpanId(random)
    const endMs = this.wallNow()
    exportSpan({
      name: `${operationOf(opening.format)} ${opening.profile}`,
      kind: 'server',
      traceId,
      spanId,
      parent: this.#parent,
      isParentRemote: true,
      startMs: this.#startWallMs,
      endMs,
      hasFailed,
      attributes: { ...requestAttributes(opening), ...outcomeAttributes(opening, outcome) },
    })
    const isBroken = brokenBackend(outcome) !== undefined
    const answering = this.#attempts.at(-1)
    for (const attempt of this.#attempts) {
      const usage = attempt === answering && outcome.fusions === undefined ? outcome.usage : undefined
      exportSpan({
        ...attempt.span(endMs, isBroken && attempt === answering, usage),
        parent: { spanId },
        isParentRemote: false,
      })
    }
  }

  /** The wall clock at the start plus what a clock without corrections measured since. */
  wallNow(): number {
    return this.#startWallMs + this.deps.clock.monotonicMs() - this.#startMs
  }
}

class TracedAttempt implements AttemptTrace {
  readonly traceparent: string | undefined
  readonly #trace: Trace
  readonly #backend: Backend
  #spanId: string | undefined
  readonly #startMs: number
  #endMs: number | undefined
  #record: Attempt | undefined

  constructor(trace: Trace, backend: Backend) {
    this.#trace = trace
    this.#backend = backend
    this.#startMs = trace.wallNow()
    if (!trace.isPropagated) return
    this.#spanId = newSpanId(trace.deps.random)
    this.traceparent = writeTraceparent(trace.traceId, this.#spanId, trace.isSampled)
  }

  ended(record: Attempt, isOpen = false): void {
    this.#record = record
    if (!isOpen) this.#endMs = this.#trace.wallNow()
  }

  /** Whether the attempt failed before its content. A call that nobody waited for has not. */
  get hasFailed(): boolean {
    return this.#record !== undefined && !['answered', 'cancelled'].includes(this.#record.outcome)
  }

  span(
    requestEndMs: number,
    isBroken: boolean,
    usage: RequestOutcome['usage'],
  ): Omit<FinishedSpan, 'parent' | 'isParentRemote'> {
    const { opening, traceId, deps } = this.#trace
    const { model, attributes } = attemptAttributes(deps.backends, {
      opening,
      backend: this.#backend,
      record: this.#record,
      isBroken,
      usage,
    })
    const operation = operationOf(opening.format)
    return {
      name: model === undefined ? operation : `${operation} ${model}`,
      kind: 'client',
      traceId,
      spanId: this.#spanId ?? newSpanId(deps.random),
      startMs: this.#startMs,
      endMs: this.#endMs ?? requestEndMs,
      hasFailed: isBroken || this.hasFailed,
      attributes,
    }
  }
}
