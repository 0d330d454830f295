import type {
  AttemptObserver,
  Backend,
  UpstreamCall,
  UpstreamHead,
  UpstreamListener,
  UpstreamRequest,
  CallGrant,
} from '../ports.ts'
import { asError } from '../../runtime/describe-bug.ts'
import type { Clock, Timer } from '../../runtime/clock.ts'
import { UpstreamError } from '../../domain/upstream.ts'
import { classifyRejection } from '../../formats/answer-faults.ts'
import { TextBuffer } from '../../formats/text-buffer.ts'
import type { Lane } from '../lanes/lane.ts'
import type { ProviderErrors } from './provider-errors.ts'

/** As much of a refusal's body as is read for its codes. */
const maxRefusalBytes = 64 * 1024
/** How long a refusal's body is waited for: its status says most of it. */
const refusalBodyMs = 2_000
/** Text that waits here for the caller before the backend is told to pause (contract 9.12). */
const maxHeldChars = 256 * 1024
/** After its terminal event a backend has this long to close its stream before its reader's is ended. */
const afterTerminalMs = 1_000
/** How long a backend's count of a complete answer is waited for, once its reader has all of the answer. */
const lateUsageMs = 10_000
/** What a stream may send before its first content (contract 9.13), comments not counted… */
const maxEarlyBytes = 256 * 1024
/** …nor so many repetitions of the request: the first events of a response have its instructions and tools. */
const requestEchoes = 3

/** Where an attempt's text goes once content has begun. */
export interface AnswerFlow {
  write(text: string): void
  /** The answer is complete; `last` is the last piece of a stream, or all of a whole answer. */
  ended(last: string | Buffer): void
  /** `error` is an UpstreamError, or a bug. */
  broke(error: Error): void
}

/** Whether a silent backend can be left for another one. */
type MayFailOver = (sawHeaders: boolean) => boolean

/**
 * One call to one backend (contract 1.5). Until the first content its text is held back, so that a failure can still be
 * answered by another backend; from then on it flows.
 */
export class AttemptRun implements UpstreamListener {
  readonly backend: Backend
  lane: Lane
  upstreamRequestId: string | undefined
  /** When the last event came, monotonic milliseconds: keep-alives of the backend do not count (contract 9.9). */
  lastEventMs: number
  readonly startedMs: number
  readonly #clock: Clock
  readonly #stream: boolean
  readonly #observer: AttemptObserver | undefined
  /** What came before content, as latin1, so that it can be read again in another lane: events, and what is no event yet. */
  readonly #early = new TextBuffer()
  readonly #incomplete = new TextBuffer()
  #maxEarlyBytes = maxEarlyBytes
  #held = ''
  /** A whole answer, once it is there. */
  #whole: Buffer | undefined
  #call: UpstreamCall | undefined
  #flow: AnswerFlow | undefined
  #rejection: { head: UpstreamHead; chunks: Buffer[]; length: number } | undefined
  /** What the backend said as it failed, from its first bytes on. */
  #failureBody: string | undefined
  /** Open while the backend's count is waited for behind a complete answer. */
  #lateUsage: PromiseWithResolvers<void> | undefined
  #sawHead = false
  #sawBody = false
  #over = false
  #failure: Error | undefined
  #timer: Timer | undefined
  #resolve: (() => void) | undefined
  #reject: ((error: Error) => void) | undefined

  constructor(backend: Backend, lane: Lane, stream: boolean, clock: Clock, observer?: AttemptObserver) {
    this.#observer = observer
    this.backend = backend
    this.lane = lane
    this.#stream = stream
    this.#clock = clock
    this.startedMs = clock.monotonicMs()
    this.lastEventMs = this.startedMs
  }

  /**
   * Calls the backend. Resolves when content is there (of a whole answer: all of it). A stream without a byte of its
   * body after `headersMs` is given up where `mayLeave` says that another backend can be asked; it is told whether the
   * response headers have come (contract 9.2, 9.8). Nothing is sent
   * unless `grant` allows it. @throws UpstreamError, and what `grant` throws
   */
  async open(request: UpstreamRequest, grant: CallGrant, mayLeave?: MayFailOver): Promise<void> {
    try {
      const granted = grant(this.backend)
      if (granted instanceof Promise) await granted
    } catch (error) {
      this.stop(asError(error))
    }
    if (this.#failure !== undefined) throw this.#failure
    await this.#open(request, mayLeave)
  }

  #open(request: UpstreamRequest, mayLeave: MayFailOver | undefined): Promise<void> {
    const { headersMs, firstContentMs, wholeAnswerMs } = this.backend.timeouts
    const ready = new Promise<void>((resolve, reject) => {
      this.#resolve = resolve
      this.#reject = reject
    })
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
    this.#maxEarlyBytes = maxEarlyBytes + requestEchoes * request.body.length
    this.#call = this.backend.call(request, this)
    return ready
  }

