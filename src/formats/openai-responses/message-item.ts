import type { Json, JsonObject } from '../../domain/json.ts'
import { type DeltaFrame, deltaFrame, type Frames } from './frames.ts'

interface OpenPart {
  readonly kind: 'text' | 'refusal'
  readonly indexFields: JsonObject
  readonly frame: DeltaFrame
  readonly logprobs: Json[]
  readonly annotations: Json[]
  text: string
}

/** One message of an answer while it is written, part by part. */
export class MessageItem {
  readonly kind = 'message'
  readonly outputIndex: number
  readonly #frames: Frames
  readonly #id: string
  readonly #content: Json[] = []
  #part: OpenPart | undefined

  constructor(frames: Frames, outputIndex: number, id: string) {
    this.#frames = frames
    this.outputIndex = outputIndex
    this.#id = id
  }

  open(): string {
    return this.#frames.write('response.output_item.added', { output_index: this.outputIndex, item: this.soFar })
  }

  writeText(text: string, logprobs: readonly Json[] | undefined): string {
    const opening = this.#part?.kind === 'text' ? '' : this.#openPart('text')
    const part = this.#part!
    part.text += text
    if (logprobs === undefined) return opening + this.#frames.writeDelta(part.frame, text)
    for (const token of logprobs) part.logprobs.push(token)
    return opening + this.#frames.write('response.output_text.delta', { ...part.indexFields, delta: text, logprobs })
  }

  writeRefusal(text: string): string {
    const opening = this.#part?.kind === 'refusal' ? '' : this.#openPart('refusal')
    const part = this.#part!
    part.text += text
    return opening + this.#frames.writeDelta(part.frame, text)
  }

  annotate(annotation: JsonObject): string {
    const opening = this.#part?.kind === 'text' ? '' : this.#openPart('text')
    const part = this.#part!
    const position = { ...part.indexFields, annotation_index: part.annotations.length }
    part.annotations.push(annotation)
    return opening + this.#frames.write('response.output_text.annotation.added', { ...position, annotation })
  }

  /** The item as written so far, for clients that take a response's state as complete. */
  get soFar(): JsonObject {
    const content = this.#part === undefined ? this.#content : [...this.#content, written(this.#part)]
    return { type: 'message', id: this.#id, status: 'in_progress', role: 'assistant', content }
  }

  /** Ends the message; returns the frames and the item for the response's output. */
  close(status: 'completed' | 'incomplete'): { readonly frames: string; readonly item: JsonObject } {
    const ending = this.#closePart()
    const item = { type: 'message', id: this.#id, status, role: 'assistant', content: this.#content }
    const done = this.#frames.write('response.output_item.done', { output_index: this.outputIndex, item })
    return { frames: ending + done, item }
  }

  #openPart(kind: OpenPart['kind']): string {
    const ending = this.#closePart()
    const indexFields = { item_id: this.#id, output_index: this.outputIndex, content_index: this.#content.length }
    const frame =
      kind === 'text'
        ? deltaFrame('response.output_text.delta', indexFields, ',"logprobs":[]')
        : deltaFrame('response.refusal.delta', indexFields)
    this.#part = { kind, indexFields, frame, text: '', logprobs: [], annotations: [] }
    return ending + this.#frames.write('response.content_part.added', { ...indexFields, part: written(this.#part) })
  }

  #closePart(): string {
    const part = this.#part
    if (part === undefined) return ''
    this.#part = undefined
    const content = written(part)
    this.#content.push(content)
    const { indexFields, text, logprobs } = part
    const done =
      part.kind === 'text'
        ? this.#frames.write('response.output_text.done', { ...indexFields, text, logprobs })
        : this.#frames.write('response.refusal.done', { ...indexFields, refusal: text })
    return done + this.#frames.write('response.content_part.done', { ...indexFields, part: content })
  }
}

function written({ kind, text, annotations, logprobs }: OpenPart): JsonObject {
  return kind === 'text' ? { type: 'output_text', annotations, logprobs, text } : { type: 'refusal', refusal: text }
}
