import { describe, expect, test } from 'vitest'
import { UpstreamError } from '../../../src/domain/upstream.ts'
import { anthropicMessages } from '../../../src/formats/anthropic-messages/anthropic-messages.ts'
import { formatById, relayById } from '../../../src/formats/formats.ts'
import { openaiChat } from '../../../src/formats/openai-chat/openai-chat.ts'
import { openaiResponses } from '../../../src/formats/openai-responses/openai-responses.ts'
import { RelayLane } from '../../../src/gateway/lanes/relay-lane.ts'
import { TranslationLane } from '../../../src/gateway/lanes/translation-lane.ts'
import { WholeLane } from '../../../src/gateway/lanes/whole-lane.ts'
import type { Backend } from '../../../src/gateway/ports.ts'
import { contextOf, golden, readStream } from '../../formats/exchange.ts'

const conversation = openaiChat.readRequest({ model: 'p', messages: [], stream: true })

describe('a translated stream', () => {
  test.each([
    ['openai-responses', 'response-text.sse', 'event: response.completed'],
    ['openai-chat', 'chat-text.sse', 'data: [DONE]'],
  ] as const)('a stream of %s is complete even without an empty line after its last event', (id, name, last) => {
    const client = id === 'openai-chat' ? openaiResponses : openaiChat
    const stream = golden(name)
    const at = stream.indexOf(last)
    const unended = stream.slice(0, at) + stream.slice(at).split('\n\n')[0]!
    const lane = new TranslationLane(
      formatById(id).readAnswer(),
      client.writeAnswer(contextOf(conversation)),
      'someone',
      conversation,
    )
    const written = lane.push(Buffer.from(unended)) + lane.end()
    expect(readStream(client, written).finished).toBe(true)
  })

  test('a stream that stops within its last event is broken', () => {
    const [before = ''] = golden('response-text.sse').split('event: response.completed')
    const lane = new TranslationLane(
      openaiResponses.readAnswer(),
      openaiChat.writeAnswer(contextOf(conversation)),
      'someone',
      conversation,
    )
    lane.push(Buffer.from(`${before}event: response.completed\ndata: {"type":"response.comp`))
    expect(() => lane.end()).toThrow('broken')
  })
})

describe('if the backend reports no usage', () => {
  const stream =
    '{"id":"c","choices":[{"index":0,"delta":{"role":"assistant","content":"Twelve chars"}}]}|{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}|[DONE]'
  const sse = stream.replaceAll(/[^|]+\|?/g, (data) => `data: ${data.replace('|', '')}\n\n`)
  const whole =
    '{"id":"c","choices":[{"index":0,"message":{"role":"assistant","content":"Twelve chars"},"finish_reason":"stop"}]}'
  const question = {
    model: 'p',
    max_tokens: 9,
    input: 'How are you?',
    messages: [{ role: 'user', content: 'How are you?' }],
  }

  test.each([openaiResponses, anthropicMessages])(
    'a translated stream has estimated usage for $id, never 0',
    (client) => {
      const asked = client.readRequest({ ...question, stream: true })
      const lane = new TranslationLane(openaiChat.readAnswer(), client.writeAnswer(contextOf(asked)), 'someone', asked)
      const { events } = readStream(client, lane.push(Buffer.from(sse)) + lane.end())
      const usage = events.findLast(({ type }) => type === 'usage')
      expect(usage).toMatchObject({ usage: { inputTokens: 7, outputTokens: 3 } })
      expect(lane.usage).toMatchObject({ inputTokens: 7, outputTokens: 3, source: 'estimated' })
    },
  )

  test.each([openaiResponses, anthropicMessages])(
    'a translated non-streaming answer has estimated usage for $id, never 0',
    (client) => {
      const context = contextOf(client.readRequest(question))
      const backend = { issuer: 'someone' } as Backend
      const lane = new WholeLane({ context, client, backend, backendFormat: openaiChat, relay: undefined })
      lane.push(Buffer.from(whole))
      const { usage } = JSON.parse(lane.end().toString()) as { usage: unknown }
      expect(usage).toMatchObject({ input_tokens: 7, output_tokens: 3 })
      expect(lane.usage).toMatchObject({ source: 'estimated' })
    },
  )

  const call = '"tool_calls":[{"index":0,"id":"1","type":"function","function":{"name":"now","arguments":null}}]'

  test.each([openaiResponses, anthropicMessages])(
    'a call without arguments is counted for $id, streaming and not (contract 10.13)',
    (client) => {
      const asked = client.readRequest({ ...question, stream: true })
      const context = contextOf(asked)
      const stream = new TranslationLane(openaiChat.readAnswer(), client.writeAnswer(context), 'someone', asked)
      stream.push(Buffer.from(sse.replace('"content":"Twelve chars"', call)))
      stream.end()
      expect(stream.usage).toMatchObject({ outputTokens: 1, source: 'estimated' })
      const backend = { issuer: 'someone' } as Backend
      const lane = new WholeLane({ context, client, backend, backendFormat: openaiChat, relay: undefined })
      lane.push(Buffer.from(whole.replace('"content":"Twelve chars"', call)))
      const { usage } = JSON.parse(lane.end().toString()) as { usage: unknown }
      expect(usage).toMatchObject({ output_tokens: 1 })
    },
  )
})

