import { describe, expect, test } from 'vitest'
import type { Usage } from '../../../src/domain/conversation.ts'
import { hasCountedInput } from '../../../src/domain/estimate-tokens.ts'
import type { ClientFormatId, FormatId } from '../../../src/domain/format-id.ts'
import { formatById, relayById } from '../../../src/formats/formats.ts'
import type { Lane } from '../../../src/gateway/lanes/lane.ts'
import { openLane } from '../../../src/gateway/lanes/open-lane.ts'
import type { Backend } from '../../../src/gateway/ports.ts'
import { usageOf } from '../../../src/gateway/request/request-usage.ts'
import { contextOf } from '../../formats/exchange.ts'
import { embeddingsLane } from '../lanes/embeddings-lane.ts'

type Counts = object | null | undefined

/** About 1,000 tokens. */
const text = 'word '.repeat(1_000)
const isAboutThat = (tokens: number): boolean => tokens >= 1_000 && tokens <= 1_500
const sse = (event: object): string => `data: ${JSON.stringify(event)}\n\n`
const named = (type: string, more: object): string => `event: ${type}\n${sse({ type, ...more })}`

function chunk(delta: object, finish_reason: string | null, usage?: Counts): string {
  return sse({ object: 'chat.completion.chunk', choices: [{ index: 0, delta, finish_reason }], usage })
}

function chatWhole(usage: Counts, message: object = { content: text }): object {
  return { choices: [{ index: 0, message: { role: 'assistant', ...message }, finish_reason: 'stop' }], usage }
}

function responseOf(usage: Counts): object {
  const content = [{ type: 'output_text', text, annotations: [] }]
  return { id: 'r', status: 'completed', output: [{ type: 'message', id: 'm', role: 'assistant', content }], usage }
}

function messageOf(usage: Counts, content: readonly object[] = [{ type: 'text', text }]): object {
  return { id: 'm', type: 'message', role: 'assistant', model: 'c', content, stop_reason: 'end_turn', usage }
}

function candidate(parts: readonly object[], usageMetadata: Counts, finishReason?: string): object {
  return { candidates: [{ index: 0, content: { role: 'model', parts }, finishReason }], usageMetadata }
}

const messagesStart = named('message_start', {
  message: { ...messageOf({ input_tokens: 1_000, output_tokens: 1 }, []), stop_reason: null },
})
const messagesText =
  named('content_block_start', { index: 0, content_block: { type: 'text', text: '' } }) +
  named('content_block_delta', { index: 0, delta: { type: 'text_delta', text } })
const messagesEnd = (usage: Counts): string =>
  named('content_block_stop', { index: 0 }) +
  named('message_delta', { delta: { stop_reason: 'end_turn' }, usage }) +
  named('message_stop', {})

/** Every way to read the answer: for a client of the same format, if there is one, and of another. */
function lanesOf(format: FormatId, answer: string, stream: boolean): Lane[] {
  const other = format === 'openai-responses' ? 'openai-chat' : 'openai-responses'
  const clients: ClientFormatId[] = format === 'gemini' ? [other] : [format, other]
  return clients.map((id) => {
    const client = formatById(id)
    const messages = [{ role: 'user', content: 'Say words.' }]
    const request = client.readRequest({ model: 'p', messages, input: messages, max_tokens: 9, stream })
    const backend = { dialect: { streamUsage: true }, issuer: 'someone' } as unknown as Backend
    const relay = id === format ? relayById(id) : undefined
    const context = contextOf(request)
    const lane = openLane({ context, client, backend, backendFormat: formatById(format), relay })
    lane.push(Buffer.from(answer))
    return lane
  })
}

function usagesOf(format: FormatId, answer: string | object, isComplete = true): Usage[] {
  const stream = typeof answer === 'string'
  return lanesOf(format, stream ? answer : JSON.stringify(answer), stream).map((lane) => {
    if (isComplete) lane.end()
    return usageOf({ lane, bill: { price: undefined } }, undefined, 100)
  })
}

