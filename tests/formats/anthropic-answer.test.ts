import { describe, expect, test } from 'vitest'
import type { AnswerEvent } from '../../src/domain/conversation.ts'
import type { JsonObject } from '../../src/domain/json.ts'
import { UpstreamError } from '../../src/domain/upstream.ts'
import { classifyRejection } from '../../src/formats/answer-faults.ts'
import { anthropicMessages } from '../../src/formats/anthropic-messages/anthropic-messages.ts'
import { clientFormats, relayById } from '../../src/formats/formats.ts'
import { openaiChat } from '../../src/formats/openai-chat/openai-chat.ts'
import { openaiResponses } from '../../src/formats/openai-responses/openai-responses.ts'
import { RelayLane } from '../../src/gateway/lanes/relay-lane.ts'
import { TranslationLane } from '../../src/gateway/lanes/translation-lane.ts'
import { contentOf, contextOf, dataOf, parseSse, readStream, writeStream } from './exchange.ts'

const model = 'svc-router/frontier'
const conversation = anthropicMessages.readRequest({ model, messages: [], max_tokens: 9, stream: true })

function frame(type: string, fields: JsonObject = {}): string {
  return `event: ${type}\ndata: ${JSON.stringify({ type, ...fields })}\n\n`
}

function block(index: number, content_block: JsonObject, ...deltas: readonly JsonObject[]): string {
  const events = deltas.map((delta) => frame('content_block_delta', { index, delta })).join('')
  return frame('content_block_start', { index, content_block }) + events + frame('content_block_stop', { index })
}

const started = frame('message_start', {
  message: {
    id: 'msg_01',
    type: 'message',
    role: 'assistant',
    model: 'claude-opus-5',
    content: [],
    stop_reason: null,
    stop_sequence: null,
    usage: {
      input_tokens: 10,
      cache_creation_input_tokens: 20,
      cache_read_input_tokens: 300,
      cache_creation: { ephemeral_5m_input_tokens: 20 },
      output_tokens: 1,
    },
  },
})

function ended(reason: string): string {
  const usage = { output_tokens: 50, output_tokens_details: { thinking_tokens: 7 } }
  return frame('message_delta', { delta: { stop_reason: reason, stop_sequence: null }, usage }) + frame('message_stop')
}

const citation = {
  type: 'web_search_result_location',
  url: 'https://example.com/a',
  title: 'A',
  cited_text: 'rain',
  encrypted_index: 'Eo8',
}

/** A stream in the order that Anthropic documents, with a search that it ran itself. */
const stream =
  started +
  block(
    0,
    { type: 'thinking', thinking: '', signature: '' },
    { type: 'thinking_delta', thinking: 'Let me ' },
    { type: 'thinking_delta', thinking: 'see.' },
    { type: 'signature_delta', signature: 'EqQB' },
  ) +
  frame('ping') +
  block(1, { type: 'redacted_thinking', data: 'EmwK' }) +
  block(
    2,
    { type: 'server_tool_use', id: 'srvtoolu_1', name: 'web_search', input: {} },
    { type: 'input_json_delta', partial_json: '{"query":"x"}' },
  ) +
  block(3, { type: 'web_search_tool_result', tool_use_id: 'srvtoolu_1', content: [] }) +
  block(4, { type: 'text', text: '' }, { type: 'text_delta', text: 'Grüße: ' }) +
  block(
    5,
    { type: 'text', text: '', citations: [] },
    { type: 'citations_delta', citation },
    { type: 'text_delta', text: 'it rains' },
    { type: 'text_delta', text: ' ☃' },
  ) +
  block(
    6,
    { type: 'tool_use', id: 'toolu_1', name: 'f', input: {} },
    { type: 'input_json_delta', partial_json: '' },
    { type: 'input_json_delta', partial_json: '{"city":' },
    { type: 'input_json_delta', partial_json: '"Oslo"}' },
  ) +
  block(7, { type: 'tool_use', id: 'toolu_2', name: 'g', input: {} }, { type: 'input_json_delta', partial_json: '' }) +
  ended('tool_use')

const expected = {
  text: 'Grüße: it rains ☃',
  refusal: '',
  reasoning: 'Let me see.',
  sealed: ['anthropic.thinking.EqQB', 'anthropic.redacted.EmwK'],
  logprobs: [],
  annotations: [{ type: 'url_citation', url: 'https://example.com/a', title: 'A', start_index: 7, end_index: 17 }],
  calls: [
    { kind: 'function', id: 'toolu_1', name: 'f', namespace: undefined, arguments: '{"city":"Oslo"}' },
    { kind: 'function', id: 'toolu_2', name: 'g', namespace: undefined, arguments: '' },
  ],
  usage: {
    inputTokens: 330,
    outputTokens: 50,
    cachedTokens: 300,
    cacheWriteTokens: 20,
    reasoningTokens: 7,
    source: 'counted',
  },
  reasons: ['tool_calls'],
}

