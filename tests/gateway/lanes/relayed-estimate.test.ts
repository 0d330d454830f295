import { describe, expect, test } from 'vitest'
import type { ClientFormatId } from '../../../src/domain/format-id.ts'
import { formatById, relayById } from '../../../src/formats/formats.ts'
import { RelayLane } from '../../../src/gateway/lanes/relay-lane.ts'
import { contextOf } from '../../formats/exchange.ts'

/** About one token. */
const word = 'word '

const event = (data: { readonly type: string }): string => `event: ${data.type}\ndata: ${JSON.stringify(data)}\n\n`

function chatEvent(content: string, index = 0): string {
  const choices = [{ index, delta: { content }, logprobs: null, finish_reason: null }]
  return `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', model: 'm', choices })}\n\n`
}

/** Padded to a multiple of 16 characters, as OpenAI does. */
function responsesEvent(delta: string, sequence_number: number): string {
  const obfuscation = 'x'.repeat(16 - (delta.length % 16))
  const place = { sequence_number, item_id: 'm', output_index: 0, content_index: 0 }
  return event({ type: 'response.output_text.delta', ...place, delta, logprobs: [], obfuscation } as { type: string })
}

function messagesEvent(text: string): string {
  return event({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text } } as { type: string })
}

type Written = (text: string, number: number) => string

const formats: readonly (readonly [ClientFormatId, Written])[] = [
  ['openai-chat', (text) => chatEvent(text)],
  ['openai-responses', responsesEvent],
  ['anthropic-messages', messagesEvent],
]

function laneOf(id: ClientFormatId, sampling: object = {}): RelayLane {
  const request = { model: 'p', messages: [], input: 'x', max_tokens: 9, stream: true }
  const conversation = { ...formatById(id).readRequest(request), sampling }
  return new RelayLane(relayById(id), formatById(id).readAnswer(), contextOf(conversation), true, 'someone')
}

describe.each(formats)('the output of a relayed stream of %s is estimated by its text (contract 42.8)', (id, write) => {
  const pieces: readonly (readonly [string, readonly number[]])[] = [
    ['token by token', Array<number>(3_000).fill(1)],
    ['in pieces of 5 tokens', Array<number>(400).fill(5)],
    ['in pieces of 1,000 tokens', Array<number>(8).fill(1_000)],
    ['in one piece', [5_000]],
    ['in small pieces and one large one', [...Array<number>(50).fill(1), 2_000, ...Array<number>(50).fill(1)]],
  ]

  test.each(pieces)('%s', (_, sizes) => {
    const events = sizes.map((size, number) => write(word.repeat(size), number))
    const tokens = sizes.reduce((sum, size) => sum + size, 0)
    for (const reads of [events, [events.join('')]]) {
      const lane = laneOf(id)
      for (const read of reads) lane.push(Buffer.from(read))
      expect(lane.estimatedTokens / tokens).toBeGreaterThan(0.7)
      expect(lane.estimatedTokens / tokens).toBeLessThan(1.5)
    }
  })

  test('text with escapes and beyond ASCII', () => {
    const lane = laneOf(id)
    for (let number = 0; number < 100; number += 1) lane.push(Buffer.from(write(`"é"\n${word.repeat(100)}`, number)))
    expect(lane.estimatedTokens / 10_200).toBeGreaterThan(0.7)
    expect(lane.estimatedTokens / 10_200).toBeLessThan(1.5)
  })
})

test.each([
  ['as it is', (data: string) => data],
  ['as escapes', (data: string) => data.replace(/[^ -~]/g, (one) => `\\u${one.charCodeAt(0).toString(16)}`)],
])('text beyond ASCII, written %s, counts like text that is parsed', (_, written) => {
  const chinese = '你好，世界。'.repeat(20)
  const [relayed, parsed] = [laneOf('openai-chat'), laneOf('openai-chat')]
  for (let number = 0; number < 100; number += 1) {
    relayed.push(Buffer.from(written(chatEvent(chinese).trimEnd())))
    relayed.push(Buffer.from('\n\n'))
    // No two events have the same shape.
    parsed.push(Buffer.from(chatEvent(chinese).replace('"id":"c"', `"id":"${number}"`)))
  }
  expect(relayed.estimatedTokens / parsed.estimatedTokens).toBeGreaterThan(0.95)
  expect(relayed.estimatedTokens / parsed.estimatedTokens).toBeLessThan(1.05)
})

test('reasoning that is written under two names counts once', () => {
  const lane = laneOf('openai-chat')
  const reasoning = word.repeat(100)
  const delta = { reasoning, reasoning_content: reasoning }
  const data = { id: 'c', object: 'chat.completion.chunk', choices: [{ index: 0, delta, finish_reason: null }] }
  for (let number = 0; number < 100; number += 1) lane.push(Buffer.from(`data: ${JSON.stringify(data)}\n\n`))
  expect(lane.estimatedTokens / 10_000).toBeGreaterThan(0.7)
  expect(lane.estimatedTokens / 10_000).toBeLessThan(1.5)
})

test('two answers with the same text in one event count twice', () => {
  const lane = laneOf('openai-chat')
  const content = word.repeat(100)
  const choices = [0, 1].map((index) => ({ index, delta: { content }, finish_reason: null }))
  const data = { id: 'c', object: 'chat.completion.chunk', choices }
  for (let number = 0; number < 100; number += 1) lane.push(Buffer.from(`data: ${JSON.stringify(data)}\n\n`))
  expect(lane.estimatedTokens / 20_000).toBeGreaterThan(0.7)
  expect(lane.estimatedTokens / 20_000).toBeLessThan(1.5)
})

test('events without output are not counted', () => {
  const lane = laneOf('openai-responses')
  lane.push(Buffer.from(responsesEvent(word, 0)))
  const before = lane.estimatedTokens
  for (let sequence_number = 1; sequence_number < 50; sequence_number += 1)
    lane.push(Buffer.from(event({ type: 'keepalive', sequence_number } as { type: string })))
  expect(lane.estimatedTokens).toBe(before)
})

test.each([1, 3, 8])('each of %i answers to one request counts', (choices) => {
  const lane = laneOf('openai-chat', { choices })
  for (let round = 0; round < 100; round += 1)
    for (let index = 0; index < choices; index += 1) lane.push(Buffer.from(chatEvent(word, index)))
  expect(lane.estimatedTokens / (100 * choices)).toBeGreaterThan(0.7)
  expect(lane.estimatedTokens / (100 * choices)).toBeLessThan(1.5)
})
