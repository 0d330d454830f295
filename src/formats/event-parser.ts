import type { AnswerEvent } from '../domain/conversation.ts'
import type { JsonObject } from '../domain/json.ts'
import { UpstreamError } from '../domain/upstream.ts'
import { parseAnswer } from './answer-faults.ts'

const nothing: readonly AnswerEvent[] = []

/** Answers longer than this are rejected, so that their events cannot fill the memory. */
const maxAnswerCharacters = 64 * 1024 * 1024

/** Parses the events of one stream. One per answer, because it bounds the total size. */
export class EventParser {
  /** The data of the last event; undefined before the first. */
  last: JsonObject | undefined
  #charactersLeft = maxAnswerCharacters

  /** @throws UpstreamError `broken` if it is not a JSON object, or the answer is too long */
  parse(data: string): JsonObject {
    this.#charactersLeft -= data.length
    if (this.#charactersLeft < 0) throw new UpstreamError('broken')
    this.last = parseAnswer(data)
    return this.last
  }

  /** Drops the last event, which is not part of the format: it yields nothing and is not passed on. */
  skip(): readonly AnswerEvent[] {
    this.last = undefined
    return nothing
  }
}
