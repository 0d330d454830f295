import { UpstreamError } from '../../domain/upstream.ts'
import { classifyRejection } from '../../formats/answer-faults.ts'
import type { Clock, Timer } from '../../runtime/clock.ts'
import { asError } from '../../runtime/describe-bug.ts'
import { freeBytes } from '../../runtime/gathered-bytes.ts'
import { StandingGrant } from '../auth/standing-grant.ts'
import type { Lane } from '../lanes/lane.ts'
import type {
  AttemptObserver,
  BackendTimeouts,
  CallGrant,
  CallTarget,
  UpstreamCall,
  UpstreamHead,
  UpstreamListener,
  UpstreamRequest,
} from '../ports.ts'
import { AttemptBill } from './attempt-bill.ts'
import type { AnswerFlow, AttemptOptions } from './attempt-options.ts'
import { EarlyStream } from './early-stream.ts'
import type { ProviderErrors } from './provider-errors.ts'

/** Bytes of a rejection's body that are read for its error codes. */
const maxRefusalBytes = 64 * 1024
/** Time limit for the body of a rejection; the status alone says most of it. */
const refusalBodyMs = 2_000
/** Text buffered for the client before the backend is paused (contract 9.12). */
const maxHeldChars = 256 * 1024
/**
 * Time that a backend has to close its stream after the terminal event, before the client's stream is ended (contract
 * 10.16).
 */
const afterTerminalMs = 1_000
/** Time to wait for the usage of an answer that the client has already received in full (contract 10.13, 10.16). */
const lateUsageMs = 10_000

/** Whether a silent backend may be abandoned for another one. */
type MayFailOver = (sawHeaders: boolean) => boolean

/**
 * One call to one backend (contract 1.5). Its text is buffered until the first content, so that another backend can
 * still answer after a failure; then it flows to the client.
 */
export class AttemptRun<Target extends CallTarget = CallTarget> implements UpstreamListener {
  readonly target: Target
  lane: Lane
  upstreamRequestId: string | undefined
  /** When the last event arrived, monotonic milliseconds. Keep-alives of the backend do not count (contract 9.9). */
  lastEventMs: number
  readonly startedMs: number
  readonly #clock: Clock
  readonly #stream: boolean
  readonly observer: AttemptObserver | undefined
  readonly bill: AttemptBill
  readonly #early = new EarlyStream()
  #held = ''
  /** The whole answer, once it has arrived. */
  #whole: Buffer | undefined
  #call: UpstreamCall | undefined
  #body: UpstreamRequest['body'] | undefined
  #flow: AnswerFlow | undefined
  #rejection: { head: UpstreamHead; chunks: Buffer[]; length: number } | undefined
  /** The text with which the backend failed. */
  #failureBody: string | undefined
  /** Pending while the usage of a complete answer is awaited. */
  #lateUsage: PromiseWithResolvers<void> | undefined
  #sawHead = false
  #sawBody = false
  #over = false
  #failure: Error | undefined
  grant: StandingGrant | undefined
  #timer: Timer | undefined
  #resolve: (() => void) | undefined
  #reject: ((error: Error) => void) | undefined

  constructor(target: Target, { lane, stream, clock, observer, conversation }: AttemptOptions) {
    this.observer = observer
    this.bill = new AttemptBill(target, clock, { stream, conversation })
    this.target = target
    this.lane = lane
    this.#stream = stream
    this.#clock = clock
    this.startedMs = clock.monotonicMs()
    this.lastEventMs = this.startedMs
  }

  /**
   * Calls the target if `grant` allows it. Resolves with the first content of a stream, or with all of a whole answer.
   * A stream without a byte of its body after `headersMs` is abandoned if `mayLeave` allows it, which is called with
   * whether the response headers have arrived (contract 9.2, 9.8). @throws UpstreamError, and errors of `grant`
   */
  open(request: UpstreamRequest, grant: CallGrant<Target>, mayLeave?: MayFailOver): Promise<void> {
    this.grant = new StandingGrant(() => grant(this.target, undefined, this.bill), this.#clock)
    const granted = this.grant.take((error) => this.stop(asError(error)))
    return granted === undefined ? this.#open(request, mayLeave) : granted.then(() => this.#open(request, mayLeave))
  }

  #open(request: UpstreamRequest, mayLeave: MayFailOver | undefined): Promise<void> {
    if (this.#failure !== undefined) return Promise.reject(this.#failure)
    const ready = new Promise<void>((resolve, reject) => {
      this.#resolve = resolve
      this.#reject = reject
    })
    if (this.target.timeouts !== undefined) this.#setDeadline(this.target.timeouts, mayLeave)
    this.bill.sent(request.body.length)
    this.#body = request.body
    this.#call = this.target.call(request, this)
    return ready
  }

  mayStillSend(): boolean | Promise<boolean> {
    return this.grant!.stillHolds()
  }

  #setDeadline({ headersMs, firstContentMs, wholeAnswerMs }: BackendTimeouts, mayLeave: MayFailOver | undefined): void {
    const giveUp = (): void => this.stop(new UpstreamError('timeout'))
    if (!this.#stream) this.#timer = this.#clock.after(wholeAnswerMs, giveUp)
    else if (mayLeave === undefined || headersMs >= firstContentMs)
      this.#timer = this.#clock.after(firstContentMs, giveUp)
    else {
      this.#timer = this.#clock.after(headersMs, () => {
        if (!this.#sawBody && mayLeave(this.#sawHead)) giveUp()
        else this.#timer = this.#clock.after(firstContentMs - headersMs, giveUp)
      })
    }
  }

