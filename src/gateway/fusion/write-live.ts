import type { CallRole } from '../../domain/fusion-record.ts'
import type { AnswerEvent, Conversation, FinishReason } from '../../domain/conversation.ts'
import { makeCall, type CallEnd } from './call.ts'
import { MarkScrubber, type Fence } from './fence.ts'
import type { Outlet } from './outlet.ts'
import type { FusionMember } from './ports.ts'
import type { FusionRun } from './run.ts'

/** From the start of the fusion to the last byte of a streamed answer (contract 9.6). */
const longestMs = 600_000
/** The longest answer that is buffered until it is complete. */
const maxHeldCharacters = 4_194_304

export interface WritingOf {
  readonly run: FusionRun
  readonly outlet: Outlet
  readonly member: FusionMember
  readonly role: CallRole
  readonly conversation: Conversation
  /** The fence of the notes that this writer was given; absent if it was given none. */
  readonly fence?: Fence
  /** Whether to buffer the answer until it is complete, so that nothing of a bad one is seen. */
  readonly isHeld: boolean
  /** For a buffered answer: returns the text to send, or undefined if it must not be sent. */
  readonly mend?: (text: string) => string | undefined
}

export interface Writing {
  readonly end: CallEnd
  /** Why the answer ended; absent if it is incomplete or was not passed on. */
  readonly finish?: FinishReason
}

/**
 * Has one model write the caller's answer and passes it on as it arrives. Before its first word a failure leaves no
 * trace; after it the answer is broken, as `outlet.hasContent` shows. From a writer with notes, neither reasoning nor
 * marks are passed on, because both reveal the notes.
 */
export async function writeLive(of: WritingOf): Promise<Writing> {
  const { run, outlet, member, role, conversation, isHeld } = of
  const { port, book, signal } = run
  const passing = new Passing(of)
  const call = { role, conversation }
  const onEvents = (events: readonly AnswerEvent[]): Promise<boolean> | boolean => passing.take(events)
  // Until the first word, the run's deadline applies; it does not abort a started stream.
  const limitMs = isHeld ? run.remainingMs : longestMs - run.elapsedMs
  const end = await makeCall({ port, book, member, call, limitMs, signal, onEvents })
  const isDone = end.status === 'answered' || (end.status === 'refused' && of.fence === undefined)
  if (!isDone || end.finish === undefined || passing.isRejected) return { end }
  const rest = passing.rest(isHeld ? of.mend : undefined)
  if (rest === undefined) return { end }
  if (rest.length > 0) await outlet.say(rest)
  return { end, finish: end.finish }
}

/** Decides what of a writer's events reaches the caller, and when. */
class Passing {
  readonly #of: WritingOf
  readonly #scrubber: MarkScrubber | undefined
  /** Not passed on yet: all of it while the answer is buffered, otherwise what came before its first word. */
  #held: AnswerEvent[] = []
  #heldCharacters = 0
  #hasBegun = false
  #text = ''
  /** Whether the answer cannot be used, whatever else arrives. */
  isRejected = false

  constructor(of: WritingOf) {
    this.#of = of
    this.#scrubber = of.fence === undefined ? undefined : new MarkScrubber(of.fence)
  }

  take(events: readonly AnswerEvent[]): Promise<boolean> | boolean {
    const passed = events.flatMap((event) => this.#pass(event))
    if (this.isRejected) return false
    if (this.#of.isHeld || !this.#hasBegun) {
      for (const event of passed) this.#held.push(event)
      return true
    }
    const all = this.#held.length === 0 ? passed : [...this.#held, ...passed]
    this.#held = []
    this.#of.run.begin()
    const caughtUp = this.#of.outlet.say(all)
    return caughtUp === undefined ? true : caughtUp.then(() => true)
  }

  /** What is left to write when the answer is complete; undefined if it must not be sent. */
  rest(mend: WritingOf['mend']): AnswerEvent[] | undefined {
    const last = this.#scrubber?.end() ?? ''
    const text = this.#text + last
    if (mend === undefined || text.trim() === '')
      return last === '' ? this.#held : [...this.#held, { type: 'text', text: last }]
    const repaired = mend(text)
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
        return this.#of.fence === undefined ? [event] : []
      case 'refusal':
        if (this.#of.fence === undefined) return this.#begin(event)
        // The panel answered: its best answer is better than this refusal, as long as nothing was written.
        this.isRejected = !this.#hasBegun || this.#of.isHeld
        return this.#hasBegun ? [event] : []
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
    if (this.#of.isHeld) {
      this.#text += text
      this.#heldCharacters += text.length
      this.isRejected ||= this.#heldCharacters > maxHeldCharacters
    }
    if (text === '') return []
    if (text.trim() !== '') this.#hasBegun = true
    return [{ type: 'text', text }]
  }

  #begin(event: AnswerEvent): AnswerEvent[] {
    this.#hasBegun = true
    return [event]
  }
}
