import type { AnswerEvent, FinishReason, ServiceCall, Usage } from '../../domain/conversation.ts'
import type { Json, JsonObject } from '../../domain/json.ts'
import { responseIdFor } from '../../domain/stored-responses.ts'
import { UpstreamError } from '../../domain/upstream.ts'
import { CallIds } from '../call-ids.ts'
import { errorFields } from '../error-fields.ts'
import type { AnswerContext, AnswerWriter } from '../format.ts'
import type { StreamFailure } from '../stream-failure.ts'
import { ToolNames } from '../tool-names.ts'
import { CallItem } from './call-item.ts'
import { Frames } from './frames.ts'
import { MessageItem } from './message-item.ts'
import { ReasoningItem } from './reasoning-item.ts'
import { responseObject, type ResponseState } from './response-object.ts'
import { writeServiceCall } from './service-call-item.ts'

const done = 'data: [DONE]\n\n'

/** Writes one answer as Responses: items in sequence, each opened, filled, and closed. */
export class ResponsesWriter implements AnswerWriter {
  readonly #context: AnswerContext
  readonly #id: string
  readonly #frames = new Frames()
  readonly #callIds: CallIds
  #names: ToolNames | undefined
  /** Closed items by `output_index`. */
  readonly #output: Json[] = []
  #nextIndex = 0
  #open: MessageItem | ReasoningItem | undefined
  readonly #calls = new Map<number, CallItem>()
  #begun = false
  #usage: Usage | undefined
  #reason: FinishReason = 'stop'
  #report: JsonObject | undefined

  constructor(context: AnswerContext) {
    this.#context = context
    this.#id = responseIdFor(context.requestId)
    this.#callIds = new CallIds(context.mintId)
  }

  writeEvents(events: readonly AnswerEvent[]): string {
    let out = ''
    for (const event of events) {
      if (event.type === 'usage') this.#usage = event.usage
      else if (event.type !== 'start')
        out += this.#begun ? this.#writeEvent(event) : this.#begin() + this.#writeEvent(event)
    }
    return out
  }

