import type { Json, JsonObject } from '../../domain/json.ts'
import { inputOf, type CacheReport } from '../caches/simulated-cache.ts'
import { wordsOf, type SimulatedAnswer, type SimulatedCall } from './model.ts'
import type { Prompt } from './prompt.ts'

/** Id and time of one answer. */
export interface AnswerStamp {
  /** Letters and digits, unique within the provider. */
  readonly id: string
  /** Unix seconds. */
  readonly createdAt: number
  /** The encrypted form of reasoning, in formats that have it. */
  readonly sealed?: string
  /** What a simulated cache counted, in place of the usual count of input. */
  readonly cache?: CacheReport | undefined
}

/** Builds a whole `chat.completion`. */
export function writeChat(answer: SimulatedAnswer, prompt: Prompt, stamp: AnswerStamp): JsonObject {
  const message: JsonObject = {
    role: 'assistant',
    content: answer.text ?? null,
    refusal: null,
    ...(answer.reasoning === undefined ? undefined : { reasoning_content: answer.reasoning }),
    ...(answer.calls.length === 0
      ? undefined
      : { tool_calls: answer.calls.map((call, index) => writeCall(call, stamp, index)) }),
  }
  return {
    ...headOf(prompt, stamp, 'chat.completion'),
    choices: Array.from({ length: prompt.choices }, (_, index) => ({
      index,
      message,
      logprobs: prompt.logprobs ? logprobsOf(wordsOf(answer.text ?? '')) : null,
      finish_reason: answer.finish,
    })),
    usage: usageOf(answer, prompt, stamp),
  }
}

/** The same as server-sent events, each a whole `data:` block; the last is `[DONE]`. */
export function* streamChat(answer: SimulatedAnswer, prompt: Prompt, stamp: AnswerStamp): Generator<string> {
  const head = headOf(prompt, stamp, 'chat.completion.chunk')
  const usage = prompt.includeUsage ? { usage: null } : undefined
  const chunk = (index: number, delta: JsonObject, finish: string | null = null, logprobs: Json = null): string =>
    frame({ ...head, choices: [{ index, delta, logprobs, finish_reason: finish }], ...usage })

  for (let index = 0; index < prompt.choices; index++) {
    yield chunk(index, { role: 'assistant', content: answer.text === undefined ? null : '', refusal: null })
    for (const word of wordsOf(answer.reasoning ?? '')) yield chunk(index, { reasoning_content: word })
    for (const word of wordsOf(answer.text ?? '')) {
      yield chunk(index, { content: word }, null, prompt.logprobs ? logprobsOf([word]) : null)
    }
    for (const [position, call] of answer.calls.entries()) {
      const opening =
        call.kind === 'custom'
          ? { custom: { name: call.name, input: '' } }
          : { function: { name: call.name, arguments: '' } }
      yield chunk(index, {
        tool_calls: [{ index: position, id: callId(stamp, position), type: call.kind, ...opening }],
      })
      for (const piece of piecesOf(call.arguments)) {
        const more = call.kind === 'custom' ? { custom: { input: piece } } : { function: { arguments: piece } }
        yield chunk(index, { tool_calls: [{ index: position, ...more }] })
      }
    }
    yield chunk(index, {}, answer.finish)
  }
  if (prompt.includeUsage) yield frame({ ...head, choices: [], usage: usageOf(answer, prompt, stamp) })
  yield doneFrame
}

export const doneFrame = 'data: [DONE]\n\n'

/** An error in the middle of a stream. */
export function streamChatError(message: string): string {
  return frame({ error: { message, type: 'server_error', param: null, code: 'server_error' } })
}

/** The body of an error. */
export function chatErrorBody(type: string, code: string, message: string): JsonObject {
  return { error: { message, type, param: null, code } }
}

/** Splits arguments into chunks the size that models write. */
export function piecesOf(text: string): string[] {
  return text.match(/[^]{1,12}/g) ?? []
}

/** The id of the call at that position. */
export function callId(stamp: AnswerStamp, position: number): string {
  return `call_${stamp.id}${position}`
}

function frame(value: JsonObject): string {
  return `data: ${JSON.stringify(value)}\n\n`
}

function headOf(prompt: Prompt, stamp: AnswerStamp, object: string): JsonObject {
  return {
    id: `chatcmpl-${stamp.id}`,
    object,
    created: stamp.createdAt,
    model: prompt.model,
    system_fingerprint: 'fp_simulated',
  }
}

function writeCall(call: SimulatedCall, stamp: AnswerStamp, position: number): JsonObject {
  const id = callId(stamp, position)
  return call.kind === 'custom'
    ? { id, type: 'custom', custom: { name: call.name, input: call.arguments } }
    : { id, type: 'function', function: { name: call.name, arguments: call.arguments } }
}

function usageOf(answer: SimulatedAnswer, prompt: Prompt, { cache }: AnswerStamp): JsonObject {
  const written = answer.outputTokens * prompt.choices
  const input = cache === undefined ? answer.inputTokens : inputOf(cache)
  return {
    prompt_tokens: input,
    completion_tokens: written,
    total_tokens: input + written,
    prompt_tokens_details: { cached_tokens: cache?.readTokens ?? 0, audio_tokens: 0 },
    completion_tokens_details: { reasoning_tokens: answer.reasoningTokens * prompt.choices, audio_tokens: 0 },
  }
}

function logprobsOf(words: readonly string[]): JsonObject {
  return {
    content: words.map((token) => ({ token, logprob: -0.1, bytes: [...Buffer.from(token)], top_logprobs: [] })),
    refusal: null,
  }
}