  /** Aborts the attempt: nothing more is read, and it fails with `error`. */
  stop(error: Error): void {
    if (this.#over) return this.#endLateUsage()
    this.#call?.abort()
    this.#fail(error)
  }

  /** How long the backend may be silent, milliseconds (contract 9.5); undefined if there is no limit. */
  get longestSilenceMs(): number | undefined {
    const idleMs = this.target.timeouts?.idleMs
    return this.lane.finished ? Math.min(afterTerminalMs, idleMs ?? afterTerminalMs) : idleMs
  }

  /** Handles a backend that was silent for too long: ends a complete answer, and aborts any other. */
  passSilence(): void {
    if (this.lane.finished) this.#finish()
    else this.stop(new UpstreamError('timeout'))
  }

  /**
   * Ends a complete answer whose backend does not close its stream. If the backend still owes its usage, the call
   * continues for up to 10 s, until `lateUsage` resolves.
   */
  #finish(): void {
    if (this.#over) return
    const mayCount = this.lane.usage?.source !== 'counted' && this.target.dialect?.streamUsage === true
    if (mayCount) this.#lateUsage = Promise.withResolvers()
    else this.#call?.abort()
    this.#end(this.lane.end())
    if (mayCount) this.#timer = this.#clock.after(lateUsageMs, () => this.#endLateUsage())
  }

  /** Resolves when the lane has the usage, or it will not come; undefined if there is nothing to wait for. */
  get lateUsage(): Promise<void> | undefined {
    return this.#lateUsage?.promise
  }

  /** Sends the text to `flow` from now on, beginning with the buffered text. */
  flowTo(flow: AnswerFlow): void {
    const held = this.#held
    this.#held = ''
    if (this.#failure !== undefined) {
      flow.write(held)
      flow.broke(this.#failure)
    } else if (this.#over) {
      flow.ended(this.#whole ?? held)
    } else {
      this.#flow = flow
      // Before the text, which may be long enough for the flow to pause the call again.
      this.#call?.resume()
      flow.write(held)
    }
  }

  /** Reports the text of a failure, if any. If it may contain an answer, only an error message in it is stored. */
  reportError(errors: ProviderErrors | undefined, requestId: string): void {
    const mayBeAnswer = this.#rejection === undefined && (this.lane.hasContent || !this.#stream)
    if (this.#failureBody !== undefined) errors?.note(this.target, requestId, this.#failureBody, mayBeAnswer)
    this.#failureBody = undefined
  }

  pause(): void {
    if (!this.#over) this.#call?.pause()
  }

  resume(): void {
    if (!this.#over) this.#call?.resume()
  }

  /** Before content: switches to another lane, which first reads what has arrived so far. */
  changeLane(lane: Lane): void {
    this.lane = lane
    this.bill.follow(lane)
    this.#held = ''
    try {
      this.#held = lane.push(Buffer.from(this.#early.take(), 'latin1'))
    } catch (error) {
      this.stop(asError(error))
    }
  }

  onHead(head: UpstreamHead): void {
    this.upstreamRequestId = head.requestId
    this.#sawHead = true
    // Redirects are rejections, too: they are never followed (contract 21.13).
    if (head.status < 200 || head.status > 299) {
      this.#rejection = { head, chunks: [], length: 0 }
      this.bill.rejected()
      this.#timer?.cancel()
      this.#timer = this.#clock.after(refusalBodyMs, () => this.#endRejection())
      return
    }
    this.observer?.sawAnswer()
    this.bill.accepted(this.lane)
    if (this.#stream && !mayStream(head.contentType)) {
      this.stop(new UpstreamError('broken', { status: head.status }))
    }
  }

  onData(chunk: Buffer): void {
    if (this.#over) return this.#readLate(chunk)
    this.#sawBody = true
    if (this.#rejection !== undefined) {
      this.#bufferRejection(this.#rejection, chunk)
      return
    }
    let text: string
    try {
      text = this.lane.push(chunk)
    } catch (error) {
      this.#failOn(chunk, asError(error))
      return
    }
    if (this.lane.alive) this.lastEventMs = this.#clock.monotonicMs()
    if (this.#flow !== undefined) {
      if (text !== '') this.#flow.write(text)
      if (this.lane.upstreamError !== undefined) this.#failOn(chunk, this.lane.upstreamError)
      return
    }
    this.#held += text
    if (this.lane.upstreamError !== undefined) {
      this.#failOn(chunk, this.lane.upstreamError)
      return
    }
    if (this.lane.hasContent) this.#ready()
    else if (this.#stream && this.#reject !== undefined) this.#keepEarly(chunk)
    if (this.#reject === undefined && this.#held.length > maxHeldChars) this.#call?.pause()
  }

  onEnd(): void {
    if (this.#over) return this.#endLateUsage()
    if (this.#rejection !== undefined) {
      const { head, chunks } = this.#rejection
      const body = Buffer.concat(chunks).toString('utf8')
      this.#failureBody = body
      this.#fail(classifyRejection(head, body))
      return
    }
    const prepared = this.lane.prepareEnd?.()
    if (prepared === undefined) this.#endLane()
    else {
      void prepared.then(() => {
        if (!this.#over) this.#endLane()
      })
    }
  }

  #endLane(): void {
    let last: string | Buffer
    try {
      last = this.lane.end()
    } catch (error) {
      this.#failureBody = this.lane.faultText
      this.#fail(asError(error))
      return
    }
    this.#end(last)
  }

  onError(error: UpstreamError): void {
    if (this.#over) return this.#endLateUsage()
    this.#fail(error)
  }

  /** Handles a chunk that is an error, or malformed. Its text is stored for the owner of the backend. */
  #failOn(chunk: Buffer, error: Error): void {
    if (error instanceof UpstreamError)
      this.#failureBody = this.lane.faultText ?? (this.lane.hasContent ? undefined : chunk.toString('utf8'))
    this.stop(error)
  }

  /** Reads what follows a complete answer, for its usage. */
  #readLate(chunk: Buffer): void {
    if (this.#lateUsage === undefined) return
    try {
      this.lane.push(chunk)
    } catch {
      // Nothing after a complete answer can break it.
      this.#endLateUsage()
    }
    if (this.lane.usage?.source === 'counted') this.#endLateUsage()
  }

  #endLateUsage(): void {
    if (this.#lateUsage === undefined) return
    this.#timer?.cancel()
    this.#call?.abort()
    this.bill.countedLate(this.lane)
    this.#lateUsage.resolve()
  }

  #end(last: string | Buffer): void {
    this.#close()
    if (this.lane.hasContent) this.#freeBody()
    if (this.#flow !== undefined) {
      this.observer?.ended()
      return this.#flow.ended(last)
    }
    if (typeof last === 'string') this.#held += last
    else this.#whole = last
    if (this.lane.hasContent) {
      this.#ready()
      this.observer?.ended()
    } else this.#fail(new UpstreamError('broken'))
  }

  /** Frees the body after a complete answer: it will not be sent again (decision 67). */
  #freeBody(): void {
    if (this.#call?.isFlushed === true && this.#body instanceof Buffer) freeBytes(this.#body)
    this.#body = undefined
  }

  #fail(error: Error): void {
    // After the terminal event the answer is complete: later failures no longer matter.
    if (this.lane.finished && this.#stream && error instanceof UpstreamError && error.outcome !== 'cancelled') {
      this.#end(this.lane.end())
      return
    }
    this.#close()
    this.observer?.ended(error)
    if (this.#flow !== undefined) {
      this.#flow.broke(error)
    } else if (this.#reject !== undefined) {
      this.#reject(error)
      this.#resolve = this.#reject = undefined
    } else {
      this.#failure = error
    }
  }

  #ready(): void {
    this.observer?.sawContent()
    this.#timer?.cancel()
    this.#early.take()
    this.#resolve?.()
    this.#resolve = this.#reject = undefined
  }

  #close(): void {
    this.#over = true
    this.bill.close(this.#call?.isSent)
    this.#timer?.cancel()
  }

  #bufferRejection(rejection: { chunks: Buffer[]; length: number }, chunk: Buffer): void {
    rejection.chunks.push(Buffer.from(chunk))
    rejection.length += chunk.length
    if (rejection.length > maxRefusalBytes) this.#endRejection()
  }

  /** Classifies a rejection by what has arrived of its body. */
  #endRejection(): void {
    this.#call?.abort()
    this.onEnd()
  }

  /** Buffers what arrives before content, without comments. Too much of it breaks the attempt. */
  #keepEarly(chunk: Buffer): void {
    this.#early.add(chunk, this.lane)
    if (this.#early.isTooLong(this.#body?.length ?? 0)) this.stop(new UpstreamError('broken'))
  }
}

/** Some servers declare their events as plain text. The lane rejects what is not an event. */
function mayStream(contentType: string): boolean {
  return contentType === '' || contentType.includes('event-stream') || contentType.startsWith('text/plain')
}
