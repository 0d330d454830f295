import { type Json, type JsonObject, isObject } from '../../domain/json.ts'
import { inputOf } from '../caches/simulated-cache.ts'
import { callId, doneFrame, piecesOf, type AnswerStamp } from './chat.ts'
import { wordsOf, type SimulatedAnswer, type SimulatedCall } from './model.ts'

/** Builds a whole `response`. `body` is the request, much of which a response repeats. */
export function writeResponse(answer: SimulatedAnswer, body: JsonObject, stamp: AnswerStamp): JsonObject {
  return responseOf(body, stamp, answer, itemsOf(answer, body, stamp))
}

/** The same as server-sent events, each a whole block; the last is `[DONE]`. */
export function* streamResponse(answer: SimulatedAnswer, body: JsonObject, stamp: AnswerStamp): Generator<string> {
  let sequence = 0
  const event = (type: string, fields: JsonObject): string => {
    const text = JSON.stringify({ type, sequence_number: sequence, ...fields })
    sequence += 1
    return `event: ${type}\ndata: ${text}\n\n`
  }
  const items = itemsOf(answer, body, stamp)
  yield event('response.created', { response: responseOf(body, stamp) })
  yield event('response.in_progress', { response: responseOf(body, stamp) })
  for (const [index, item] of items.entries()) {
    yield event('response.output_item.added', { output_index: index, item: opened(item) })
    for (const [type, fields] of contentOf(item))
      yield event(type, { item_id: item.id, output_index: index, ...fields })
    yield event('response.output_item.done', { output_index: index, item })
  }
  const response = responseOf(body, stamp, answer, items)
  yield event(answer.finish === 'length' ? 'response.incomplete' : 'response.completed', { response })
  yield doneFrame
}

/** A failure in the middle of a stream: the two events that clients need (contract 10.3). */
export function streamResponseError(message: string, body: JsonObject, stamp: AnswerStamp, sequence: number): string {
  const error = { type: 'server_error', code: 'server_error', message, param: null }
  const failed = { ...responseOf(body, stamp), status: 'failed', error: { code: 'server_error', message } }
  const first = { ...error, type: 'error', sequence_number: sequence, error }
  const second = { type: 'response.failed', sequence_number: sequence + 1, response: failed }
  return `event: error\ndata: ${JSON.stringify(first)}\n\nevent: response.failed\ndata: ${JSON.stringify(second)}\n\n`
}

function itemsOf(answer: SimulatedAnswer, body: JsonObject, stamp: AnswerStamp): JsonObject[] {
  const items: JsonObject[] = []
  if (answer.reasoning !== undefined) {
    const sealed = Array.isArray(body.include) && body.include.includes('reasoning.encrypted_content')
    items.push({
      type: 'reasoning',
      id: `rs_${stamp.id}`,
      summary: [{ type: 'summary_text', text: answer.reasoning }],
      ...(sealed && stamp.sealed !== undefined ? { encrypted_content: stamp.sealed } : undefined),
    })
  }
  if (answer.text !== undefined) {
    items.push({
      type: 'message',
      id: `msg_${stamp.id}`,
      status: answer.finish === 'length' ? 'incomplete' : 'completed',
      role: 'assistant',
      content: [{ type: 'output_text', text: answer.text, annotations: [], logprobs: [] }],
    })
  }
  items.push(...answer.calls.map((call, position) => callItem(call, stamp, position)))
  return items
}

function callItem(call: SimulatedCall, stamp: AnswerStamp, position: number): JsonObject {
  const shared = {
    call_id: callId(stamp, position),
    name: call.name,
    ...(call.namespace === undefined ? undefined : { namespace: call.namespace }),
    status: 'completed',
  }
  return call.kind === 'custom'
    ? { type: 'custom_tool_call', id: `ctc_${stamp.id}${position}`, input: call.arguments, ...shared }
    : { type: 'function_call', id: `fc_${stamp.id}${position}`, arguments: call.arguments, ...shared }
}

/** An item in its start event. */
function opened(item: JsonObject): JsonObject {
  if (item.type === 'reasoning') return { ...item, summary: [] }
  if (item.type === 'message') return { ...item, status: 'in_progress', content: [] }
  return { ...item, status: 'in_progress', ...(item.type === 'custom_tool_call' ? { input: '' } : { arguments: '' }) }
}

