import type { AnswerEvent, Conversation, FinishReason } from '../../../../domain/conversation.ts'
import type { CallRole } from '../../../../domain/fusion-record.ts'
import type { EventWriter } from '../event-writer.ts'
import { MarkScrubber, type Fence } from '../fence.ts'
import type { FusionRun } from '../fusion-run.ts'
import { callModel, type ModelCallEnd } from '../model-call.ts'
import type { FusionMember } from '../ports.ts'

/** From the start of the fusion to the last byte of a streamed answer (contract 9.6). */
const longestMs = 600_000
/** The longest answer that is buffered until it is complete. */
const maxHeldCharacters = 4_194_304

export interface WriteAnswerOptions {
  readonly run: FusionRun
  readonly writer: EventWriter
  readonly member: FusionMember
  readonly role: CallRole
  readonly conversation: Conversation
  /** The fence of the notes that this writer was given; absent if it was given none. */
  readonly fence?: Fence
  /** Whether to buffer the answer until it is complete, so that nothing of a bad one is seen. */
  readonly isHeld: boolean
  /** For a buffered answer: returns the text to send, or undefined if it must not be sent. */
  readonly repair?: (text: string) => string | undefined
}

export interface WrittenAnswer {
  readonly end: ModelCallEnd
  /** Why the answer ended; absent if it is incomplete or was not passed on. */
  readonly finish?: FinishReason
}

/**
 * Has one model write the caller's answer and passes it on as it arrives. Before its first word a failure leaves no
 * trace; after it the answer is broken, as `EventWriter.hasContent` shows. From a writer with notes, neither reasoning
 * nor marks are passed on, because both reveal the notes.
 */
export async function writeAnswer(options: WriteAnswerOptions): Promise<WrittenAnswer> {
  const { run, writer, member, role, conversation, isHeld } = options
  const { port, costs, signal } = run
  const passing = new AnswerPassThrough(options)
  const call = { role, conversation }
  const onEvents = (events: readonly AnswerEvent[]): Promise<boolean> | boolean => passing.take(events)
  // Until the first word, the run's deadline applies; it does not abort a started stream.
  const limitMs = isHeld ? run.remainingMs : longestMs - run.elapsedMs
  const end = await callModel({ port, costs, member, call, limitMs, signal, onEvents })
  const isDone = end.status === 'answered' || (end.status === 'refused' && options.fence === undefined)
  if (!isDone || end.finish === undefined || passing.isRejected) return { end }
  const rest = passing.rest(isHeld ? options.repair : undefined)
  if (rest === undefined) return { end }
  if (rest.length > 0) await writer.write(rest)
  return { end, finish: end.finish }
}

/** Decides what of a writer's events reaches the caller, and when. */
class AnswerPassThrough {
  readonly #options: WriteAnswerOptions
  readonly #scrubber: MarkScrubber | undefined
  /** Not passed on yet: all of it while the answer is buffered, otherwise what came before its first word. */
  #held: AnswerEvent[] = []
  #heldCharacters = 0
  #hasStarted = false
  #text = ''
  /** Whether the answer cannot be used, whatever else arrives. */
  isRejected = false

  constructor(options: WriteAnswerOptions) {
    this.#options = options
    this.#scrubber = options.fence === undefined ? undefined : new MarkScrubber(options.fence)
  }

  take(events: readonly AnswerEvent[]): Promise<boolean> | boolean {
    const passed = events.flatMap((event) => this.#pass(event))
    if (this.isRejected) return false
    if (this.#options.isHeld || !this.#hasStarted) {
      for (const event of passed) this.#held.push(event)
      return true
    }
    const all = this.#held.length === 0 ? passed : [...this.#held, ...passed]
    this.#held = []
    this.#options.run.begin()
    const caughtUp = this.#options.writer.write(all)
    return caughtUp === undefined ? true : caughtUp.then(() => true)
  }

  /** What is left to write when the answer is complete; undefined if it must not be sent. */
  rest(repair: WriteAnswerOptions['repair']): AnswerEvent[] | undefined {
    const last = this.#scrubber?.end() ?? ''
    const text = this.#text + last
    if (repair === undefined || text.trim() === '')
      return last === '' ? this.#held : [...this.#held, { type: 'text', text: last }]
    const repaired = repair(text)
    if (repaired === undefined) return undefined
    return [...this.#held.filter(({ type }) => type !== 'text'), { type: 'text', text: repaired }]
  }

  #pass(event: AnswerEvent): AnswerEvent[] {
    switch (event.type) {
      case 'start':
      case 'usage':
      case 'report':
      case 'service_call':
      case 'finish':
        return []
      case 'reasoning':
      case 'reasoning_end':
        return this.#options.fence === undefined ? [event] : []
      case 'refusal':
        if (this.#options.fence === undefined) return this.#begin(event)
        // The panel answered: its best answer is better than this refusal, as long as nothing was written.
        this.isRejected = !this.#hasStarted || this.#options.isHeld
        return this.#hasStarted ? [event] : []
      case 'text':
        return this.#passText(event)
      case 'call':
      case 'call_arguments':
      case 'annotation':
        return this.#begin(event)
    }
  }

  #passText(event: Extract<AnswerEvent, { type: 'text' }>): AnswerEvent[] {
    const text = this.#scrubber === undefined ? event.text : this.#scrubber.push(event.text)
    if (this.#options.isHeld) {
      this.#text += text
      this.#heldCharacters += text.length
      this.isRejected ||= this.#heldCharacters > maxHeldCharacters
    }
    if (text === '') return []
    if (text.trim() !== '') this.#hasStarted = true
    return [{ type: 'text', text }]
  }

  #begin(event: AnswerEvent): AnswerEvent[] {
    this.#hasStarted = true
    return [event]
  }
}
