import { describe, expect, test } from 'vitest'
import type { AnswerEvent } from '../../src/domain/conversation.ts'
import type { JsonObject } from '../../src/domain/json.ts'
import { openaiChat } from '../../src/formats/openai-chat/openai-chat.ts'
import { openaiResponses } from '../../src/formats/openai-responses/openai-responses.ts'
import { contentOf } from './exchange.ts'

type Data = JsonObject | '[DONE]'

function read(format: typeof openaiChat, data: readonly Data[]): { events: AnswerEvent[]; finished: boolean } {
  const reader = format.readAnswer()
  const events = data.flatMap((item) => [...reader.readEvent(item === '[DONE]' ? item : JSON.stringify(item))])
  return { events, finished: reader.finished }
}

const chunk = (delta: JsonObject, reason: string | null = null, more: JsonObject = {}): JsonObject => ({
  id: 'c',
  model: 'm',
  choices: [{ index: 0, delta, finish_reason: reason }],
  ...more,
})
const tool = (fields: JsonObject): JsonObject => chunk({ tool_calls: [fields] })
const usage = { prompt_tokens: 3, completion_tokens: 4, total_tokens: 7 }
const counted = { inputTokens: 3, outputTokens: 4, cachedTokens: 0, reasoningTokens: 0, source: 'counted' }