test.each([undefined, relayById('openai-chat')])(
  'the arguments of all calls together have the limit of one answer',
  (relay) => {
    const context = contextOf(openaiChat.readRequest({ model: 'p', messages: [] }))
    const backend = { issuer: 'someone' } as Backend
    const answerWith = (calls: number): (() => unknown) => {
      const lane = new WholeLane({ context, client: anthropicMessages, backend, backendFormat: openaiChat, relay })
      const tool_calls = Array.from({ length: calls }, (_, call) => ({
        id: `c${call}`,
        type: 'function',
        function: {
          name: 'f',
          arguments: JSON.stringify(Object.fromEntries(Array.from({ length: 5_000 }, (__, n) => [`k${call}_${n}`, 1]))),
        },
      }))
      const choice = {
        index: 0,
        message: { role: 'assistant', content: null, tool_calls },
        finish_reason: 'tool_calls',
      }
      lane.push(Buffer.from(JSON.stringify({ id: 'c', model: 'm', choices: [choice] })))
      return () => lane.end()
    }
    expect(answerWith(4)).not.toThrow()
    expect(answerWith(5)).toThrow(UpstreamError)
  },
)

test.each([undefined, relayById('openai-chat')])('a non-streaming answer may begin with a byte order mark', (relay) => {
  const context = contextOf(openaiChat.readRequest({ model: 'p', messages: [] }))
  const backend = { issuer: 'someone' } as Backend
  const lane = new WholeLane({ context, client: openaiChat, backend, backendFormat: openaiChat, relay })
  lane.push(
    Buffer.from(
      '\ufeff{"id":"c","model":"m","choices":[{"index":0,"message":{"content":"x"},"finish_reason":"stop"}]}',
    ),
  )
  expect(JSON.parse(lane.end().toString())).toMatchObject({ model: 'p', choices: [{ message: { content: 'x' } }] })
})

test.each([
  ['plain text', 'p', '{"model":"m","x":"a"'],
  ['text beyond ASCII', 'p', '{"model":"modèle","x":"é😀\u2028"'],
  ['bytes that are not UTF-8', 'p', '{"model":"m","x":"\xff\xfe"'],
  ['a profile beyond ASCII', 'prófil-😀', '{"x":"é", "model" : "m"'],
  ['an escaped model', 'p', String.raw`{"model":"m\"n","x":"é"`],
  ['two members of that name', 'p', '{"x":{"model":"é"},"model":"m"'],
])('a relayed answer keeps every byte except its model: %s', (what, profile, start) => {
  const context = contextOf(openaiChat.readRequest({ model: profile, messages: [] }))
  const backend = { issuer: 'someone' } as Backend
  const relay = relayById('openai-chat')
  const lane = new WholeLane({ context, client: openaiChat, backend, backendFormat: openaiChat, relay })
  const sent = `${start},"choices":[{"index":0,"message":{"content":"x"},"finish_reason":"stop"}]}`
  lane.push(Buffer.from(sent, what.startsWith('bytes') ? 'latin1' : 'utf8'))
  const last = lane.end()
  const shown = typeof last === 'string' ? Buffer.from(last, lane.encoding) : last
  const model = /("model" ?: ?)("m(?:odèle|\\"n)?")/
  const wanted = sent.replace(model, (_, key: string) => key + JSON.stringify(profile))
  expect(shown).toEqual(Buffer.from(wanted, what.startsWith('bytes') ? 'latin1' : 'utf8'))
})