/** The events between an item's `added` and `done`. */
function* contentOf(item: JsonObject): Generator<[string, JsonObject]> {
  if (item.type === 'reasoning') {
    const text = partText(item.summary)
    const index = { summary_index: 0 }
    yield ['response.reasoning_summary_part.added', { ...index, part: { type: 'summary_text', text: '' } }]
    for (const delta of wordsOf(text)) yield ['response.reasoning_summary_text.delta', { ...index, delta }]
    yield ['response.reasoning_summary_text.done', { ...index, text }]
    yield ['response.reasoning_summary_part.done', { ...index, part: { type: 'summary_text', text } }]
  } else if (item.type === 'message') {
    const text = partText(item.content)
    const index = { content_index: 0 }
    const part = { type: 'output_text', text, annotations: [], logprobs: [] }
    yield ['response.content_part.added', { ...index, part: { ...part, text: '' } }]
    for (const delta of wordsOf(text)) yield ['response.output_text.delta', { ...index, delta, logprobs: [] }]
    yield ['response.output_text.done', { ...index, text, logprobs: [] }]
    yield ['response.content_part.done', { ...index, part }]
  } else if (item.type === 'custom_tool_call') {
    const input = textOf(item.input)
    for (const delta of piecesOf(input)) yield ['response.custom_tool_call_input.delta', { delta }]
    yield ['response.custom_tool_call_input.done', { input }]
  } else {
    const text = textOf(item.arguments)
    for (const delta of piecesOf(text)) yield ['response.function_call_arguments.delta', { delta }]
    yield ['response.function_call_arguments.done', { name: item.name, arguments: text }]
  }
}

function textOf(value: Json | undefined): string {
  return typeof value === 'string' ? value : ''
}

function partText(parts: Json | undefined): string {
  const part = Array.isArray(parts) ? parts[0] : undefined
  return isObject(part) ? textOf(part.text) : ''
}

/** Request fields that a response repeats, and their defaults. */
const repeated: JsonObject = {
  instructions: null,
  max_output_tokens: null,
  metadata: {},
  model: '',
  parallel_tool_calls: true,
  previous_response_id: null,
  prompt_cache_key: null,
  safety_identifier: null,
  store: true,
  temperature: 1,
  tool_choice: 'auto',
  tools: [],
  top_p: 1,
  truncation: 'disabled',
}

function responseOf(
  body: JsonObject,
  stamp: AnswerStamp,
  answer?: SimulatedAnswer,
  output: JsonObject[] = [],
): JsonObject {
  const cut = answer?.finish === 'length'
  const reasoning = isObject(body.reasoning) ? body.reasoning : {}
  const text = isObject(body.text) ? body.text : {}
  return {
    ...Object.fromEntries(Object.entries(repeated).map(([name, usual]) => [name, body[name] ?? usual])),
    id: `resp_${stamp.id}`,
    object: 'response',
    created_at: stamp.createdAt,
    completed_at: answer === undefined || cut ? null : stamp.createdAt,
    status: answer === undefined ? 'in_progress' : cut ? 'incomplete' : 'completed',
    background: false,
    error: null,
    incomplete_details: cut ? { reason: 'max_output_tokens' } : null,
    max_tool_calls: null,
    output,
    reasoning: { effort: reasoning.effort ?? null, summary: reasoning.summary ?? null },
    service_tier: 'default',
    text: { format: text.format ?? { type: 'text' } },
    top_logprobs: 0,
    presence_penalty: 0,
    frequency_penalty: 0,
    usage: answer === undefined ? null : usageOf(answer, stamp),
  }
}

function usageOf(answer: SimulatedAnswer, { cache }: AnswerStamp): JsonObject {
  const input = cache === undefined ? answer.inputTokens : inputOf(cache)
  return {
    input_tokens: input,
    input_tokens_details: {
      cached_tokens: cache?.readTokens ?? 0,
      cache_write_tokens: cache?.written5mTokens ?? 0,
    },
    output_tokens: answer.outputTokens,
    output_tokens_details: { reasoning_tokens: answer.reasoningTokens },
    total_tokens: input + answer.outputTokens,
  }
}
