import type { AnswerEvent, FinishReason, Usage } from '../../domain/conversation.ts'
import type { Json, JsonObject } from '../../domain/json.ts'
import { CallIds } from '../call-ids.ts'
import { unwrapInput } from '../custom-tools.ts'
import { errorFields } from '../error-fields.ts'
import { shownModel, type AnswerContext, type AnswerWriter } from '../format.ts'
import { writeServiceTier } from '../openai/service-tier.ts'
import type { StreamFailure } from '../stream-failure.ts'
import { ToolNames } from '../tool-names.ts'
import { writeUsage } from './usage.ts'
import { writeAnnotation, writeCall, writeWhole } from './write-whole.ts'

const done = 'data: [DONE]\n\n'

interface OpenCall {
  readonly kind: 'function' | 'custom'
  /** The arguments of a custom call so far, if its input must be extracted from them. */
  wrapped: string | undefined
  isEmpty: boolean
}

/** Writes one answer as chat completions. */
export class ChatWriter implements AnswerWriter {
  readonly #context: AnswerContext
  readonly #id: string
  /** The JSON text before and after the delta in every chunk. */
  readonly #head: string
  readonly #tail: string
  readonly #text: string
  readonly #callIds: CallIds
  #names: ToolNames | undefined
  readonly #calls = new Map<number, OpenCall>()
  #begun = false
  #usage: Usage | undefined
  /** The member `svc_router` as JSON text with a leading comma; empty if there is no report. */
  #report = ''

  constructor(context: AnswerContext) {
    const { conversation, createdAt } = context
    this.#context = context
    this.#id = `chatcmpl_${context.requestId.replace(/^req_/, '')}`
    const { streamUsage } = conversation
    const model = shownModel(context)
    const fields = JSON.stringify({ id: this.#id, created: createdAt, model, object: 'chat.completion.chunk' })
    this.#head = `data: ${fields.slice(0, -1)},"choices":[`
    this.#tail = streamUsage ? '],"usage":null}\n\n' : ']}\n\n'
    this.#text = `${this.#head}{"index":0,"delta":{"content":`
    this.#callIds = new CallIds(context.mintId)
  }

  writeEvents(events: readonly AnswerEvent[]): string {
    let out = ''
    for (const event of events) {
      if (event.type === 'usage') this.#usage = event.usage
      else if (event.type === 'report') this.#report = `,"svc_router":${JSON.stringify(event.report)}`
      else if (event.type !== 'start') out += this.#begin(event) + this.#writeEvent(event)
    }
    return out
  }

  writeKeepAlive(): string {
    return ': keep-alive\n\n'
  }

  writeEnd(): string {
    if (!this.#context.conversation.streamUsage || this.#usage === undefined) return done
    const counted = JSON.stringify({ usage: writeUsage(this.#usage), ...writeServiceTier(this.#usage) })
    return `${this.#head}],${counted.slice(1, -1)}${this.#report}}\n\n${done}`
  }

  /** No finish reason, so that the answer does not look complete (contract 10.2). */
  writeFailure(failure: StreamFailure): string {
    return `data: ${JSON.stringify({ error: errorFields(failure) })}\n\n${done}`
  }

  writeWhole(events: readonly AnswerEvent[]): JsonObject {
    return writeWhole(events, this.#id, this.#context)
  }

  /** Writes the first chunk, which sets the role. It waits for content, because a call comes without text. */
  #begin(event: AnswerEvent): string {
    if (this.#begun) return ''
    this.#begun = true
    const content = event.type === 'call' || event.type === 'refusal' ? null : ''
    return this.#chunk({ role: 'assistant', content, refusal: null })
  }

  #writeEvent(event: AnswerEvent): string {
    switch (event.type) {
      case 'text':
        return this.#writeText(event.text, event.logprobs)
      case 'refusal':
        return this.#chunk({ refusal: event.text })
      case 'reasoning':
        return this.#chunk({ reasoning_content: event.text })
      case 'annotation': {
        const annotation = writeAnnotation(event.annotation)
        return annotation === undefined ? '' : this.#chunk({ annotations: [annotation] })
      }
      case 'call':
        return this.#openCall(event)
      case 'call_arguments':
        return this.#writeArguments(event.index, event.text)
      case 'finish':
        return this.#finish(event.reason)
      case 'start':
      case 'usage':
      case 'report':
      case 'service_call':
      case 'reasoning_end':
        return ''
    }
  }

  #writeText(text: string, logprobs: readonly Json[] | undefined): string {
    const rest = logprobs === undefined ? 'null' : JSON.stringify({ content: logprobs, refusal: null })
    return `${this.#text}${JSON.stringify(text)}},"logprobs":${rest},"finish_reason":null}${this.#tail}`
  }

  #openCall(event: Extract<AnswerEvent, { readonly type: 'call' }>): string {
    this.#names ??= new ToolNames(this.#context.conversation.tools)
    const { kind, name, wrapped } = this.#names.identify(event)
    this.#calls.set(event.index, { kind, wrapped: wrapped ? '' : undefined, isEmpty: true })
    const call = writeCall(this.#callIds.unique(event.id), kind, name, '')
    return this.#chunk({ tool_calls: [{ index: event.index, ...call }] })
  }

  #writeArguments(index: number, text: string): string {
    const call = this.#calls.get(index)
    if (call === undefined) throw new Error('arguments of a call that is not open')
    if (call.wrapped !== undefined) {
      call.wrapped += text
      return ''
    }
    call.isEmpty = false
    return this.#argumentsChunk(index, call.kind, text)
  }

  #finish(reason: FinishReason): string {
    let out = ''
    for (const [index, call] of this.#calls) {
      if (call.wrapped !== undefined) out += this.#argumentsChunk(index, 'custom', unwrapInput(call.wrapped))
      // Clients parse the arguments, and an empty string is not JSON.
      else if (call.isEmpty && call.kind === 'function') out += this.#argumentsChunk(index, 'function', '{}')
    }
    const last = `${out}${this.#head}{"index":0,"delta":{},"logprobs":null,"finish_reason":"${reason}"}`
    // Clients that did not request usage get no chunk after this one.
    const isLast = this.#report !== '' && !this.#context.conversation.streamUsage
    return isLast ? `${last}]${this.#report}}\n\n` : last + this.#tail
  }

  #argumentsChunk(index: number, kind: 'function' | 'custom', text: string): string {
    const field = kind === 'custom' ? '"custom":{"input":' : '"function":{"arguments":'
    const call = `{"index":${index},${field}${JSON.stringify(text)}}}`
    return `${this.#head}{"index":0,"delta":{"tool_calls":[${call}]},"logprobs":null,"finish_reason":null}${this.#tail}`
  }

  #chunk(delta: JsonObject): string {
    const json = JSON.stringify(delta)
    return `${this.#head}{"index":0,"delta":${json},"logprobs":null,"finish_reason":null}${this.#tail}`
  }
}
