import type { ConversationFormatId } from '../../../src/domain/format-id.ts'
import { type Json, type JsonObject, isObject } from '../../../src/domain/json.ts'

/** What a client understands of an answer. */
export interface ReadAnswer {
  readonly text: string
  /** Terminal events: the answer's regular end, and errors. */
  readonly finishes: number
  readonly errors: number
  /** What follows a terminal event and is no part of it. */
  readonly isAfterEnd: boolean
  /** The regular end says that the answer is complete and not shortened. */
  readonly isComplete: boolean
}

/** Reads a stream of any client format as strictly as a careful client. @throws Error if an event is malformed */
export function readStream(format: ConversationFormatId, body: string): ReadAnswer {
  const events = body.split('\n\n')
  const rest = events.pop()
  if (rest !== '') throw new Error(`the stream ends within an event: ${rest}`)
  const reader = readers[format]()
  for (const event of events) {
    const data = event
      .split('\n')
      .filter((line) => line.startsWith('data: '))
      .map((line) => line.slice(6))
      .join('\n')
    if (data !== '') reader.take(data)
  }
  return reader.read()
}

/** Reads a whole answer. */
export function readWhole(format: ConversationFormatId, body: string): ReadAnswer {
  const value = JSON.parse(body) as JsonObject
  const { text, isComplete } = wholes[format](value)
  return { text, finishes: 1, errors: 0, isAfterEnd: false, isComplete }
}

interface EventReader {
  take(data: string): void
  read(): ReadAnswer
}

abstract class Reader implements EventReader {
  protected text = ''
  protected finishes = 0
  protected errors = 0
  protected isAfterEnd = false
  protected isComplete = false

  abstract take(data: string): void

  read(): ReadAnswer {
    const { text, finishes, errors, isAfterEnd, isComplete } = this
    return { text, finishes, errors, isAfterEnd, isComplete }
  }

  protected object(data: string): JsonObject {
    const value: Json = JSON.parse(data)
    if (!isObject(value)) throw new Error(`an event is not an object: ${data}`)
    return value
  }
}

class ChatReader extends Reader {
  take(data: string): void {
    if (this.finishes + this.errors > 0 && data !== '[DONE]') this.isAfterEnd = true
    if (data === '[DONE]') {
      // After an error, some clients need it, too.
      if (this.errors === 0) this.finishes += 1
      return
    }
    const value = this.object(data)
    if (value.error !== undefined && value.error !== null) {
      this.errors += 1
      return
    }
    for (const choice of list(value.choices)) {
      const { content } = (choice.delta ?? {}) as JsonObject
      if (typeof content === 'string') this.text += content
      if (choice.finish_reason === 'stop') this.isComplete = true
    }
  }
}

class ResponsesReader extends Reader {
  take(data: string): void {
    if (data === '[DONE]') return
    const value = this.object(data)
    const { type } = value
    // An error event and `response.failed` report one failure.
    if (this.finishes + this.errors > 0 && !(this.errors === 1 && type === 'response.failed')) this.isAfterEnd = true
    if (type === 'response.output_text.delta') this.text += textOf(value.delta)
    else if (type === 'response.completed' || type === 'response.incomplete') {
      this.finishes += 1
      this.isComplete = type === 'response.completed'
    } else if (type === 'error' || (type === 'response.failed' && this.errors === 0)) this.errors += 1
  }
}

class MessagesReader extends Reader {
  take(data: string): void {
    const value = this.object(data)
    if (this.finishes + this.errors > 0) this.isAfterEnd = true
    const delta = (value.delta ?? {}) as JsonObject
    if (value.type === 'content_block_delta' && typeof delta.text === 'string') this.text += delta.text
    else if (value.type === 'message_delta') this.isComplete = delta.stop_reason === 'end_turn'
    else if (value.type === 'message_stop') this.finishes += 1
    else if (value.type === 'error') this.errors += 1
  }
}

const readers: Readonly<Record<ConversationFormatId, () => EventReader>> = {
  'openai-chat': () => new ChatReader(),
  'openai-responses': () => new ResponsesReader(),
  'anthropic-messages': () => new MessagesReader(),
}

const wholes: Readonly<Record<ConversationFormatId, (value: JsonObject) => { text: string; isComplete: boolean }>> = {
  'openai-chat': ({ choices }) => {
    const [choice] = list(choices)
    const { content } = (choice?.message ?? {}) as JsonObject
    return { text: textOf(content), isComplete: choice?.finish_reason === 'stop' }
  },
  'openai-responses': ({ output, status }) => ({
    text: list(output)
      .flatMap((item) => list(item.content))
      .map((part) => (part.type === 'output_text' ? textOf(part.text) : ''))
      .join(''),
    isComplete: status === 'completed',
  }),
  'anthropic-messages': ({ content, stop_reason }) => ({
    text: list(content)
      .map((part) => (part.type === 'text' ? textOf(part.text) : ''))
      .join(''),
    isComplete: stop_reason === 'end_turn',
  }),
}

function textOf(value: Json | undefined): string {
  return typeof value === 'string' ? value : ''
}

function list(value: Json | undefined): JsonObject[] {
  return Array.isArray(value) ? value.filter(isObject) : []
}
