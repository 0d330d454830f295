import type { AnswerEvent } from '../../domain/conversation.ts'
import { ServiceError } from '../../domain/errors.ts'
import type { JsonObject } from '../../domain/json.ts'
import type { RescueMode } from '../../domain/routing-policy.ts'
import type { Seam } from '../../domain/upstream.ts'
import type { AnswerWriter } from '../../formats/format.ts'
import type { StreamFailure } from '../../formats/stream-failure.ts'
import type { HeldBytes } from '../ports.ts'

/** The longest text that is stored to be verified, UTF-16 code units (contract 40.5), */
const maxTextLength = 256 * 1024
/** and how much of it is counted at once, in the memory of the request. */
const countedLength = 4 * 1024
const bytesPerUnit = 2

/** Tells the reader of a marked seam what follows (contract 40.7). */
const seamNote = '\n\n[The answer broke off here. It starts over below.]\n\n'

/**
 * Writes one answer that several backends may give one after the other. The text of a later backend is held back until
 * it has repeated what the client already has; then the rest follows (contract 40.4).
 */
export class RescuableAnswer implements AnswerWriter {
  readonly #writer: AnswerWriter
  readonly #mode: RescueMode
  /** The text that the client has, since the last marked seam. */
  #text = ''
  readonly #held: HeldBytes | undefined
  #countedLength = 0
  /** How much of it the current backend has repeated; undefined if it has repeated all, or is the first one. */
  #repeated: number | undefined
  /** Characters before that seam. */
  #earlierCharacters = 0
  #mayContinue = true
  #report: JsonObject | undefined
  readonly #rescues: JsonObject[] = []
  /** The backend that takes over; undefined for the first one. */
  #upstream: string | undefined
  #seam: Seam | undefined
  /** Whether the text of the current backend differs, and the seam may not be marked. */
  differs = false

  /** `held` counts the bytes of the stored text. */
  constructor(writer: AnswerWriter, mode: RescueMode, held: HeldBytes | undefined) {
    this.#writer = writer
    this.#mode = mode
    this.#held = held
  }

  /** Whether another backend may continue: not after a tool call, a refusal, or the end (contract 40.3). */
  get mayContinue(): boolean {
    return this.#mayContinue
  }

  /** How the current backend continues; undefined if it does not, or not yet. */
  get seam(): Seam | undefined {
    return this.#seam
  }

  /** From now on, a backend writes that starts the answer over. */
  restart(upstream: string): void {
    this.#upstream = upstream
    this.#seam = undefined
    this.#repeated = 0
  }

  writeEvents(events: readonly AnswerEvent[]): string {
    if (this.#upstream === undefined) {
      for (const event of events) this.#note(event)
      return this.#writer.writeEvents(events)
    }
    const shown: AnswerEvent[] = []
    for (const event of events) this.#continue(event, shown)
    return shown.length === 0 ? '' : this.#writer.writeEvents(shown)
  }

  writeKeepAlive(): string {
    return this.#writer.writeKeepAlive()
  }

  writeEnd(): string {
    return this.#writer.writeEnd()
  }

  writeFailure(failure: StreamFailure): string {
    return this.#writer.writeFailure(failure)
  }

  writeWhole(events: readonly AnswerEvent[]): JsonObject {
    return this.#writer.writeWhole(events)
  }

  #note(event: AnswerEvent): void {
    switch (event.type) {
      case 'text':
        this.#store(event.text)
        return
      case 'report':
        this.#report = event.report
        return
      case 'start':
      case 'usage':
      case 'annotation':
      case 'reasoning':
      case 'reasoning_end':
        return
      case 'refusal':
      case 'call':
      case 'call_arguments':
      case 'service_call':
      case 'finish':
        this.#mayContinue = false
    }
  }

  /** Without memory for its text, an answer goes on, but cannot be rescued. */
  #store(text: string): void {
    if (!this.#mayContinue) return
    this.#text += text
    if (this.#text.length <= this.#countedLength) return
    if (this.#text.length <= maxTextLength && this.#count()) return
    this.#text = ''
    this.#mayContinue = false
  }

  #count(): boolean {
    const more = Math.ceil((this.#text.length - this.#countedLength) / countedLength) * countedLength
    try {
      this.#held?.grow(more * bytesPerUnit)
    } catch (error) {
      if (error instanceof ServiceError) return false
      throw error
    }
    this.#countedLength += more
    return true
  }

  /** Adds to `shown` what the client gets of an event of a later backend. */
  #continue(event: AnswerEvent, shown: AnswerEvent[]): void {
    switch (event.type) {
      // The client has the reasoning of the first backend; positions of annotations would be wrong after a seam.
      case 'reasoning':
      case 'reasoning_end':
      case 'annotation':
        return
      case 'start':
      case 'usage':
        shown.push(event)
        return
      case 'report':
        this.#note(event)
        shown.push(event)
        return
      case 'text':
        return this.#continueText(event.text, shown)
      case 'refusal':
      case 'call':
      case 'call_arguments':
      case 'service_call':
      case 'finish':
        this.#continueText('', shown, true)
        if (event.type === 'finish') shown.push({ type: 'report', report: { ...this.#report, rescues: this.#rescues } })
        this.#show(event, shown)
    }
  }

  #show(event: AnswerEvent, shown: AnswerEvent[]): void {
    this.#note(event)
    shown.push(event)
  }

  #showText(text: string, shown: AnswerEvent[]): void {
    if (text !== '') this.#show({ type: 'text', text }, shown)
  }

  /**
   * Shows what of `text` follows the text that the client has: nothing while it repeats it. `isLast`: no text follows.
   * @throws ServiceError `upstream_broken` if it differs and the seam may not be marked
   */
  #continueText(text: string, shown: AnswerEvent[], isLast = false): void {
    if (this.#repeated === undefined) return this.#showText(text, shown)
    const known = this.#text.slice(this.#repeated, this.#repeated + text.length)
    const repeated = this.#repeated + known.length
    const isComplete = repeated === this.#text.length
    if (text.startsWith(known) && (isComplete || !isLast)) {
      this.#repeated = repeated
      if (isComplete) this.#join('verified')
      return this.#showText(text.slice(known.length), shown)
    }
    if (this.#mode !== 'marked') {
      this.differs = true
      throw new ServiceError('upstream_broken')
    }
    const own = this.#text.slice(0, this.#repeated) + text
    this.#join('marked')
    this.#showText(seamNote, shown)
    // Another backend would have to repeat the text of this one only.
    this.#earlierCharacters += charactersIn(this.#text)
    this.#text = ''
    this.#showText(own, shown)
  }

  #join(seam: Seam): void {
    this.#seam = seam
    this.#repeated = undefined
    const characters = this.#earlierCharacters + charactersIn(this.#text)
    this.#rescues.push({ upstream: this.#upstream!, seam, after_characters: characters })
  }
}

/** Unicode characters, which all languages count alike. */
function charactersIn(text: string): number {
  let count = 0
  for (const _ of text) count += 1
  return count
}
