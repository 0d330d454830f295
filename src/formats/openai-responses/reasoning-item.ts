import type { JsonObject } from '../../domain/json.ts'
import { type DeltaFrame, deltaFrame, type Frames } from './frames.ts'

/** One reasoning item while it is written, as a summary: clients show nothing else. */
export class ReasoningItem {
  readonly kind = 'reasoning'
  readonly outputIndex: number
  readonly #frames: Frames
  readonly #id: string
  readonly #indexFields: JsonObject
  readonly #frame: DeltaFrame
  #text = ''

  constructor(frames: Frames, outputIndex: number, id: string) {
    this.#frames = frames
    this.outputIndex = outputIndex
    this.#id = id
    this.#indexFields = { item_id: id, output_index: outputIndex, summary_index: 0 }
    this.#frame = deltaFrame('response.reasoning_summary_text.delta', this.#indexFields)
  }

  open(): string {
    return this.#frames.write('response.output_item.added', { output_index: this.outputIndex, item: this.soFar })
  }

  write(text: string): string {
    const opening = this.#text === '' ? this.#writePart('response.reasoning_summary_part.added') : ''
    this.#text += text
    return opening + this.#frames.writeDelta(this.#frame, text)
  }

  /** The item as written so far. */
  get soFar(): JsonObject {
    const summary = this.#text === '' ? [] : [{ type: 'summary_text', text: this.#text }]
    return { type: 'reasoning', id: this.#id, summary, content: [] }
  }

  /** Ends the item; `sealed` is the encrypted reasoning, absent if there is none. */
  close(sealed: string | undefined): { readonly frames: string; readonly item: JsonObject } {
    let frames = ''
    if (this.#text !== '') {
      frames += this.#frames.write('response.reasoning_summary_text.done', { ...this.#indexFields, text: this.#text })
      frames += this.#writePart('response.reasoning_summary_part.done')
    }
    const item = { ...this.soFar, ...(sealed !== undefined && { encrypted_content: sealed }) }
    frames += this.#frames.write('response.output_item.done', { output_index: this.outputIndex, item })
    return { frames, item }
  }

  #writePart(type: string): string {
    return this.#frames.write(type, { ...this.#indexFields, part: { type: 'summary_text', text: this.#text } })
  }
}