describe('an Anthropic answer', () => {
  test('a stream is read completely', () => {
    const { events, finished } = readStream(anthropicMessages, stream)
    expect(finished).toBe(true)
    expect(events[0]).toEqual({ type: 'start', id: 'msg_01', model: 'claude-opus-5' })
    expect(contentOf(events)).toEqual(expected)
  })

  test('a non-streaming answer is read completely', () => {
    const content = [
      { type: 'thinking', thinking: 'Let me see.', signature: 'EqQB' },
      { type: 'redacted_thinking', data: 'EmwK' },
      { type: 'server_tool_use', id: 'srvtoolu_1', name: 'web_search', input: { query: 'x' } },
      { type: 'web_search_tool_result', tool_use_id: 'srvtoolu_1', content: [] },
      { type: 'text', text: 'Grüße: ', citations: null },
      { type: 'text', text: 'it rains ☃', citations: [citation, { type: 'page_location', document_index: 0 }] },
      { type: 'tool_use', id: 'toolu_1', name: 'f', input: { city: 'Oslo' } },
      { type: 'tool_use', id: 'toolu_2', name: 'g', input: {} },
    ]
    const usage = {
      input_tokens: 10,
      cache_creation_input_tokens: 20,
      cache_read_input_tokens: 300,
      output_tokens: 50,
      output_tokens_details: { thinking_tokens: 7 },
    }
    const reader = anthropicMessages.readAnswer()
    const body = { id: 'msg_01', type: 'message', model: 'm', content, stop_reason: 'tool_use', usage }
    const [first, second] = expected.calls
    expect(contentOf(reader.readWhole(body))).toEqual({ ...expected, calls: [first, { ...second, arguments: '{}' }] })
    expect(reader.finished).toBe(true)
  })

  test.each([
    ['end_turn', 'stop'],
    ['stop_sequence', 'stop'],
    ['pause_turn', 'stop'],
    ['max_tokens', 'length'],
    ['model_context_window_exceeded', 'length'],
    ['refusal', 'content_filter'],
  ])('the stop reason %s is read as %s', (reason, expected) => {
    const text = started + block(0, { type: 'text', text: 'x' }) + ended(reason)
    expect(contentOf(readStream(anthropicMessages, text).events).reasons).toEqual([expected])
    const body = { content: [{ type: 'text', text: 'x' }], stop_reason: reason }
    expect(contentOf(anthropicMessages.readAnswer().readWhole(body)).reasons).toEqual([expected])
  })

  test('an unknown stop reason is an error that does not reveal the reason', () => {
    const text = started + block(0, { type: 'text', text: 'x' }) + ended('unheard_of')
    expect(() => readStream(anthropicMessages, text)).toThrow('server_error')
    const body = { content: [{ type: 'text', text: 'x' }], stop_reason: 'unheard_of' }
    expect(() => anthropicMessages.readAnswer().readWhole(body)).toThrow('server_error')
  })

  test('an answer without counts has no usage instead of zeros', () => {
    const delta = frame('message_delta', { delta: { stop_reason: 'end_turn' } })
    const text = frame('message_start', { message: { id: 'x', content: [] } }) + delta + frame('message_stop')
    expect(contentOf(readStream(anthropicMessages, text).events).usage).toBeUndefined()
  })

  test('a tool call may have its whole input at its start, as some servers send it', () => {
    const text = started + block(0, { type: 'tool_use', id: 't', name: 'f', input: { a: 1 } }) + ended('tool_use')
    expect(contentOf(readStream(anthropicMessages, text).events).calls[0]?.arguments).toBe('{"a":1}')
  })

  test('hidden reasoning or a tool that runs at Anthropic counts as content, so that nothing is retried after it', () => {
    for (const type of ['thinking', 'server_tool_use']) {
      const conversation = openaiChat.readRequest({ model, messages: [], stream: true })
      const lane = new TranslationLane(
        anthropicMessages.readAnswer(),
        openaiChat.writeAnswer(contextOf(conversation)),
        'someone',
        conversation,
      )
      lane.push(Buffer.from(started))
      expect(lane.hasContent).toBe(false)
      lane.push(Buffer.from(frame('content_block_start', { index: 0, content_block: { type } })))
      expect(lane.hasContent).toBe(true)
    }
  })

  test.each(['[DONE]', '{"type":"unheard_of"}', '{"type":"ping"}'])('%s is skipped', (data) => {
    expect(anthropicMessages.readAnswer().readEvent(data)).toEqual([])
  })

  test('a message_stop without a start breaks the stream', () => {
    expect(() => anthropicMessages.readAnswer().readEvent('{"type":"message_stop"}')).toThrow('broken')
  })

  test('events after the end are ignored', () => {
    const reader = anthropicMessages.readAnswer()
    for (const { data } of parseSse(stream)) reader.readEvent(data)
    expect(reader.readEvent('{"type":"error","error":{"type":"api_error"}}')).toEqual([])
  })
})

