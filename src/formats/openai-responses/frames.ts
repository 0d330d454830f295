import type { JsonObject } from '../../domain/json.ts'

/** The constant parts of a delta's frame: only the number and the text are inserted between them. */
export interface DeltaFrame {
  readonly head: string
  readonly middle: string
  readonly tail: string
}

/** Writes the events of one stream and numbers them. */
export class Frames {
  #next = 0
  #isMuted = false

  /** Writes nothing from now on: a whole answer has no events, and each would serialize its text once more. */
  mute(): void {
    this.#isMuted = true
  }

  write(type: string, fields: JsonObject): string {
    if (this.#isMuted) return ''
    const number = this.#next++
    return `event: ${type}\ndata: {"type":"${type}","sequence_number":${number},${JSON.stringify(fields).slice(1)}\n\n`
  }

  /** Hot path: only the text of a delta is serialized as JSON. */
  writeDelta(frame: DeltaFrame, text: string): string {
    if (this.#isMuted) return ''
    return `${frame.head}${this.#next++}${frame.middle}${JSON.stringify(text)}${frame.tail}`
  }
}

/** Prepares the deltas of one item part; `indexFields` are the fields before `delta`, `after` is JSON text after it. */
export function deltaFrame(type: string, indexFields: JsonObject, after = ''): DeltaFrame {
  return {
    head: `event: ${type}\ndata: {"type":"${type}","sequence_number":`,
    middle: `,${JSON.stringify(indexFields).slice(1, -1)},"delta":`,
    tail: `${after}}\n\n`,
  }
}
