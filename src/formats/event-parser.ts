import type { AnswerEvent, JsonObject } from '../domain/conversation.ts'
import { UpstreamError } from '../domain/upstream.ts'
import { parseAnswer } from './answer-faults.ts'

const nothing: readonly AnswerEvent[] = []

/** An answer of which more than this has been read is not one: its events may not fill the memory. */
const maxAnswerCharacters = 64 * 1024 * 1024

/** Parses the events of one stream. One for each answer: all of its events together are bounded. */
export class EventParser {
  /** What the last event's data was; undefined before the first. */
  last: JsonObject | undefined
  #charactersLeft = maxAnswerCharacters

  /** @throws UpstreamError `broken` for what is not a JSON object, and for an answer that is too long */
  parse(data: string): JsonObject {
    this.#charactersLeft -= data.length
    if (this.#charactersLeft < 0) throw new UpstreamError('broken')
    this.last = parseAnswer(data)
    return this.last
  }

  /** Forgets the last event, which is not of the format: it tells nothing and is not passed on. */
  skip(): readonly AnswerEvent[] {
    this.last = undefined
    return nothing
  }
}
