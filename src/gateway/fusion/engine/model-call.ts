import { showsRefusal, type AnswerEvent, type FinishReason, type Usage } from '../../../domain/conversation.ts'
import { ServiceError } from '../../../domain/errors.ts'
import { estimateUsage, outputBytes, tokensOfBytes } from '../../../domain/estimate-tokens.ts'
import type { CallStatus } from '../../../domain/fusion-record.ts'
import { isRefusal, UpstreamError } from '../../../domain/upstream.ts'
import { aborted } from '../../../runtime/aborted.ts'
import type { CostTracker } from './cost-tracker.ts'
import type { FusionMember, FusionPort, SubCall } from './ports.ts'

/** Maximum characters of a collected answer. A longer one is truncated. */
const maxCollectedCharacters = 262_144

export interface ModelCallEnd {
  readonly status: CallStatus
  readonly text: string
  /** The text of the model's refusal. */
  readonly refusal: string
  /** Whether the model or its provider refused, so that no other model is asked instead (contract 7.29). */
  readonly refused: boolean
  /** Whether the text is incomplete. */
  readonly truncated: boolean
  readonly finish?: FinishReason
  readonly usage?: Usage
  readonly ms: number
}

export interface ModelCallOptions {
  readonly port: FusionPort
  readonly costs: CostTracker
  readonly member: FusionMember
  readonly call: SubCall
  /** Time limit until the last event, milliseconds. */
  readonly limitMs: number
  /** US dollars to leave for later calls. */
  readonly keepUsd?: number
  readonly signal: AbortSignal
  /** Takes the events as they arrive instead of collecting them; returning false ends the call in its current state. */
  readonly onEvents?: (events: readonly AnswerEvent[]) => Promise<boolean> | boolean
}

/** The result of a call that the caller's cost limit does not allow. */
const unaffordable: ModelCallEnd = {
  status: 'unaffordable',
  text: '',
  refusal: '',
  refused: false,
  truncated: false,
  ms: 0,
}

/**
 * Makes one call and waits for its end, which always comes: in time, at the time limit, or as soon as the signal is
 * aborted, whatever the port does. Rejects only on a bug.
 */
export async function callModel(options: ModelCallOptions): Promise<ModelCallEnd> {
  const { port, costs, member, call, signal } = options
  if (signal.aborted) return { ...unaffordable, status: 'cut' }
  const worstUsd = costs.worstUsd(member, call.conversation)
  const reservation = costs.reserve(call.role, member, worstUsd, options.keepUsd)
  if (reservation === undefined) return unaffordable
  const startedMs = port.clock.monotonicMs()
  const collector = new AnswerCollector(options.onEvents)
  const status = await settle(options, collector)
  const ms = Math.round(port.clock.monotonicMs() - startedMs)
  const end = collector.end(status, ms, options)
  costs.settle(reservation, { status: end.status, ms, ...(end.usage === undefined ? {} : { usage: end.usage }) })
  return end
}

async function settle(
  { port, member, call, limitMs, signal }: ModelCallOptions,
  collector: AnswerCollector,
): Promise<CallStatus> {
  const abort = new AbortController()
  const stopped = Promise.withResolvers<CallStatus>()
  const stop = (status: CallStatus): void => {
    collector.isOver = true
    // At once: a client disconnect does not wait for our promises (contract 9.10).
    abort.abort(aborted)
    stopped.resolve(collector.stoppedBy(status))
  }
  const leave = (): void => stop('cut')
  signal.addEventListener('abort', leave, { once: true })
  const limit = port.clock.after(limitMs, () => stop('timeout'))
  const reading = collector.read(() => port.callModel(member, call, abort.signal))
  // The outcome of an aborted call no longer matters.
  reading.catch(() => {})
  try {
    return await Promise.race([reading, stopped.promise])
  } catch (error) {
    if (isRefusal(error)) collector.noteRefusal()
    if (error instanceof UpstreamError) return collector.stoppedBy(error.outcome)
    if (error instanceof ServiceError) return 'unsayable'
    throw error
  } finally {
    collector.isOver = true
    limit.cancel()
    signal.removeEventListener('abort', leave)
    abort.abort(aborted)
  }
}

/** Collects one answer. */
class AnswerCollector {
  isOver = false
  readonly #onEvents: ModelCallOptions['onEvents']
  #text = ''
  #refusal = ''
  #refused = false
  #outputBytes = 0
  #isFull = false
  #hasContent = false
  #finish: FinishReason | undefined
  #usage: Usage | undefined

  constructor(onEvents: ModelCallOptions['onEvents']) {
    this.#onEvents = onEvents
  }

  /** The provider refused with an error. */
  noteRefusal(): void {
    this.#refused = true
  }

  /** Reads until the answer ends. */
  async read(open: () => ReturnType<FusionPort['callModel']>): Promise<CallStatus> {
    const answer = open()
    if (answer instanceof Promise) {
      await this.#take(await answer)
    } else {
      for await (const events of answer) if (!(await this.#take(events))) break
    }
    return this.#finish === undefined && !this.#isFull ? 'broken' : this.#statusAtEnd()
  }

  /** The status of a call that was stopped from outside: after the terminal event, the stop does not matter. */
  stoppedBy(status: CallStatus): CallStatus {
    return this.#finish === undefined ? status : this.#statusAtEnd()
  }

  #statusAtEnd(): CallStatus {
    if (this.#hasContent) return 'answered'
    return this.#refused ? 'refused' : 'empty'
  }

  end(status: CallStatus, ms: number, { call }: ModelCallOptions): ModelCallEnd {
    const usage = this.#usage ?? this.#estimate(call)
    return {
      status,
      text: this.#text,
      refusal: this.#refusal,
      refused: this.#refused,
      truncated: this.#isFull || this.#finish === 'length' || this.#finish === 'content_filter',
      ms,
      ...(this.#finish === undefined ? {} : { finish: this.#finish }),
      ...(usage === undefined ? {} : { usage }),
    }
  }

  async #take(events: readonly AnswerEvent[]): Promise<boolean> {
    if (this.isOver) return false
    for (const event of events) this.#note(event)
    if (this.#onEvents === undefined) return !this.#isFull
    const continues = this.#onEvents(events)
    return typeof continues === 'boolean' ? continues : await continues
  }

  #note(event: AnswerEvent): void {
    this.#outputBytes += outputBytes(event)
    if (showsRefusal(event)) this.#refused = true
    if (event.type === 'text') {
      this.#hasContent ||= event.text.trim() !== ''
      if (this.#onEvents === undefined) this.#append(event.text)
    } else if (event.type === 'refusal') {
      this.#refusal += event.text.slice(0, maxCollectedCharacters - this.#refusal.length)
    } else if (event.type === 'call') {
      // A tool call is content from the model that has the caller's tools, and not from one without tools.
      this.#hasContent ||= this.#onEvents !== undefined
    } else if (event.type === 'usage') {
      this.#usage = event.usage
    } else if (event.type === 'finish') {
      this.#finish = event.reason
    }
  }

  #append(text: string): void {
    const room = maxCollectedCharacters - this.#text.length
    this.#text += text.length <= room ? text : text.slice(0, room)
    this.#isFull = text.length > room
  }

  /** Estimated usage, marked as such, for an answer whose backend reported none. */
  #estimate({ conversation }: SubCall): Usage | undefined {
    if (this.#outputBytes === 0 && this.#finish === undefined) return undefined
    return estimateUsage(conversation, tokensOfBytes(this.#outputBytes))
  }
}
