import { expect, test } from 'vitest'
import type { ClientFormatId, FormatId } from '../../../src/domain/format-id.ts'
import { formatById, relayById } from '../../../src/formats/formats.ts'
import { openLane } from '../../../src/gateway/lanes/open-lane.ts'
import type { Backend, CallTarget } from '../../../src/gateway/ports.ts'
import { AttemptBill } from '../../../src/gateway/request/attempt-bill.ts'
import { contextOf } from '../../formats/exchange.ts'
import { embeddingsLane } from '../lanes/embeddings-lane.ts'
import { ManualClock } from '../manual-clock.ts'

const sse = (event: object): string => `data: ${JSON.stringify(event)}\n\n`
const named = (type: string, more: object): string => `event: ${type}\n${sse({ type, ...more })}`
const chatCounts = { prompt_tokens: 1_000, completion_tokens: 100, total_tokens: 1_100 }
const counts = { input_tokens: 1_000, output_tokens: 100, total_tokens: 1_100 }
const geminiCounts = { promptTokenCount: 1_000, thoughtsTokenCount: 100, totalTokenCount: 1_100 }
const error = { code: 'server_error', message: 'It broke.' }

const chunk = (delta: object, more: object = {}): string =>
  sse({ object: 'chat.completion.chunk', choices: [{ index: 0, delta, finish_reason: null }], ...more })
const content = chunk({ content: 'Hello' })
const failedResponse = { id: 'r', status: 'failed', error, output: [], usage: counts }
const malformed = { candidates: [{ index: 0, finishReason: 'MALFORMED_FUNCTION_CALL' }], usageMetadata: geminiCounts }
const blocked = { promptFeedback: { blockReason: 'SAFETY' }, usageMetadata: { promptTokenCount: 1_000 } }

/** What is due for a call whose provider answers so, with status 200. */
function billsFor(format: FormatId, answer: string | object): AttemptBill[] {
  const stream = typeof answer === 'string'
  const own: ClientFormatId[] = format === 'gemini' ? [] : [format]
  return [...own, 'openai-chat' as const].map((id) => {
    const client = formatById(id)
    const request = client.readRequest({ model: 'p', messages: [], input: 'x', max_tokens: 9, stream })
    const backend = { dialect: { streamUsage: true }, issuer: 'someone' } as unknown as Backend
    const relay = id === format ? relayById(id) : undefined
    const lane = openLane({ context: contextOf(request), client, backend, backendFormat: formatById(format), relay })
    const bill = new AttemptBill({} as CallTarget, new ManualClock(), { stream, conversation: request })
    bill.sent(100)
    bill.accepted(lane)
    expect(() => {
      lane.push(Buffer.from(stream ? answer : JSON.stringify(answer)))
      if (lane.upstreamError !== undefined) throw lane.upstreamError
      lane.end()
    }).toThrow()
    bill.close()
    return bill
  })
}

test.each<[string, FormatId, string | object, number]>([
  [
    'without content',
    'openai-chat',
    { choices: [{ index: 0, message: { role: 'assistant' }, finish_reason: 'stop' }], usage: chatCounts },
    100,
  ],
  ['that is an error', 'openai-chat', { error, usage: chatCounts }, 100],
  ['with an error at its end', 'openai-chat', content + sse({ error, usage: chatCounts }), 100],
  ['without content', 'openai-chat', chunk({}) + sse({ choices: [], usage: chatCounts }) + 'data: [DONE]\n\n', 100],
  ['that failed', 'openai-responses', failedResponse, 100],
  ['that failed', 'openai-responses', named('response.failed', { response: failedResponse }), 100],
  [
    'that failed after content',
    'openai-responses',
    named('response.output_text.delta', { delta: 'Hello' }) + named('response.failed', { response: failedResponse }),
    100,
  ],
  [
    'with an unknown end',
    'openai-responses',
    named('response.incomplete', {
      response: { ...failedResponse, error: null, status: 'incomplete', incomplete_details: { reason: 'mood' } },
    }),
    100,
  ],
  ['without content', 'anthropic-messages', { type: 'message', stop_reason: 'end_turn', usage: counts }, 100],
  ['with an unknown end', 'anthropic-messages', { content: [], stop_reason: 'mood', usage: counts }, 100],
  ['with a malformed call', 'gemini', malformed, 100],
  ['with a malformed call', 'gemini', sse(malformed), 100],
  ['to a blocked prompt', 'gemini', blocked, 0],
  ['to a blocked prompt', 'gemini', sse(blocked), 0],
])('an answer %s costs what its provider counted, of %s (contract 42.8): %j', (_, format, answer, outputTokens) => {
  for (const { usage } of billsFor(format, answer))
    expect(usage).toMatchObject({ inputTokens: 1_000, outputTokens, source: 'counted' })
})

test('an error without counts changes nothing that was reported before it', () => {
  const running = chunk({ content: 'Hello' }, { usage: { ...chatCounts, completion_tokens: 7 } })
  for (const end of [sse({ error }), `event: error\n${sse({ message: 'It broke.' })}`, 'data: {\n\n'])
    for (const { usage } of billsFor('openai-chat', running + end))
      expect(usage).toMatchObject({ inputTokens: 1_000, outputTokens: 7, source: 'estimated' })
})

test.each([
  ['small', '[]'],
  ['large', `[{"index":0,"embedding":"${'A'.repeat(1024 * 1024)}"},{"index":1,"embedding":[]}]`],
])('embeddings that failed cost what their provider counted: %s', (_, data) => {
  const lane = embeddingsLane()
  lane.push(Buffer.from(`{"data":${data},"usage":{"prompt_tokens":1000}}`))
  expect(() => lane.end()).toThrow()
  expect(lane.usage).toMatchObject({ inputTokens: 1_000, outputTokens: 0, source: 'counted' })
})
