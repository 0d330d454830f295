import type { AnswerEvent, AssistantPart, FinishReason, ToolCall } from '../../../domain/conversation.ts'
import { fusionFunctionName } from '../../../domain/profiles.ts'
import { CallIds } from '../../../formats/call-ids.ts'
import type { Draft } from '../../../formats/fields.ts'
import { MarkScrubber, type Fence } from '../engine/fence.ts'

/** Our tool's calls are buffered while they arrive; longer arguments contain no question. */
const maxArgumentsCharacters = 64_000
/** Calls of our tool per turn; further ones are not answered. */
const maxCalls = 16
/** Maximum characters of the model's own text that are sent back to it. */
const maxRepeatedCharacters = 262_144

/**
 * Reads one streaming reply of the calling model: separates what the caller sees from the calls of our tool, which it
 * does not. Everything else is passed on at once; calls of the caller's tools get consecutive indexes.
 */
export class CallingModelAnswer {
  /** Calls of our own tool, in order. */
  readonly ours: ToolCall[] = []
  /** The ids under which the caller sees calls of its own tools. */
  readonly callIds: string[] = []
  /** Why the reply ended; undefined until it has. */
  finish: FinishReason | undefined
  /** Whether the caller saw any of it, and whether that included more than reasoning and calls. */
  isSeen = false
  hasText = false
  readonly #parts: AssistantPart[] = []
  #text = ''
  #thought = ''
  readonly #ids: CallIds
  readonly #held = new Map<number, Draft<ToolCall>>()
  readonly #numbers = new Map<number, number>()
  readonly #scrubbers: readonly MarkScrubber[]
  readonly #thoughtScrubbers: readonly MarkScrubber[]
  readonly #keepsSeals: boolean

  /**
   * `fences` are those of the findings that the model was shown; `keepsSeals` is whether the caller wants encrypted
   * reasoning.
   */
  constructor(mintId: () => string, fences: readonly Fence[], keepsSeals: boolean) {
    this.#ids = new CallIds(mintId)
    this.#scrubbers = fences.map((fence) => new MarkScrubber(fence))
    this.#thoughtScrubbers = fences.map((fence) => new MarkScrubber(fence))
    this.#keepsSeals = keepsSeals
  }

  /** The model's reply, in the form in which it is repeated to the model. */
  get parts(): readonly AssistantPart[] {
    this.#closeText()
    return [...this.#parts, ...this.ours]
  }

  /** Returns the part of these events that the caller sees. */
  take(events: readonly AnswerEvent[]): AnswerEvent[] {
    return this.#recordSeen(events.flatMap((event) => this.#pass(event)))
  }

  /** Text that was held back because it could have been a mark. */
  rest(): AnswerEvent[] {
    let text = ''
    for (const scrubber of this.#scrubbers) text = scrubber.push(text) + scrubber.end()
    return this.#recordSeen(text === '' ? [] : [{ type: 'text', text }])
  }

  #recordSeen(seen: AnswerEvent[]): AnswerEvent[] {
    if (seen.length > 0) this.isSeen = true
    this.hasText ||= seen.some(
      (event) => (event.type === 'text' || event.type === 'refusal') && event.text.trim() !== '',
    )
    return seen
  }

  #pass(event: AnswerEvent): AnswerEvent[] {
    switch (event.type) {
      case 'start':
      case 'usage':
      case 'report':
      case 'service_call':
        return []
      case 'finish':
        this.finish = event.reason
        return []
      case 'text': {
        if (this.#text.length < maxRepeatedCharacters) this.#text += event.text
        const text = scrub(event.text, this.#scrubbers)
        return text === '' ? [] : [text === event.text ? event : { type: 'text', text }]
      }
      case 'reasoning': {
        if (this.#thought.length < maxRepeatedCharacters) this.#thought += event.text
        const text = scrub(event.text, this.#thoughtScrubbers)
        return text === '' ? [] : [{ type: 'reasoning', text }]
      }
      case 'reasoning_end':
        return this.#endThought(event)
      case 'call':
        return this.#openCall(event)
      case 'call_arguments':
        return this.#passArguments(event)
      case 'refusal':
      case 'annotation':
        return [event]
    }
  }

  #endThought(event: Extract<AnswerEvent, { type: 'reasoning_end' }>): AnswerEvent[] {
    this.#closeText()
    const { sealed } = event
    const text = this.#thought
    this.#thought = ''
    if (text !== '' || sealed !== undefined)
      this.#parts.push(sealed === undefined ? { type: 'reasoning', text } : { type: 'reasoning', text, sealed })
    return [this.#keepsSeals ? event : { type: 'reasoning_end' }]
  }

  #openCall(event: Extract<AnswerEvent, { type: 'call' }>): AnswerEvent[] {
    const id = this.#ids.unique(event.id)
    if (event.name === fusionFunctionName) {
      const call: Draft<ToolCall> = { type: 'call', kind: 'function', id, name: fusionFunctionName, arguments: '' }
      this.#held.set(event.index, call)
      if (this.ours.length < maxCalls) this.ours.push(call)
      return []
    }
    const index = this.callIds.length
    this.#numbers.set(event.index, index)
    this.callIds.push(id)
    return [{ ...event, index, id }]
  }

  #passArguments(event: Extract<AnswerEvent, { type: 'call_arguments' }>): AnswerEvent[] {
    const call = this.#held.get(event.index)
    if (call !== undefined) {
      call.arguments = (call.arguments + event.text).slice(0, maxArgumentsCharacters)
      return []
    }
    // Indexes of calls that were never opened are passed on unchanged: the writer handles them.
    return [{ ...event, index: this.#numbers.get(event.index) ?? event.index }]
  }

  #closeText(): void {
    if (this.#text === '') return
    this.#parts.push({ type: 'text', text: this.#text })
    this.#text = ''
  }
}

function scrub(text: string, scrubbers: readonly MarkScrubber[]): string {
  return scrubbers.reduce((left, scrubber) => scrubber.push(left), text)
}