  /**
   * Comments do not reset the idle timer of Codex, a repeated event does (contract 10.10). Clients take its state as
   * complete (openai 6 drops every item that is not in it), so it contains everything written so far.
   */
  writeKeepAlive(): string {
    if (!this.#begun) return this.#begin()
    const output = [...this.#output]
    if (this.#open !== undefined) output[this.#open.outputIndex] = this.#open.soFar
    for (const call of this.#calls.values()) output[call.outputIndex] = call.soFar
    return this.#writeState('response.in_progress', { status: 'in_progress', output })
  }

  writeEnd(): string {
    const state = this.#endState()
    return `${this.#writeState(`response.${state.status}`, state)}${done}`
  }

  writeFailure(failure: StreamFailure): string {
    const { code, message, param } = failure
    const opening = this.#begun ? '' : this.#begin()
    // Clients read either the flat or the nested form (contract 10.3).
    const error = this.#frames.write('error', { code, message, param, error: errorFields(failure) })
    const failed = this.#writeState('response.failed', { status: 'failed', output: [], error: { code, message } })
    return `${opening}${error}${failed}${done}`
  }

  writeWhole(events: readonly AnswerEvent[]): JsonObject {
    this.#frames.mute()
    this.writeEvents(events)
    return responseObject(this.#id, this.#context, this.#endState())
  }

  #begin(): string {
    this.#begun = true
    const state = { status: 'in_progress', output: [] } as const
    return this.#writeState('response.created', state) + this.#writeState('response.in_progress', state)
  }

  #endState(): ResponseState {
    const end = {
      output: this.#output,
      ...(this.#usage !== undefined && { usage: this.#usage }),
      ...(this.#report !== undefined && { report: this.#report }),
    }
    if (this.#reason === 'length') return { ...end, status: 'incomplete', incompleteReason: 'max_output_tokens' }
    if (this.#reason === 'content_filter') return { ...end, status: 'incomplete', incompleteReason: 'content_filter' }
    return { ...end, status: 'completed', completedAt: this.#context.nowSeconds() }
  }

  #writeState(type: string, state: ResponseState): string {
    return this.#frames.write(type, { response: responseObject(this.#id, this.#context, state) })
  }

  #writeEvent(event: AnswerEvent): string {
    switch (event.type) {
      case 'text':
        if (this.#open?.kind === 'message') return this.#open.writeText(event.text, event.logprobs)
        return this.#inMessage((item) => item.writeText(event.text, event.logprobs))
      case 'refusal':
        return this.#inMessage((item) => item.writeRefusal(event.text))
      case 'annotation':
        return this.#inMessage((item) => item.annotate(event.annotation))
      case 'reasoning':
        return this.#think(event.text)
      case 'reasoning_end':
        return this.#endThought(event.sealed)
      case 'call':
        return this.#openCall(event)
      case 'call_arguments': {
        const call = this.#calls.get(event.index)
        if (call !== undefined) return call.write(event.text)
        // Whitespace may follow a call's complete arguments; anything else is not JSON.
        if (event.text.trim() !== '') throw new UpstreamError('broken')
        return ''
      }
      case 'service_call':
        return this.#serviceCall(event)
      case 'report':
        this.#report = event.report
        return ''
      case 'finish':
        return this.#finish(event.reason)
      case 'start':
      case 'usage':
        return ''
    }
  }

  #inMessage(write: (item: MessageItem) => string): string {
    if (this.#open?.kind === 'message') return write(this.#open)
    const ending = this.#closeOpen('completed') + this.#closeCompleteCalls()
    const item = new MessageItem(this.#frames, this.#nextIndex++, `msg_${this.#context.mintId()}`)
    this.#open = item
    return ending + item.open() + write(item)
  }

  #think(text: string): string {
    if (this.#open?.kind === 'reasoning') return this.#open.write(text)
    const { opening, item } = this.#openReasoning()
    return opening + item.write(text)
  }

  #openReasoning(): { readonly opening: string; readonly item: ReasoningItem } {
    const ending = this.#closeOpen('completed') + this.#closeCompleteCalls()
    const item = new ReasoningItem(this.#frames, this.#nextIndex++, `rs_${this.#context.mintId()}`)
    this.#open = item
    return { opening: ending + item.open(), item }
  }

  #endThought(sealed: string | undefined): string {
    if (this.#open?.kind === 'reasoning') return this.#closeOpen('completed', sealed)
    if (sealed === undefined) return ''
    const { opening } = this.#openReasoning()
    return opening + this.#closeOpen('completed', sealed)
  }

  #serviceCall(call: ServiceCall): string {
    const ending = this.#closeOpen('completed') + this.#closeCompleteCalls()
    const index = this.#nextIndex++
    const { frames, item } = writeServiceCall(this.#frames, index, this.#context.mintId(), call)
    this.#output[index] = item
    return ending + frames
  }

  #openCall(event: Extract<AnswerEvent, { readonly type: 'call' }>): string {
    const ending = this.#closeOpen('completed') + this.#closeCompleteCalls()
    this.#names ??= new ToolNames(this.#context.conversation.tools)
    const identity = this.#names.identify(event)
    const callId = this.#callIds.unique(event.id)
    const item = new CallItem(this.#frames, this.#nextIndex++, this.#context.mintId, callId, identity)
    this.#calls.set(event.index, item)
    return ending + item.open()
  }

  #finish(reason: FinishReason): string {
    this.#reason = reason
    const lastStatus = reason === 'length' || reason === 'content_filter' ? 'incomplete' : 'completed'
    const statusOf = (index: number): typeof lastStatus => (index === this.#nextIndex - 1 ? lastStatus : 'completed')
    let out = this.#open === undefined ? '' : this.#closeOpen(statusOf(this.#open.outputIndex))
    for (const [index, call] of this.#calls) out += this.#closeCall(index, call, statusOf(call.outputIndex))
    return out
  }

  #closeOpen(status: 'completed' | 'incomplete', sealed?: string): string {
    const open = this.#open
    if (open === undefined) return ''
    this.#open = undefined
    const { frames, item } = open.kind === 'message' ? open.close(status) : open.close(sealed)
    this.#output[open.outputIndex] = item
    return frames
  }

  /** A call stays open while more arguments may arrive: some providers interleave the arguments of parallel calls. */
  #closeCompleteCalls(): string {
    let out = ''
    for (const [index, call] of this.#calls) if (call.isComplete) out += this.#closeCall(index, call, 'completed')
    return out
  }

  #closeCall(index: number, call: CallItem, status: 'completed' | 'incomplete'): string {
    this.#calls.delete(index)
    const { frames, item } = call.close(status)
    this.#output[call.outputIndex] = item
    return frames
  }
}