  /** Gives the attempt up: nothing more is read, and whoever waits for it gets `error`. */
  stop(error: Error): void {
    if (this.#over) return this.#endLateUsage()
    this.#call?.abort()
    this.#fail(error)
  }

  /** How long the backend may be silent, milliseconds (contract 9.5). */
  get longestSilenceMs(): number {
    const { idleMs } = this.backend.timeouts
    return this.lane.finished ? Math.min(afterTerminalMs, idleMs) : idleMs
  }

  /** The backend was silent for too long: ends a complete answer, and gives up any other. */
  passSilence(): void {
    if (this.lane.finished) this.#finish()
    else this.stop(new UpstreamError('timeout'))
  }

  /**
   * Ends a complete answer whose backend does not end its stream. Where the backend counts tokens and has not done so yet,
   * the call goes on for 10 s: `lateUsage` says when that is over.
   */
  #finish(): void {
    if (this.#over) return
    const mayCount = this.lane.usage === undefined && this.backend.dialect.streamUsage
    if (mayCount) this.#lateUsage = Promise.withResolvers()
    else this.#call?.abort()
    this.#end(this.lane.end())
    if (mayCount) this.#timer = this.#clock.after(lateUsageMs, () => this.#endLateUsage())
  }

  /** Resolves when the lane has the usage that there is; undefined where it has it already. */
  get lateUsage(): Promise<void> | undefined {
    return this.#lateUsage?.promise
  }

  /** Lets the text go to `flow`, beginning with what was held back. */
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
      // Before the text, which may be so much that the flow wants a pause.
      this.#call?.resume()
      flow.write(held)
    }
  }

  /** Hands over what the backend said as it failed, if it did. Of what may be an answer only an error's message is kept. */
  reportError(errors: ProviderErrors | undefined, requestId: string): void {
    const mayBeAnswer = this.#rejection === undefined && (this.lane.hasContent || !this.#stream)
    if (this.#failureBody !== undefined) errors?.note(this.backend, requestId, this.#failureBody, mayBeAnswer)
    this.#failureBody = undefined
  }

  pause(): void {
    if (!this.#over) this.#call?.pause()
  }

  resume(): void {
    if (!this.#over) this.#call?.resume()
  }

  /** Before content: reads again what has come so far in another lane, which is used from here on. */
  changeLane(lane: Lane): void {
    this.lane = lane
    this.#held = ''
    try {
      this.#held = lane.push(Buffer.from(this.#early.take() + this.#incomplete.take(), 'latin1'))
    } catch (error) {
      this.stop(asError(error))
    }
  }

  onHead(head: UpstreamHead): void {
    this.upstreamRequestId = head.requestId
    this.#sawHead = true
    if (head.status < 200 || head.status > 299) {
      this.#rejection = { head, chunks: [], length: 0 }
      this.#timer?.cancel()
      this.#timer = this.#clock.after(refusalBodyMs, () => this.#endRejection())
      return
    }
    this.#observer?.sawAnswer()
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

  /** A chunk that is an error, or cannot be read. What it says is kept for the owner of the backend. */
  #failOn(chunk: Buffer, error: Error): void {
    if (error instanceof UpstreamError)
      this.#failureBody = this.lane.faultText ?? (this.lane.hasContent ? undefined : chunk.toString('utf8'))
    this.stop(error)
  }

  /** The answer is complete and on its way: only its usage matters. */
  #readLate(chunk: Buffer): void {
    if (this.#lateUsage === undefined) return
    try {
      this.lane.push(chunk)
    } catch {
      // What follows a complete answer cannot break it.
      this.#endLateUsage()
    }
    if (this.lane.usage?.source === 'counted') this.#endLateUsage()
  }

  #endLateUsage(): void {
    if (this.#lateUsage === undefined) return
    this.#timer?.cancel()
    this.#call?.abort()
    this.#lateUsage.resolve()
  }

  #end(last: string | Buffer): void {
    this.#close()
    if (this.#flow !== undefined) {
      this.#observer?.ended()
      this.#flow.ended(last)
      return
    }
    if (typeof last === 'string') this.#held += last
    else this.#whole = last
    if (this.lane.hasContent) {
      this.#observer?.ended()
      this.#ready()
    } else this.#fail(new UpstreamError('broken'))
  }

  #fail(error: Error): void {
    // What comes after the terminal event does not matter any more: the answer is complete.
    if (this.lane.finished && this.#stream && error instanceof UpstreamError && error.outcome !== 'cancelled') {
      this.#end(this.lane.end())
      return
    }
    this.#close()
    this.#observer?.ended(error)
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
    this.#timer?.cancel()
    this.#early.take()
    this.#incomplete.take()
    this.#resolve?.()
    this.#resolve = this.#reject = undefined
  }

  #close(): void {
    this.#over = true
    this.#timer?.cancel()
  }

  #bufferRejection(refusal: { chunks: Buffer[]; length: number }, chunk: Buffer): void {
    refusal.chunks.push(Buffer.from(chunk))
    refusal.length += chunk.length
    if (refusal.length > maxRefusalBytes) this.#endRejection()
  }

  /** Judges a refusal by what is there of it. */
  #endRejection(): void {
    this.#call?.abort()
    this.onEnd()
  }

  /** Keeps what came before content, but for comments. Too much of it is no answer. */
  #keepEarly(chunk: Buffer): void {
    this.#incomplete.add(chunk.toString('latin1'))
    if (this.lane.alive) this.#early.add(this.#incomplete.take())
    else if (this.lane.waiting === 0) this.#incomplete.take()
    if (this.#early.length + this.#incomplete.length > this.#maxEarlyBytes) this.stop(new UpstreamError('broken'))
  }
}

/** Some servers declare their events as plain text. The lane reads them, and refuses what is no event. */
function mayStream(contentType: string): boolean {
  return contentType === '' || contentType.includes('event-stream') || contentType.startsWith('text/plain')
}
