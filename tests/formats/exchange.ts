import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { AnswerEvent, Conversation, FinishReason, Usage } from '../../src/domain/conversation.ts'
import type { Json, JsonObject } from '../../src/domain/json.ts'
import { wrapInput } from '../../src/formats/custom-tools.ts'
import type { AnswerContext, Dialect, Format, WriteTarget } from '../../src/formats/format.ts'
import { SseReader, type SseEvent } from '../../src/formats/sse.ts'

const fixtures = join(import.meta.dirname, '..', 'fixtures')
export const createdAt = 1795191401

const dialect: Dialect = {
  maxTokensField: 'max_completion_tokens',
  developerRole: true,
  streamUsage: true,
  replaysReasoning: true,
  refusedFields: [],
}

export function targetOf(conversation: Conversation, changes: Partial<Dialect> = {}): WriteTarget {
  return { model: 'backend-model', stream: conversation.stream, dialect: { ...dialect, ...changes } }
}

export function contextOf(conversation: Conversation): AnswerContext {
  let minted = 0
  return {
    conversation,
    requestId: 'req_0123456789',
    createdAt,
    nowSeconds: () => createdAt,
    isStored: conversation.hints.store ?? true,
    mintId: () => `minted${(minted += 1)}`,
  }
}

export interface RecordedRequest {
  readonly file: string
  readonly method: string
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body?: JsonObject
}

export function recordedRequests(): RecordedRequest[] {
  const folder = join(fixtures, 'client-requests')
  return readdirSync(folder).map((file) => ({ file, ...JSON.parse(readFileSync(join(folder, file), 'utf8')) }))
}

export function golden(name: string): string {
  return readFileSync(join(fixtures, 'golden', name), 'utf8')
}

export function parseSse(text: string): SseEvent[] {
  const reader = new SseReader()
  return [...reader.push(Buffer.from(text, 'utf8')), ...reader.end()]
}

/** The data of every event that is JSON, in order. */
export function dataOf(text: string): JsonObject[] {
  return parseSse(text).flatMap(({ data }) => (data === '[DONE]' ? [] : [JSON.parse(data) as JsonObject]))
}

/** A complete stream: the events one at a time, as a reader returns them, and the end. */
export function writeStream(format: Format, events: readonly AnswerEvent[], context: AnswerContext): string {
  const writer = format.writeAnswer(context)
  let text = ''
  for (const event of events) text += writer.writeEvents([event])
  return text + writer.writeEnd()
}

export function readStream(format: Format, text: string): { events: AnswerEvent[]; finished: boolean } {
  const reader = format.readAnswer()
  const events: AnswerEvent[] = []
  for (const { data } of parseSse(text)) events.push(...reader.readEvent(data))
  return { events, finished: reader.finished }
}

interface Call {
  readonly kind: string
  readonly id: string
  readonly name: string
  readonly namespace: string | undefined
  arguments: string
}

/** The content of an answer, however it was split into events. */
export interface Content {
  text: string
  refusal: string
  reasoning: string
  sealed: string[]
  logprobs: Json[]
  annotations: Json[]
  calls: Call[]
  usage: Usage | undefined
  reasons: FinishReason[]
}

export function contentOf(events: readonly AnswerEvent[]): Content {
  const content: Content = {
    text: '',
    refusal: '',
    reasoning: '',
    sealed: [],
    logprobs: [],
    annotations: [],
    calls: [],
    usage: undefined,
    reasons: [],
  }
  for (const event of events) {
    if (event.type === 'text') {
      content.text += event.text
      content.logprobs.push(...(event.logprobs ?? []))
    } else if (event.type === 'refusal') content.refusal += event.text
    else if (event.type === 'reasoning') content.reasoning += event.text
    else if (event.type === 'reasoning_end' && event.sealed !== undefined) content.sealed.push(event.sealed)
    else if (event.type === 'annotation') content.annotations.push(event.annotation)
    else if (event.type === 'call') {
      const { kind, id, name, namespace, index } = event
      content.calls[index] = { kind, id, name, namespace, arguments: '' }
    } else if (event.type === 'call_arguments') content.calls[event.index]!.arguments += event.text
    else if (event.type === 'usage') content.usage = event.usage
    else if (event.type === 'finish') content.reasons.push(event.reason)
  }
  return content
}

/**
 * The part that all these formats can express. Messages have no field for a refusal's text, no probabilities, no
 * positions of citations, and no free-text tools. Their stop reason labels a refusal (contract 7.29).
 */
export function encodableContent(content: Content, ...formats: readonly Format[]): Content {
  if (!formats.some(({ id }) => id === 'anthropic-messages')) return content
  return {
    ...content,
    text: content.text + content.refusal,
    refusal: '',
    reasons: content.reasons.map((reason) => (content.refusal !== '' && reason === 'stop' ? 'content_filter' : reason)),
    logprobs: [],
    annotations: content.annotations.map((annotation) => {
      const { type, url, title } = annotation as JsonObject
      return { type, url, title }
    }),
    calls: content.calls.map((call) =>
      call.kind === 'custom' ? { ...call, kind: 'function', arguments: wrapInput(call.arguments) } : call,
    ),
  }
}