describe('a complete answer without a count of its output has an estimate of it (contract 10.13)', () => {
  test.each<[string, FormatId, string | object]>([
    ['absent', 'openai-chat', chatWhole({ prompt_tokens: 1_000, total_tokens: 2_000 })],
    ['null', 'openai-chat', chatWhole({ prompt_tokens: 1_000, completion_tokens: null })],
    ['0', 'openai-chat', chatWhole({ prompt_tokens: 1_000, completion_tokens: 0 })],
    ['absent', 'openai-chat', chunk({ content: text }, null) + chunk({}, 'stop', { prompt_tokens: 1_000 })],
    [
      'that of its first half',
      'openai-chat',
      chunk({ content: 'b' }, null) +
        chunk({ content: 'a' }, null, { prompt_tokens: 1_000, completion_tokens: 2 }) +
        chunk({ content: text }, null) +
        chunk({}, 'stop'),
    ],
    [
      'that of its first half',
      'gemini',
      sse(candidate([{ text: 'a' }], { promptTokenCount: 1_000, candidatesTokenCount: 1 })) +
        sse(candidate([{ text }], undefined)) +
        sse(candidate([], undefined, 'STOP')),
    ],
    [
      'only that of its beginning',
      'openai-chat',
      chunk({ content: 'a' }, null, { prompt_tokens: 1_000, completion_tokens: 1 }) +
        chunk({ content: text }, null) +
        chunk({}, 'stop'),
    ],
    ['absent', 'openai-responses', responseOf({ input_tokens: 1_000, total_tokens: 2_000 })],
    [
      'absent',
      'openai-responses',
      named('response.output_text.delta', { delta: text }) +
        named('response.completed', { response: responseOf({ input_tokens: 1_000 }) }),
    ],
    ['absent', 'anthropic-messages', messageOf({ input_tokens: 1_000 })],
    ['absent', 'anthropic-messages', messagesStart + messagesText + messagesEnd(undefined)],
    ['without members', 'anthropic-messages', messagesStart + messagesText + messagesEnd({})],
    ['0', 'anthropic-messages', messagesStart + messagesText + messagesEnd({ output_tokens: 0 })],
    ['absent', 'gemini', candidate([{ text }], { promptTokenCount: 1_000 }, 'STOP')],
    [
      'absent',
      'gemini',
      sse(candidate([{ text }], { promptTokenCount: 1_000 })) + sse(candidate([], { promptTokenCount: 1_000 }, 'STOP')),
    ],
  ])('%s, of %s: %j', (_, format, answer) => {
    for (const usage of usagesOf(format, answer)) {
      expect(usage).toMatchObject({ inputTokens: 1_000, source: 'estimated' })
      expect(usage.outputTokens).toSatisfy(isAboutThat)
    }
  })

  test('thinking that Gemini counted is kept', () => {
    const answer = candidate([{ text }], { promptTokenCount: 1_000, thoughtsTokenCount: 700 }, 'STOP')
    for (const { source, outputTokens, reasoningTokens } of usagesOf('gemini', answer)) {
      expect([source, reasoningTokens]).toEqual(['estimated', 700])
      expect(outputTokens - 700).toSatisfy(isAboutThat)
    }
  })

  test('of several answers, each counts', () => {
    const client = formatById('openai-chat')
    const request = client.readRequest({ model: 'p', messages: [], n: 3 })
    const backend = { issuer: 'someone' } as Backend
    const relay = relayById('openai-chat')
    const lane = openLane({ context: contextOf(request), client, backend, backendFormat: client, relay })
    lane.push(Buffer.from(JSON.stringify(chatWhole(undefined))))
    lane.end()
    expect(lane.estimatedTokens / 3).toSatisfy(isAboutThat)
  })

  test('also a call without text is output', () => {
    const tool_calls = [{ id: 'c', type: 'function', function: { name: 'now', arguments: '{}' } }]
    const answer = chatWhole({ prompt_tokens: 1_000, completion_tokens: 0 }, { content: null, tool_calls })
    for (const usage of usagesOf('openai-chat', answer))
      expect(usage).toMatchObject({ inputTokens: 1_000, outputTokens: 2, source: 'estimated' })
  })

  test('a caller whose format differs gets the estimate', () => {
    const [, lane] = lanesOf('openai-chat', JSON.stringify(chatWhole({ prompt_tokens: 1_000 })), false)
    const { usage } = JSON.parse(lane!.end().toString()) as { usage: { output_tokens: number } }
    expect(usage.output_tokens).toSatisfy(isAboutThat)
  })
})

test.each<[FormatId, string | object, number]>([
  ['openai-chat', chatWhole({ prompt_tokens: 1_000, completion_tokens: 0 }, { content: '' }), 0],
  [
    'openai-chat',
    chunk({ content: text }, null) +
      chunk({}, 'stop') +
      // As OpenRouter sends it.
      chunk({ content: '' }, null, { prompt_tokens: 1_000, completion_tokens: 7 }),
    7,
  ],
  ['anthropic-messages', messageOf({ input_tokens: 1_000, output_tokens: 0 }, []), 0],
  ['anthropic-messages', messagesStart + messagesEnd({ output_tokens: 0 }), 0],
  ['gemini', candidate([], { promptTokenCount: 1_000, thoughtsTokenCount: 900 }, 'STOP'), 900],
  ['gemini', candidate([], { promptTokenCount: 1_000 }, 'STOP'), 0],
  [
    'gemini',
    // Some servers send a reason with every piece.
    ['a', 'b', 'c']
      .map((part, at) => candidate([{ text: part }], { promptTokenCount: 1_000, candidatesTokenCount: at + 1 }, 'STOP'))
      .map(sse)
      .join(''),
    3,
  ],
  [
    'openai-chat',
    // With every chunk, the last time in the one before the end.
    chunk({ content: text }, null, { prompt_tokens: 1_000, completion_tokens: 5 }) +
      chunk({ content: 'a' }, null, { prompt_tokens: 1_000, completion_tokens: 7 }) +
      chunk({}, 'stop'),
    7,
  ],
  [
    'openai-chat',
    // Without a reason.
    chunk({ content: text }, null, { prompt_tokens: 1_000, completion_tokens: 7 }) + 'data: [DONE]\n\n',
    7,
  ],
  [
    'anthropic-messages',
    // Complete at its start.
    named('message_start', { message: messageOf({ input_tokens: 1_000, output_tokens: 7 }, []) }) +
      messagesText +
      messagesEnd(undefined),
    7,
  ],
  [
    'gemini',
    sse(candidate([{ text }], { promptTokenCount: 1_000, candidatesTokenCount: 7 })) +
      sse(candidate([], undefined, 'STOP')),
    7,
  ],
])('a count that may be right is used: %s %j', (format, answer, outputTokens) => {
  for (const usage of usagesOf(format, answer))
    expect(usage).toMatchObject({ inputTokens: 1_000, outputTokens, source: 'counted' })
})