describe('a chat stream', () => {
  test('the stream ends with a finish reason, or with [DONE] if the backend sends no reason', () => {
    expect(read(openaiChat, [chunk({ content: 'x' })]).finished).toBe(false)
    expect(read(openaiChat, [chunk({ content: 'x' }), chunk({}, 'stop')]).finished).toBe(true)
    const { events, finished } = read(openaiChat, [chunk({ content: 'x' }), '[DONE]'])
    expect(finished).toBe(true)
    expect(contentOf(events).reasons).toEqual(['stop'])
    expect(() => read(openaiChat, ['[DONE]'])).toThrow('broken')
  })

  test.each([
    ['with the reason', [chunk({ content: 'x' }), chunk({}, 'stop', { usage }), '[DONE]']],
    ['after the reason', [chunk({ content: 'x' }), chunk({}, 'stop'), { choices: [], usage }, '[DONE]']],
    ['after [DONE]', [chunk({ content: 'x' }), chunk({}, 'stop'), '[DONE]', { choices: [], usage }]],
    ['in every chunk', [chunk({ content: 'x' }, null, { usage }), chunk({}, 'stop', { usage }), '[DONE]']],
  ] as [string, Data[]][])('usage may arrive %s', (_, data) => {
    const { events } = read(openaiChat, data)
    expect(contentOf(events).usage).toEqual(counted)
    expect(contentOf(events).reasons).toEqual(['stop'])
  })

  test('a stream that ends with [DONE] but has no content is not an answer', () => {
    const filtered = '{"id":"c","object":"chat.completion.chunk","choices":[],"prompt_filter_results":[]}'
    for (const before of [filtered, '{"id":"c","choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}']) {
      const reader = openaiChat.readAnswer()
      reader.readEvent(before)
      expect(() => reader.readEvent('[DONE]')).toThrow('broken')
      expect(reader.finished).toBe(false)
    }
  })

  test('a stream without counts has no usage, so that it is estimated', () => {
    const none = { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 }
    expect(contentOf(read(openaiChat, [chunk({ content: 'x' }, 'stop', { usage: none })]).events).usage).toBeUndefined()
  })

  test('each backend’s finish reasons are normalized', () => {
    const reasonOf = (reason: string, delta: JsonObject = {}): unknown =>
      contentOf(read(openaiChat, [chunk(delta, reason), chunk({}, 'stop')]).events).reasons
    expect(reasonOf('max_tokens')).toEqual(['length'])
    expect(reasonOf('end_turn')).toEqual(['stop'])
    expect(reasonOf('content_filter')).toEqual(['content_filter'])
    const call = { tool_calls: [{ index: 0, id: 'a', function: { name: 'f', arguments: '{}' } }] }
    expect(reasonOf('stop', call)).toEqual(['tool_calls'])
    expect(reasonOf('tool_calls')).toEqual(['stop'])
    expect(() => reasonOf('error')).toThrow('server_error')
  })

  test.each([
    [
      'with indexes',
      [
        { index: 0, id: 'a', function: { name: 'f', arguments: '' } },
        { index: 0, function: { arguments: '{"x":1}' } },
        { index: 1, id: 'b', function: { name: 'g', arguments: '{}' } },
      ],
    ],
    [
      'without indexes',
      [
        { id: 'a', function: { name: 'f', arguments: '{"x"' } },
        { function: { arguments: ':1}' } },
        { id: 'b', function: { name: 'g', arguments: '{}' } },
      ],
    ],
    [
      'all with index 0',
      [
        { index: 0, id: 'a', function: { name: 'f', arguments: '{"x":1}' } },
        { index: 0, id: 'b', function: { name: 'g', arguments: '{}' } },
      ],
    ],
    [
      'with ID and name in each piece',
      [
        { index: 0, id: 'a', function: { name: 'f', arguments: '{"x"' } },
        { index: 0, id: 'a', function: { name: 'f', arguments: ':1}' } },
        { index: 1, id: 'b', function: { name: 'g', arguments: '{}' } },
      ],
    ],
    [
      'interleaved',
      [
        { index: 0, id: 'a', function: { name: 'f', arguments: '{"x"' } },
        { index: 1, id: 'b', function: { name: 'g', arguments: '{' } },
        { index: 0, function: { arguments: ':1}' } },
        { index: 1, function: { arguments: '}' } },
      ],
    ],
    [
      'with arguments as objects',
      [
        { index: 0, id: 'a', function: { name: 'f', arguments: { x: 1 } } },
        { index: 1, id: 'b', function: { name: 'g', arguments: {} } },
      ],
    ],
  ] as [string, JsonObject[]][])('parallel calls may arrive %s', (_, entries) => {
    const { calls } = contentOf(read(openaiChat, [...entries.map(tool), chunk({}, 'tool_calls')]).events)
    expect(calls).toMatchObject([
      { id: 'a', name: 'f', arguments: '{"x":1}' },
      { id: 'b', name: 'g', arguments: '{}' },
    ])
  })

  test('reasoning may be in either field, or in blocks', () => {
    const reasoning = (delta: JsonObject): string =>
      contentOf(read(openaiChat, [chunk(delta, 'stop')]).events).reasoning
    expect(reasoning({ reasoning_content: 'a' })).toBe('a')
    expect(reasoning({ reasoning: 'a', content: '' })).toBe('a')
    expect(
      reasoning({
        content: [
          { type: 'thinking', thinking: [{ type: 'text', text: 'a' }] },
          { type: 'text', text: 'b' },
        ],
      }),
    ).toBe('a')
  })

  test('other kinds of chunks are skipped', () => {
    const { events } = read(openaiChat, [
      { choices: [], prompt_filter_results: [] },
      { object: 'ping' },
      chunk({ content: 'x' }, 'stop'),
    ])
    expect(events.map(({ type }) => type)).toEqual(['start', 'text', 'finish'])
  })

  test('only the first of several choices is read', () => {
    const second = { choices: [{ index: 1, delta: { content: 'other' }, finish_reason: 'stop' }] }
    const { events, finished } = read(openaiChat, [chunk({ content: 'x' }), second])
    expect(contentOf(events).text).toBe('x')
    expect(finished).toBe(false)
  })

  test('an error inside the stream throws its category', () => {
    expect(() => read(openaiChat, [chunk({ content: 'x' }), { error: { message: 'm', code: 502 } }])).toThrow(
      'server_error',
    )
    expect(() => read(openaiChat, [{ object: 'error', message: 'm', code: 'context_length_exceeded' }])).toThrow(
      'context_too_long',
    )
    expect(() => read(openaiChat, [{ choices: [], error: { type: 'rate_limit_error' } }])).toThrow('rate_limited')
  })

  test('pieces of calls that started before reading began are ignored', () => {
    const { events } = read(openaiChat, [tool({ index: 0, function: { arguments: '{}' } }), chunk({}, 'tool_calls')])
    expect(events.map(({ type }) => type)).toEqual(['start', 'finish'])
  })
})

