import type { Json, JsonObject } from '../../domain/json.ts'
import { wrapInput } from '../custom-tools.ts'
import { ObjectProgress } from '../object-progress.ts'
import { signatureFrom } from './encrypted-reasoning.ts'
import { frame } from './frames.ts'
import { writeInput } from './write-parts.ts'

/** One content block of an answer while it is written. Until it is opened it buffers its content. */
export abstract class AnswerBlock {
  /** The whole text so far. */
  protected content = ''
  #waiting = ''
  #index = -1
  #head = ''

  /** Whether nothing more can be added to it. */
  abstract readonly isEnded: boolean
  /** Whether it may be closed, now that another block is waiting. */
  abstract readonly canEnd: boolean
  /** The block in its start event. */
  protected abstract readonly opening: JsonObject
  /** The block of a whole answer. */
  abstract readonly whole: JsonObject
  /** The type of its deltas and the name of their text field. */
  protected abstract readonly deltaNames: readonly [type: string, field: string]

  add(text: string): void {
    this.content += text
    this.#waiting += text
  }

  open(index: number): string {
    const [type, field] = this.deltaNames
    this.#index = index
    this.#head = `event: content_block_delta\ndata: {"type":"content_block_delta","index":${index},"delta":{"type":"${type}","${field}":`
    return frame('content_block_start', { index, content_block: this.opening })
  }

  /** The event for everything added since the last flush; empty if nothing was. */
  flush(): string {
    if (this.#waiting === '') return ''
    const text = this.#waiting
    this.#waiting = ''
    return this.write(text)
  }

  close(): string {
    return frame('content_block_stop', { index: this.#index })
  }

  /** Hot path: only the text of a delta is serialized as JSON. */
  protected write(text: string): string {
    return `${this.#head}${JSON.stringify(text)}}}\n\n`
  }

  protected writeDelta(delta: JsonObject): string {
    return frame('content_block_delta', { index: this.#index, delta })
  }
}

export class TextBlock extends AnswerBlock {
  readonly isEnded = false
  readonly canEnd = true
  protected readonly opening = { type: 'text', text: '' }
  protected readonly deltaNames = ['text_delta', 'text'] as const
  readonly #citations: JsonObject[] = []
  #citedBefore = 0

  get whole(): JsonObject {
    const block = { type: 'text', text: this.content }
    return this.#citations.length === 0 ? block : { ...block, citations: this.#citations }
  }

  /** Adds a citation from another format; kinds without a URL are ignored. */
  cite({ type, url, title }: JsonObject): void {
    if (type !== 'url_citation' || typeof url !== 'string') return
    const named: Json = typeof title === 'string' ? title : null
    this.#citations.push({
      type: 'web_search_result_location',
      url,
      title: named,
      cited_text: '',
      encrypted_index: '',
    })
  }

  override flush(): string {
    let out = super.flush()
    while (this.#citedBefore < this.#citations.length) {
      const citation = this.#citations[this.#citedBefore++]
      out += this.writeDelta({ type: 'citations_delta', citation })
    }
    return out
  }
}

export class ThinkingBlock extends AnswerBlock {
  isEnded = false
  readonly canEnd = true
  protected readonly opening = { type: 'thinking', thinking: '', signature: '' }
  protected readonly deltaNames = ['thinking_delta', 'thinking'] as const
  #sealed: string | undefined

  get whole(): JsonObject {
    return { type: 'thinking', thinking: this.content, signature: signatureFrom(this.#sealed) }
  }

  /** Ends the thinking block; `sealed` is the encrypted reasoning. */
  seal(sealed: string | undefined): void {
    this.#sealed = sealed
    this.isEnded = true
  }

  override close(): string {
    return this.writeDelta({ type: 'signature_delta', signature: signatureFrom(this.#sealed) }) + super.close()
  }
}

/** Encrypted reasoning that only its provider can read. */
export class RedactedBlock extends AnswerBlock {
  readonly isEnded = true
  readonly canEnd = true
  readonly whole: JsonObject
  protected readonly opening: JsonObject
  /** It has no deltas: its start event is complete. */
  protected readonly deltaNames = ['', ''] as const

  constructor(data: string) {
    super()
    this.opening = this.whole = { type: 'redacted_thinking', data }
  }
}

export class ToolUseBlock extends AnswerBlock {
  readonly isEnded = false
  protected readonly opening: JsonObject
  protected readonly deltaNames = ['input_json_delta', 'partial_json'] as const
  /** Whether the input is free text, which this format must wrap in an object. */
  readonly #isText: boolean
  readonly #progress = new ObjectProgress()

  constructor(id: string, name: string, isText: boolean) {
    super()
    this.opening = { type: 'tool_use', id, name, input: {} }
    this.#isText = isText
  }

  /**
   * Whether the arguments are a complete JSON object, so that nothing can follow. Free text is never known to be
   * complete.
   */
  get canEnd(): boolean {
    return !this.#isText && this.#progress.hasEnded(() => this.content)
  }

  get whole(): JsonObject {
    return { ...this.opening, input: this.#isText ? { input: this.content } : writeInput(this.content) }
  }

  override add(text: string): void {
    super.add(text)
    if (!this.#isText) this.#progress.add(text)
  }

  override flush(): string {
    return this.#isText ? '' : super.flush()
  }

  override close(): string {
    if (this.#isText) return this.write(wrapInput(this.content)) + super.close()
    // Clients parse the arguments, and an empty string is not JSON.
    return (this.content === '' ? this.write('{}') : '') + super.close()
  }
}