test('embeddings have no output', () => {
  const lane = embeddingsLane()
  lane.push(Buffer.from('{"data":[{"index":0,"embedding":[1]}],"usage":{"prompt_tokens":1000,"total_tokens":1000}}'))
  lane.end()
  const usage = usageOf({ lane, bill: { price: undefined } }, undefined, 100)
  expect(usage).toMatchObject({ inputTokens: 1_000, outputTokens: 0, source: 'counted' })
})

describe('a stream that breaks off costs at least the output that it delivered (contract 42.8)', () => {
  const chatCounts = (completion_tokens: number): object => ({ prompt_tokens: 1_000, completion_tokens, cost: 0.001 })
  const geminiCounts = { promptTokenCount: 1_000, candidatesTokenCount: 1, thoughtsTokenCount: 1 }

  test.each<[FormatId, string]>([
    ['openai-chat', chunk({ content: 'a' }, null, chatCounts(1)) + chunk({ content: text }, null)],
    ['openai-chat', chunk({ content: text }, null, chatCounts(1))],
    ['anthropic-messages', messagesStart + messagesText],
    ['gemini', sse(candidate([{ text: 'a' }], geminiCounts)) + sse(candidate([{ text }], { promptTokenCount: 1_000 }))],
    ['gemini', sse(candidate([{ text }], geminiCounts))],
  ])('of %s: %s', (format, answer) => {
    for (const usage of usagesOf(format, answer, false)) {
      expect(usage).toMatchObject({ inputTokens: 1_000, source: 'estimated' })
      expect(usage.outputTokens).toSatisfy(isAboutThat)
      // Stated for what was written until then.
      expect(usage.statedCost).toBeUndefined()
    }
  })

  test('although the first of several answers is complete', () => {
    const choice = (index: number, delta: object, finish_reason: string | null): string =>
      sse({ object: 'chat.completion.chunk', choices: [{ index, delta, finish_reason }], usage: chatCounts(1) })
    const begun = choice(1, { content: 'a' }, null) + choice(0, { content: text }, null)
    const [cut] = usagesOf('openai-chat', begun + choice(0, {}, 'stop'), false)
    expect(cut).toMatchObject({ inputTokens: 1_000, source: 'estimated' })
    const ended = begun + choice(0, {}, 'stop') + choice(1, {}, 'stop')
    for (const usage of usagesOf('openai-chat', ended, false)) expect(usage.source).toBe('counted')
    const second = { candidates: [{ index: 1, content: { parts: [{ text: 'a' }] } }], usageMetadata: geminiCounts }
    const [answer] = usagesOf('gemini', sse(candidate([{ text }], geminiCounts)) + sse(second), false)
    expect(answer).toMatchObject({ inputTokens: 1_000, source: 'estimated' })
  })

  test('although its server writes an empty stop reason at its start', () => {
    const message = { ...messageOf({ input_tokens: 1_000, output_tokens: 1 }, []), stop_reason: '' }
    for (const usage of usagesOf('anthropic-messages', named('message_start', { message }) + messagesText, false))
      expect(usage).toMatchObject({ inputTokens: 1_000, source: 'estimated' })
  })

  test('its input is counted', () => {
    for (const usage of usagesOf('anthropic-messages', messagesStart + messagesText, false))
      expect(hasCountedInput(usage)).toBe(true)
    for (const usage of usagesOf('anthropic-messages', messagesText, false)) expect(hasCountedInput(usage)).toBe(false)
  })

  test('a higher count that was reported while it ran is kept', () => {
    for (const usage of usagesOf('openai-chat', chunk({ content: text }, null, chatCounts(5_000)), false))
      expect(usage).toMatchObject({ inputTokens: 1_000, outputTokens: 5_000, source: 'estimated' })
  })
})