describe('a Responses stream', () => {
  const added = (index: number, item: JsonObject): JsonObject => ({
    type: 'response.output_item.added',
    output_index: index,
    item,
  })
  const done = (index: number, item: JsonObject): JsonObject => ({
    type: 'response.output_item.done',
    output_index: index,
    item,
  })
  const completed = (more: JsonObject = {}): JsonObject => ({
    type: 'response.completed',
    response: { status: 'completed', output: [], ...more },
  })
  const message = {
    type: 'message',
    role: 'assistant',
    content: [{ type: 'output_text', text: 'Hi.', annotations: [] }],
  }

  test('items or the final event supply the text if there are no deltas', () => {
    const call = { type: 'function_call', call_id: 'c', name: 'f', arguments: '{}', namespace: 'n' }
    for (const data of [
      [added(0, message), done(0, message), done(1, call), completed()],
      [completed({ output: [message, call] })],
    ]) {
      const content = contentOf(read(openaiResponses, data).events)
      expect(content).toMatchObject({
        text: 'Hi.',
        calls: [{ id: 'c', name: 'f', namespace: 'n', arguments: '{}' }],
        reasons: ['tool_calls'],
      })
    }
  })

  test('text that is in deltas, items, and the final event is read once', () => {
    const delta = { type: 'response.output_text.delta', output_index: 0, delta: 'Hi.' }
    const { events } = read(openaiResponses, [
      added(0, message),
      delta,
      done(0, message),
      completed({ output: [message] }),
      '[DONE]',
    ])
    expect(contentOf(events)).toMatchObject({ text: 'Hi.', reasons: ['stop'] })
  })

  describe('without output_index', () => {
    const started = (item: JsonObject): JsonObject => ({ type: 'response.output_item.added', item })
    const ended = (item: JsonObject): JsonObject => ({ type: 'response.output_item.done', item })
    const reasoning = { type: 'reasoning', summary: [], content: [] }
    const thought = { type: 'response.reasoning_text.delta', delta: 'Hm.' }
    const text = { type: 'response.output_text.delta', delta: 'Hi.' }
    const call = (id: string): JsonObject => ({ type: 'function_call', call_id: id, name: id, arguments: '' })
    const whole = (id: string): JsonObject => ({ ...call(id), arguments: `{"${id}":1}` })
    const piece = (id: string, delta: string): JsonObject => ({
      type: 'response.function_call_arguments.delta',
      item_id: id,
      delta,
    })
    const content = {
      text: 'Hi.',
      reasoning: 'Hm.',
      calls: [
        { name: 'a', arguments: '{"a":1}' },
        { name: 'b', arguments: '{"b":1}' },
      ],
      reasons: ['tool_calls'],
    }
    const named = (item: JsonObject, id: string): JsonObject => ({ ...item, id })
    const inItem = (event: JsonObject, id: string): JsonObject => ({ ...event, item_id: id })

    test.each([
      [
        'by their IDs if all end together, as from llama-server',
        [
          started(named(reasoning, 'r')),
          inItem(thought, 'r'),
          started(named(message, 'm')),
          inItem(text, 'm'),
          started(call('a')),
          piece('a', '{"a":1}'),
          started(call('b')),
          piece('b', '{"b":1}'),
          ended(named(reasoning, 'r')),
          ended(named(message, 'm')),
          ended(whole('a')),
          ended(whole('b')),
        ],
      ],
      [
        'by their IDs if two calls are interleaved',
        [
          started(named(reasoning, 'r')),
          inItem(thought, 'r'),
          ended(named(reasoning, 'r')),
          started(named(message, 'm')),
          inItem(text, 'm'),
          ended(named(message, 'm')),
          started(named(call('a'), 'fc_a')),
          started(named(call('b'), 'fc_b')),
          piece('fc_a', '{"a"'),
          piece('fc_b', '{"b"'),
          piece('fc_a', ':1}'),
          piece('fc_b', ':1}'),
          ended(named(whole('a'), 'fc_a')),
          ended(named(whole('b'), 'fc_b')),
        ],
      ],
      [
        'by their order',
        [
          started(reasoning),
          thought,
          ended(reasoning),
          started(message),
          text,
          ended(message),
          started(call('a')),
          { type: 'response.function_call_arguments.delta', delta: '{"a":1}' },
          ended(whole('a')),
          ended(whole('b')),
        ],
      ],
      [
        'by their final events alone',
        [
          ended({ ...reasoning, content: [{ type: 'reasoning_text', text: 'Hm.' }] }),
          ended(message),
          ended(whole('a')),
          ended(whole('b')),
        ],
      ],
    ])('items are identified %s', (_, data) => {
      const output = [message, whole('a'), whole('b')]
      const { events, finished } = read(openaiResponses, [...data, completed({ output })])
      expect(contentOf(events)).toMatchObject(content)
      expect(finished).toBe(true)
    })
  })

  test('reasoning is read once: the summary, or the raw text if there is none', () => {
    const item = { type: 'reasoning', summary: [] }
    const summary = (index: number, delta: string): JsonObject[] => [
      { type: 'response.reasoning_summary_part.added', output_index: 0, summary_index: index },
      { type: 'response.reasoning_summary_text.delta', output_index: 0, summary_index: index, delta },
    ]
    const raw = { type: 'response.reasoning_text.delta', output_index: 0, delta: 'raw' }
    const reasoningOf = (data: JsonObject[]): string =>
      contentOf(read(openaiResponses, [added(0, item), ...data]).events).reasoning
    expect(reasoningOf([...summary(0, 'a'), raw, ...summary(1, 'b')])).toBe('a\n\nb')
    expect(reasoningOf([raw, raw])).toBe('rawraw')
  })

  test('an incomplete response ends with length or content_filter', () => {
    const incomplete = (reason: string): JsonObject => ({
      type: 'response.incomplete',
      response: { status: 'incomplete', incomplete_details: { reason }, output: [] },
    })
    expect(contentOf(read(openaiResponses, [incomplete('max_output_tokens')]).events).reasons).toEqual(['length'])
    expect(contentOf(read(openaiResponses, [incomplete('content_filter')]).events).reasons).toEqual(['content_filter'])
  })

  test('a failed response throws its category', () => {
    const failed = (code: string): JsonObject => ({
      type: 'response.failed',
      response: { status: 'failed', error: { code, message: 'm' } },
    })
    expect(() => read(openaiResponses, [failed('context_length_exceeded')])).toThrow('context_too_long')
    expect(() => read(openaiResponses, [failed('rate_limit_exceeded')])).toThrow('rate_limited')
    expect(() => read(openaiResponses, [failed('server_error')])).toThrow('server_error')
    expect(() => read(openaiResponses, [{ type: 'error', code: 'rate_limit_exceeded', message: 'm' }])).toThrow(
      'rate_limited',
    )
    expect(() => openaiResponses.readAnswer().readWhole({ status: 'in_progress', output: [] })).toThrow('broken')
  })

  test('unknown events are skipped', () => {
    const odd = [
      { type: 'response.web_search_call.searching', output_index: 0 },
      { type: 'keepalive' },
      { type: 'acme:progress' },
    ]
    expect(read(openaiResponses, odd).events).toEqual([])
  })
})
