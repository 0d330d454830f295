import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { FormatId } from '../../../src/domain/format-id.ts'
import type { Dice } from '../dice.ts'
import { randomUsage, type RawUsage } from './raw-usage.ts'

/** What a provider did with one call. */
export interface MeteredCall {
  readonly backend: string
  readonly format: FormatId
  /** `rejected`: an error status. `early`, `cut`: the connection broke before or after the text. */
  readonly end: 'whole' | 'rejected' | 'early' | 'cut'
  /** The usage as the provider wrote it, and the members beside it that change its price. */
  readonly raw: RawUsage | undefined
  /** Whether everything was sent before the client left. */
  isSent: boolean
}

/**
 * Simulated providers of four formats behind one port: random answers with random usage in the spellings that real
 * providers use. Some reject, and some break off. `calls` has every call by the ID that was sent with it.
 */
export class MeteredProviders {
  readonly calls = new Map<string, MeteredCall[]>()
  readonly #dice: Dice
  readonly #server: Server
  #faults = true

  private constructor(dice: Dice) {
    this.#dice = dice
    this.#server = createServer((request, response) => void this.#serve(request, response))
    this.#server.keepAliveTimeout = 60_000
  }

  static async start(dice: Dice): Promise<MeteredProviders> {
    const providers = new MeteredProviders(dice)
    await new Promise<void>((resolve) => providers.#server.listen(0, '127.0.0.1', resolve))
    return providers
  }

  /** The base URL of a backend, whose name starts with its format. */
  baseUrlOf(backend: string): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/${backend}`
  }

  /** Whether calls fail at all. */
  set faults(on: boolean) {
    this.#faults = on
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections()
    await new Promise((resolve) => this.#server.close(resolve))
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    let text = ''
    for await (const chunk of request) text += String(chunk)
    const [, backend = '', ...rest] = (request.url ?? '').split('/')
    const format = formatOf(rest.join('/'))
    const stream =
      format === 'gemini'
        ? rest.join('/').includes('stream')
        : (JSON.parse(text) as { stream?: boolean }).stream === true
    const id = String(request.headers['x-request-id'])
    const end = this.#end(stream)
    const isCounted = this.#dice.upTo(24) !== 0
    const raw = isCounted ? randomUsage(format, this.#dice) : undefined
    const call: MeteredCall = { backend, format, end, raw, isSent: false }
    this.calls.set(id, [...(this.calls.get(id) ?? []), call])
    response.on('finish', () => (call.isSent = true))
    if (end === 'rejected') {
      response.writeHead(500, { 'content-type': 'application/json' })
      response.end('{"error":{"message":"out of order","type":"server_error"}}')
      return
    }
    const pieces = stream ? streamOf(format, raw) : [JSON.stringify(wholeOf(format, raw))]
    response.writeHead(200, { 'content-type': stream ? 'text/event-stream' : 'application/json' })
    if (end === 'whole') {
      for (const piece of pieces) response.write(piece)
      response.end()
      return
    }
    // Before any text: after the first event, which in messages has the usage of the input.
    const kept = end === 'early' ? 1 : Math.max(2, pieces.length - 2)
    response.write(pieces.slice(0, kept).join(''), () => setTimeout(() => response.destroy(), 2))
  }

  #end(stream: boolean): MeteredCall['end'] {
    if (!this.#faults) return 'whole'
    const thrown = this.#dice.upTo(99)
    if (thrown < 3) return 'rejected'
    if (!stream) return 'whole'
    return thrown < 6 ? 'early' : thrown < 10 ? 'cut' : 'whole'
  }
}

function formatOf(path: string): FormatId {
  if (path.endsWith('/chat/completions') || path.startsWith('chat/completions')) return 'openai-chat'
  if (path.startsWith('responses')) return 'openai-responses'
  return path.startsWith('messages') ? 'anthropic-messages' : 'gemini'
}

const words = ['Metered ', 'answers ', 'have ', 'words.']
const said = words.join('')

function wholeOf(format: FormatId, raw: RawUsage | undefined): object {
  const { usage, beside = {} } = raw ?? {}
  switch (format) {
    case 'openai-chat':
      return {
        id: 'chatcmpl-1',
        object: 'chat.completion',
        created: 1,
        model: 'metered',
        choices: [{ index: 0, message: { role: 'assistant', content: said }, finish_reason: 'stop' }],
        ...(usage && { usage }),
        ...beside,
      }
    case 'openai-responses':
      return { ...response('completed', usage), ...beside }
    case 'anthropic-messages':
      return {
        id: 'msg_1',
        type: 'message',
        role: 'assistant',
        model: 'metered',
        content: [{ type: 'text', text: said }],
        stop_reason: 'end_turn',
        stop_sequence: null,
        ...(usage && { usage }),
      }
    default:
      return {
        candidates: [{ index: 0, content: { role: 'model', parts: [{ text: said }] }, finishReason: 'STOP' }],
        ...(usage && { usageMetadata: usage }),
      }
  }
}

function response(status: string, usage?: object): object {
  const content = [{ type: 'output_text', text: said, annotations: [] }]
  const message = { id: 'item_1', type: 'message', role: 'assistant', status: 'completed', content }
  const output = status === 'completed' ? [message] : []
  return { id: 'resp_1', object: 'response', created_at: 1, model: 'metered', status, output, ...(usage && { usage }) }
}

/** The events of a stream: the first has no text, and the last two end it. */
function streamOf(format: FormatId, raw: RawUsage | undefined): string[] {
  switch (format) {
    case 'openai-chat':
      return chatStream(raw)
    case 'openai-responses':
      return responsesStream(raw)
    case 'anthropic-messages':
      return messagesStream(raw)
    default:
      return geminiStream(raw)
  }
}

const data = (event: object): string => `data: ${JSON.stringify(event)}\n\n`
const named = (event: { readonly type: string; readonly [member: string]: unknown }): string =>
  `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`

function chatStream({ usage, beside = {} }: Partial<RawUsage> = {}): string[] {
  const chunk = (more: object): string =>
    data({ id: 'chatcmpl-1', object: 'chat.completion.chunk', created: 1, model: 'metered', ...more })
  const choice = (delta: object, reason: string | null = null) => [{ index: 0, delta, finish_reason: reason }]
  return [
    chunk({ choices: choice({ role: 'assistant', content: '' }), ...beside }),
    ...words.map((content) => chunk({ choices: choice({ content }) })),
    chunk({ choices: choice({}, 'stop') }),
    ...(usage === undefined ? [] : [chunk({ choices: [], usage })]),
    'data: [DONE]\n\n',
  ]
}

function responsesStream({ usage, beside = {} }: Partial<RawUsage> = {}): string[] {
  const part = { item_id: 'item_1', output_index: 0, content_index: 0 }
  const item = { id: 'item_1', type: 'message', role: 'assistant', status: 'in_progress', content: [] }
  return [
    named({ type: 'response.created', response: response('in_progress') }),
    named({ type: 'response.output_item.added', output_index: 0, item }),
    named({
      type: 'response.content_part.added',
      ...part,
      part: { type: 'output_text', text: '', annotations: [] },
    }),
    ...words.map((delta) => named({ type: 'response.output_text.delta', ...part, delta })),
    named({ type: 'response.output_text.done', ...part, text: said }),
    named({ type: 'response.completed', response: { ...response('completed', usage), ...beside } }),
  ]
}

function messagesStream({ usage, last }: Partial<RawUsage> = {}): string[] {
  const message = { id: 'msg_1', type: 'message', role: 'assistant', model: 'metered', content: [], stop_reason: null }
  const begun = usage === undefined ? {} : { usage: { ...usage, output_tokens: 1 } }
  return [
    named({ type: 'message_start', message: { ...message, ...begun } }),
    named({ type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } }),
    ...words.map((text) => named({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text } })),
    named({ type: 'content_block_stop', index: 0 }),
    named({
      type: 'message_delta',
      delta: { stop_reason: 'end_turn', stop_sequence: null },
      ...(last && { usage: last }),
    }),
    named({ type: 'message_stop' }),
  ]
}

function geminiStream({ usage }: Partial<RawUsage> = {}): string[] {
  const piece = (text: string, more: object = {}) => ({
    candidates: [{ index: 0, content: { role: 'model', parts: text === '' ? [] : [{ text }] }, ...more }],
  })
  return [
    data({ ...piece(''), modelVersion: 'metered' }),
    ...words.map((text) => data(piece(text))),
    data({ ...piece('', { finishReason: 'STOP' }), ...(usage && { usageMetadata: usage }) }),
  ]
}
