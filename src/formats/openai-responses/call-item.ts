import type { JsonObject } from '../../domain/json.ts'
import { unwrapInput } from '../custom-tools.ts'
import { ObjectProgress } from '../object-progress.ts'
import type { CallIdentity } from '../tool-names.ts'
import { type DeltaFrame, deltaFrame, type Frames } from './frames.ts'

/** One tool call while it is written, in the form in which the caller declared the tool. */
export class CallItem {
  readonly kind = 'call'
  readonly outputIndex: number
  readonly #frames: Frames
  readonly #id: string
  readonly #callId: string
  readonly #identity: CallIdentity
  readonly #frame: DeltaFrame
  #text = ''
  readonly #progress = new ObjectProgress()

  constructor(frames: Frames, outputIndex: number, mintId: () => string, callId: string, identity: CallIdentity) {
    this.#frames = frames
    this.outputIndex = outputIndex
    this.#id = `${identity.kind === 'custom' ? 'ctc' : 'fc'}_${mintId()}`
    this.#callId = callId
    this.#identity = identity
    this.#frame = deltaFrame(`${this.#event}.delta`, this.#indexFields)
  }

  open(): string {
    return this.#frames.write('response.output_item.added', { output_index: this.outputIndex, item: this.soFar })
  }

  /** The item as written so far. */
  get soFar(): JsonObject {
    return this.#item(this.#identity.wrapped ? '' : this.#text, 'in_progress')
  }

  write(text: string): string {
    this.#text += text
    this.#progress.add(text)
    // The input can only be extracted from the arguments once they are complete.
    return this.#identity.wrapped ? '' : this.#frames.writeDelta(this.#frame, text)
  }

  /**
   * Whether the arguments are a complete JSON object, so that nothing can follow. Free text is never known to be
   * complete.
   */
  get isComplete(): boolean {
    const isText = this.#identity.kind === 'custom' && !this.#identity.wrapped
    return !isText && this.#progress.hasEnded(() => this.#text)
  }

  close(status: 'completed' | 'incomplete'): { readonly frames: string; readonly item: JsonObject } {
    const isFunction = this.#identity.kind === 'function'
    let frames = ''
    if (this.#identity.wrapped) {
      this.#text = unwrapInput(this.#text)
      frames += this.#frames.writeDelta(this.#frame, this.#text)
    } else if (this.#text === '' && isFunction && status === 'completed') {
      // Clients parse the arguments, and an empty string is not JSON.
      this.#text = '{}'
      frames += this.#frames.writeDelta(this.#frame, this.#text)
    }
    const content = isFunction ? { name: this.#identity.name, arguments: this.#text } : { input: this.#text }
    frames += this.#frames.write(`${this.#event}.done`, { ...this.#indexFields, ...content })
    // Clients accept no other final status of a custom call.
    const item = this.#item(this.#text, isFunction ? status : 'completed')
    frames += this.#frames.write('response.output_item.done', { output_index: this.outputIndex, item })
    return { frames, item }
  }

  get #event(): string {
    return this.#identity.kind === 'custom' ? 'response.custom_tool_call_input' : 'response.function_call_arguments'
  }

  get #indexFields(): JsonObject {
    return { item_id: this.#id, output_index: this.outputIndex }
  }

  #item(text: string, status: string): JsonObject {
    const { kind, name, namespace } = this.#identity
    return {
      type: kind === 'custom' ? 'custom_tool_call' : 'function_call',
      id: this.#id,
      call_id: this.#callId,
      name,
      ...(namespace !== undefined && { namespace }),
      ...(kind === 'custom' ? { input: text } : { arguments: text }),
      status,
    }
  }
}