describe('an Anthropic error', () => {
  const outcomes = [
    ['overloaded_error', 'Overloaded', 'server_error'],
    ['api_error', 'Internal server error', 'server_error'],
    ['rate_limit_error', 'x', 'rate_limited'],
    ['timeout_error', 'x', 'timeout'],
    ['authentication_error', 'invalid x-api-key', 'rejected_credentials'],
    ['permission_error', 'x', 'rejected_credentials'],
    ['billing_error', 'x', 'rejected_credentials'],
    ['not_found_error', 'model: x', 'server_error'],
    ['invalid_request_error', 'messages: text content blocks must be non-empty', 'rejected_content'],
    ['request_too_large', 'x', 'rejected_content'],
    ['invalid_request_error', 'prompt is too long: 208310 tokens > 200000 maximum', 'context_too_long'],
    ['invalid_request_error', 'input length and `max_tokens` exceed context limit: 1 + 2 > 2', 'context_too_long'],
    ['invalid_request_error', 'Your credit balance is too low to access the Anthropic API.', 'rejected_credentials'],
    ['toString', 'x', 'server_error'],
  ] as const

  test.each(outcomes)('%s (%s) in a stream is %s, and its text is not passed on', (type, message, outcome) => {
    const caught = thrownBy(() =>
      anthropicMessages.readAnswer().readEvent(JSON.stringify({ type: 'error', error: { type, message } })),
    )
    expect(caught).toMatchObject({ outcome })
    expect((caught as Error).message).toBe(outcome)
    expect(
      thrownBy(() => anthropicMessages.readAnswer().readWhole({ type: 'error', error: { type, message } })),
    ).toEqual(caught)
  })

  test.each([
    [400, 'invalid_request_error', 'messages.0: x', 'rejected_content'],
    [400, 'invalid_request_error', 'prompt is too long: 208310 tokens > 200000 maximum', 'context_too_long'],
    [400, 'invalid_request_error', 'Your credit balance is too low', 'rejected_credentials'],
    [401, 'authentication_error', 'x', 'rejected_credentials'],
    [403, 'permission_error', 'x', 'rejected_credentials'],
    [404, 'not_found_error', 'model: x', 'not_found'],
    [413, 'request_too_large', 'x', 'rejected_content'],
    [429, 'rate_limit_error', 'x', 'rate_limited'],
    [500, 'api_error', 'x', 'server_error'],
    [529, 'overloaded_error', 'x', 'server_error'],
  ])('status %i with type %s (%s) is %s', (status, type, message, outcome) => {
    const body = JSON.stringify({ type: 'error', error: { type, message }, request_id: 'req_x' })
    expect(classifyRejection({ status, retryAfterMs: undefined }, body)).toMatchObject({ outcome, status })
  })
})

