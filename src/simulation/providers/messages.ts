import type { JsonObject } from '../../domain/json.ts'
import { callId, piecesOf, type AnswerStamp } from './chat.ts'
import { wordsOf, type SimulatedAnswer } from './model.ts'
import type { Prompt } from './prompt.ts'

const stopReasons = { stop: 'end_turn', length: 'max_tokens', tool_calls: 'tool_use' } as const

/** Builds a whole message. */
export function writeMessage(answer: SimulatedAnswer, prompt: Prompt, stamp: AnswerStamp): JsonObject {
  return {
    ...headOf(prompt, stamp),
    content: blocksOf(answer, prompt, stamp),
    ...endOf(answer),
    usage: usageOf(answer, stamp),
  }
}

/** The same as server-sent events, each a whole block; the last is `message_stop`. */
export function* streamMessage(answer: SimulatedAnswer, prompt: Prompt, stamp: AnswerStamp): Generator<string> {
  const usage = { ...usageOf(answer, stamp), output_tokens: 1 }
  const end = { stop_reason: null, stop_sequence: null }
  yield frame('message_start', { message: { ...headOf(prompt, stamp), content: [], ...end, usage } })
  yield frame('ping', {})
  for (const [index, block] of blocksOf(answer, prompt, stamp).entries()) {
    const [opened, deltas] = partsOf(block)
    yield frame('content_block_start', { index, content_block: opened })
    for (const delta of deltas) yield frame('content_block_delta', { index, delta })
    yield frame('content_block_stop', { index })
  }
  yield frame('message_delta', { delta: endOf(answer), usage: { output_tokens: answer.outputTokens } })
  yield frame('message_stop', {})
}

/** An error in the middle of a stream. */
export function streamMessageError(message: string): string {
  return frame('error', { error: { type: 'api_error', message } })
}

/** The body of an error. */
export function messageErrorBody(type: string, message: string): JsonObject {
  return { type: 'error', error: { type, message } }
}

function blocksOf(answer: SimulatedAnswer, prompt: Prompt, stamp: AnswerStamp): JsonObject[] {
  const blocks: JsonObject[] = []
  if (answer.reasoning !== undefined) {
    const signature = stamp.sealed ?? ''
    blocks.push({ type: 'thinking', thinking: prompt.hidesReasoning ? '' : answer.reasoning, signature })
  }
  if (answer.text !== undefined) blocks.push({ type: 'text', text: answer.text })
  for (const [position, call] of answer.calls.entries()) {
    const input = JSON.parse(call.arguments) as JsonObject
    blocks.push({ type: 'tool_use', id: `toolu_${callId(stamp, position)}`, name: call.name, input })
  }
  return blocks
}

/** Splits a block into its start and its deltas. */
function partsOf(block: JsonObject): readonly [opened: JsonObject, deltas: readonly JsonObject[]] {
  const { type, text = '', thinking = '', signature } = block as Readonly<Record<string, string>>
  if (type === 'text') {
    return [{ ...block, text: '' }, wordsOf(text).map((word) => ({ type: 'text_delta', text: word }))]
  }
  if (type === 'tool_use') {
    const pieces = ['', ...piecesOf(JSON.stringify(block.input))]
    return [{ ...block, input: {} }, pieces.map((piece) => ({ type: 'input_json_delta', partial_json: piece }))]
  }
  const thoughts = wordsOf(thinking).map((word) => ({ type: 'thinking_delta', thinking: word }))
  return [
    { ...block, thinking: '', signature: '' },
    [...thoughts, { type: 'signature_delta', signature: signature ?? '' }],
  ]
}

function frame(type: string, fields: JsonObject): string {
  return `event: ${type}\ndata: ${JSON.stringify({ type, ...fields })}\n\n`
}

function headOf(prompt: Prompt, stamp: AnswerStamp): JsonObject {
  return { id: `msg_${stamp.id}`, type: 'message', role: 'assistant', model: prompt.model }
}

function endOf(answer: SimulatedAnswer): JsonObject {
  return { stop_reason: stopReasons[answer.finish], stop_sequence: null }
}

function usageOf(answer: SimulatedAnswer, { cache }: AnswerStamp): JsonObject {
  const [written5m, written1h] = [cache?.written5mTokens ?? 0, cache?.written1hTokens ?? 0]
  return {
    input_tokens: cache?.newTokens ?? answer.inputTokens,
    cache_creation_input_tokens: written5m + written1h,
    cache_read_input_tokens: cache?.readTokens ?? 0,
    ...(cache !== undefined && {
      cache_creation: { ephemeral_5m_input_tokens: written5m, ephemeral_1h_input_tokens: written1h },
    }),
    output_tokens: answer.outputTokens,
    output_tokens_details: { thinking_tokens: answer.reasoningTokens },
    service_tier: 'standard',
  }
}