test('a relayed response names the profile, also in keep-alives and failures', () => {
  const events = golden('response-text.sse')
    .replaceAll(/"model": ?"[^"]*"/g, '"model":"upstream-1"')
    .split('\n\n')
  const context = contextOf({ ...conversation, profile: 'my-profile' })
  const lane = new RelayLane(relayById('openai-responses'), openaiResponses.readAnswer(), context, true, 'someone')
  const failure = { code: 'c', type: 't', message: 'm', param: null, source: 's', retryable: true, requestId: 'r' }
  lane.push(Buffer.from(`${events[0]}\n\n`))
  const early = lane.keepAlive()
  expect(early).toContain('event: response.in_progress')
  lane.push(Buffer.from(`${events.slice(1, 5).join('\n\n')}\n\n`))
  for (const text of [early, lane.failure(failure)]) {
    expect(text).toContain('"model":"my-profile"')
    expect(text).not.toContain('upstream-1')
  }
})

test('the keep-alives of a relayed response contain no state once an item has begun, because the service does not know the items', () => {
  const events = golden('response-text.sse').split('\n\n')
  const lane = new RelayLane(
    relayById('openai-responses'),
    openaiResponses.readAnswer(),
    contextOf(conversation),
    true,
    'someone',
  )
  lane.push(Buffer.from(`${events.slice(0, 5).join('\n\n')}\n\n`))
  expect(lane.keepAlive()).toBe('event: keepalive\ndata: {"type":"keepalive","sequence_number":5}\n\n')
})

test('a canceled relayed response is a failure and is not passed on', () => {
  const [before = ''] = golden('response-text.sse').split('event: response.completed')
  const context = contextOf({ ...conversation, hints: {} })
  const lane = new RelayLane(relayById('openai-responses'), openaiResponses.readAnswer(), context, true, 'someone')
  lane.push(Buffer.from(before))
  expect(lane.hasContent).toBe(true)
  const cancelled = { type: 'response.cancelled', sequence_number: 99, response: { id: 'r', status: 'cancelled' } }
  const passed = lane.push(Buffer.from(`event: response.cancelled\ndata: ${JSON.stringify(cancelled)}\n\n`))
  expect(passed).toBe('')
  expect(lane.upstreamError).toMatchObject({ outcome: 'server_error' })
})

describe('an event of several megabytes, such as an image', () => {
  const content = 'x'.repeat(6 * 1024 * 1024)
  const event = `data: {"id":"c","model":"m","choices":[{"index":0,"delta":{"content":"${content}"}}]}\n\n`
  const end =
    'data: {"id":"c","model":"m","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'
  const context = contextOf(conversation)

  test.each([
    ['relayed', () => new RelayLane(relayById('openai-chat'), openaiChat.readAnswer(), context, true, 'someone')],
    [
      'translated',
      () => new TranslationLane(openaiChat.readAnswer(), openaiResponses.writeAnswer(context), 'someone', conversation),
    ],
  ] as const)('it is %s completely, and joining it from small reads is fast', (_, open) => {
    const lane = open()
    const bytes = Buffer.from(event + end)
    const startedAt = performance.now()
    let written = ''
    for (let at = 0; at < bytes.length; at += 4096) written += lane.push(bytes.subarray(at, at + 4096))
    written += lane.end()
    expect(performance.now() - startedAt).toBeLessThan(3_000)
    expect(written.split(content)).toHaveLength(lane instanceof RelayLane ? 2 : 6)
    expect(lane.finished).toBe(true)
  })
})

test('the arguments of an answer’s calls have a size limit', () => {
  const piece = 'x'.repeat(1024 * 1024)
  const call = { index: 0, id: 'c', type: 'function', function: { name: 'f', arguments: piece } }
  const event = `data: ${JSON.stringify({ choices: [{ index: 0, delta: { tool_calls: [call] } }] })}\n\n`
  const writer = anthropicMessages.writeAnswer(contextOf(conversation))
  const lane = new TranslationLane(openaiChat.readAnswer(), writer, 'someone', conversation)
  for (let count = 0; count < 4; count += 1) lane.push(Buffer.from(event))
  expect(lane.upstreamError).toBeUndefined()
  lane.push(Buffer.from(event))
  expect(lane.upstreamError).toMatchObject({ outcome: 'broken' })
})