describe.each(Object.values(clientFormats))('an Anthropic stream for a client of $id', (client) => {
  const asked = client.readRequest({
    model,
    messages: [],
    input: 'x',
    max_tokens: 9,
    stream: true,
    stream_options: { include_usage: true },
  })

  function lane(): TranslationLane | RelayLane {
    const context = contextOf(asked)
    return client.id === 'anthropic-messages'
      ? new RelayLane(relayById('anthropic-messages'), anthropicMessages.readAnswer(), context, true, 'someone')
      : new TranslationLane(anthropicMessages.readAnswer(), client.writeAnswer(context), 'someone', asked)
  }

  function bytesOf(text: string, { encoding }: { encoding: 'latin1' | 'utf8' }): string {
    return Buffer.from(text, encoding).toString('utf8')
  }

  test('bytes that arrive one at a time give the same answer as all at once', () => {
    const bytes = Buffer.from(stream)
    const [whole, slow] = [lane(), lane()]
    const atOnce = bytesOf(whole.push(bytes) + whole.end(), whole)
    let text = ''
    for (let at = 0; at < bytes.length; at++) text += slow.push(bytes.subarray(at, at + 1))
    expect(contentOf(readStream(client, bytesOf(text + slow.end(), slow)).events)).toEqual(
      contentOf(readStream(client, atOnce).events),
    )
    expect(contentOf(readStream(client, atOnce).events)).toMatchObject({
      text: expected.text,
      usage: expected.usage,
      reasons: ['tool_calls'],
    })
    expect(atOnce).not.toContain('claude')
    expect(whole.usage).toEqual(expected.usage)
  })

  test('a stream that ends after any event but the last is a failure', () => {
    const frames = stream.split(/(?<=\n\n)/)
    for (let count = 0; count < frames.length; count++) {
      const truncated = lane()
      const text = truncated.push(Buffer.from(frames.slice(0, count).join('')))
      expect(() => truncated.end(), `truncated after ${count}`).toThrow(UpstreamError)
      const failure = { code: 'upstream_broken', type: 'server_error', message: 'It broke off.', param: null }
      const failed = truncated.failure({ ...failure, source: 'provider', retryable: true, requestId: 'req_1' })
      expect(() => readStream(client, bytesOf(text + failed, truncated))).toThrow(UpstreamError)
    }
  })

  test('an error event breaks the stream', () => {
    const broken = lane()
    broken.push(Buffer.from(stream.slice(0, stream.indexOf('event: message_delta'))))
    broken.push(Buffer.from(frame('error', { error: { type: 'overloaded_error', message: 'Overloaded' } })))
    expect(broken.upstreamError).toMatchObject({ outcome: 'server_error' })
    expect(broken.finished).toBe(false)
  })
})

describe('an answer for an Anthropic client', () => {
  const context = contextOf(conversation)
  const typesOf = (text: string): unknown[] => dataOf(text).map(({ type }) => type)

  function call(index: number): AnswerEvent {
    return { type: 'call', index, kind: 'function', id: `call_${index}`, name: 'f' }
  }

  test('content blocks never overlap, even if the arguments of calls are interleaved and text follows', () => {
    const events: AnswerEvent[] = [
      { type: 'text', text: 'So' },
      call(0),
      { type: 'call_arguments', index: 0, text: '{"a"' },
      call(1),
      { type: 'call_arguments', index: 1, text: '{"b":2}' },
      { type: 'text', text: 'done' },
      { type: 'call_arguments', index: 0, text: ':1}' },
      { type: 'finish', reason: 'tool_calls' },
    ]
    const text = writeStream(anthropicMessages, events, context)
    const open: number[] = []
    let last = -1
    for (const { type, index } of dataOf(text)) {
      if (type === 'content_block_start') {
        expect([open, index]).toEqual([[], last + 1])
        open.push(Number(index))
      } else if (type === 'content_block_delta') expect(open).toEqual([index])
      else if (type === 'content_block_stop') last = open.pop()!
    }
    expect(open).toEqual([])
    expect(contentOf(readStream(anthropicMessages, text).events)).toMatchObject({
      text: 'Sodone',
      calls: [{ arguments: '{"a":1}' }, { arguments: '{"b":2}' }],
    })
    expect(typesOf(text).slice(-2)).toEqual(['message_delta', 'message_stop'])
  })

  test('a call ends as soon as other content follows it, so that the client can start it', () => {
    const writer = anthropicMessages.writeAnswer(context)
    writer.writeEvents([call(0), { type: 'call_arguments', index: 0, text: '{}' }])
    expect(typesOf(writer.writeEvents([{ type: 'text', text: 'x' }]))).toEqual([
      'content_block_stop',
      'content_block_start',
      'content_block_delta',
    ])
  })

  test('a call without arguments gets an empty object, and free text is wrapped in an object', () => {
    const events: AnswerEvent[] = [
      call(0),
      { type: 'call', index: 1, kind: 'custom', id: 'c', name: 'patch' },
      { type: 'call_arguments', index: 1, text: '*** Be' },
      { type: 'call_arguments', index: 1, text: 'gin' },
      { type: 'finish', reason: 'tool_calls' },
    ]
    const { calls } = contentOf(readStream(anthropicMessages, writeStream(anthropicMessages, events, context)).events)
    expect(calls.map((made) => made.arguments)).toEqual(['{}', '{"input":"*** Begin"}'])
    const whole = anthropicMessages.writeAnswer(context).writeWhole(events)
    expect((whole['content'] as JsonObject[]).map(({ input }) => input)).toEqual([{}, { input: '*** Begin' }])
  })

  test('a refusal has its text and the stop reason refusal', () => {
    const refused: AnswerEvent[] = [
      { type: 'refusal', text: 'I cannot.' },
      { type: 'finish', reason: 'content_filter' },
    ]
    expect(anthropicMessages.writeAnswer(context).writeWhole(refused)).toMatchObject({
      content: [{ type: 'text', text: 'I cannot.' }],
      stop_reason: 'refusal',
    })
  })

  test('no tool use is announced if no call was made', () => {
    const whole = anthropicMessages.writeAnswer(context).writeWhole([{ type: 'finish', reason: 'tool_calls' }])
    expect(whole).toMatchObject({ content: [], stop_reason: 'end_turn' })
  })

  test('reasoning of another vendor is marked, so that it is recognized when it comes back', () => {
    const events: AnswerEvent[] = [
      { type: 'reasoning', text: 'hm' },
      { type: 'reasoning_end', sealed: 'gAAAA' },
      { type: 'reasoning_end', sealed: 'anthropic.redacted.EmwK' },
      { type: 'reasoning_end', sealed: 'anthropic.thinking.EqQB' },
      { type: 'finish', reason: 'stop' },
    ]
    const whole = anthropicMessages.writeAnswer(context).writeWhole(events)
    expect(whole['content']).toEqual([
      { type: 'thinking', thinking: 'hm', signature: 'svc-router.gAAAA' },
      { type: 'redacted_thinking', data: 'EmwK' },
      { type: 'thinking', thinking: '', signature: 'EqQB' },
    ])
    const read = readStream(anthropicMessages, writeStream(anthropicMessages, events, context))
    expect(contentOf(read.events).sealed).toEqual(['gAAAA', 'anthropic.redacted.EmwK', 'anthropic.thinking.EqQB'])
  })

  test('cached input is counted separately, and missing counts are 0', () => {
    const usage = {
      inputTokens: 330,
      outputTokens: 5,
      cachedTokens: 300,
      reasoningTokens: 2,
      source: 'counted',
    } as const
    const whole = (events: readonly AnswerEvent[]): JsonObject =>
      anthropicMessages.writeAnswer(context).writeWhole(events)
    expect(whole([{ type: 'usage', usage }])['usage']).toEqual({
      input_tokens: 30,
      cache_creation_input_tokens: 0,
      cache_read_input_tokens: 300,
      output_tokens: 5,
      output_tokens_details: { thinking_tokens: 2 },
    })
    expect(whole([])['usage']).toMatchObject({ input_tokens: 0, output_tokens: 0 })
  })

  test('keep-alives are pings, and a failure is a single error event', () => {
    const writer = anthropicMessages.writeAnswer(context)
    expect(writer.writeKeepAlive()).toBe('event: ping\ndata: {"type":"ping"}\n\n')
    const failure = { message: 'm', param: null, source: 'gateway', retryable: true, requestId: 'req_1' }
    for (const [code, type, expected] of [
      ['restarting', 'server_error', 'overloaded_error'],
      ['upstream_timeout', 'server_error', 'timeout_error'],
      ['upstream_broken', 'server_error', 'api_error'],
      ['context_length_exceeded', 'invalid_request_error', 'invalid_request_error'],
      ['rate_limit_exceeded', 'rate_limit_error', 'rate_limit_error'],
    ] as const) {
      expect(dataOf(writer.writeFailure({ ...failure, code, type }))).toMatchObject([
        { type: 'error', error: { type: expected, message: 'm', code }, request_id: 'req_1' },
      ])
    }
  })

  test.each([openaiChat, openaiResponses])(
    'an answer converted through $id keeps text, reasoning, calls, and usage',
    (backend) => {
      const { events } = readStream(anthropicMessages, stream)
      const asked = backend.readRequest({
        model,
        messages: [],
        input: 'x',
        stream: true,
        stream_options: { include_usage: true },
      })
      const through = readStream(backend, writeStream(backend, events, contextOf(asked))).events
      const back = contentOf(readStream(anthropicMessages, writeStream(anthropicMessages, through, context)).events)
      const { text, reasoning, usage, reasons } = expected
      expect(back).toMatchObject({ text, reasoning, usage, reasons })
      expect(back.calls.map((made) => [made.id, made.arguments])).toEqual([
        ['toolu_1', '{"city":"Oslo"}'],
        ['toolu_2', '{}'],
      ])
    },
  )
})

function thrownBy(run: () => unknown): unknown {
  try {
    run()
  } catch (error) {
    return error
  }
  throw new Error('nothing was thrown')
}
