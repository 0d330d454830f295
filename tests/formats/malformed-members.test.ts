import { describe, expect, test } from 'vitest'
import type { JsonObject } from '../../src/domain/json.ts'
import { anthropicMessages } from '../../src/formats/anthropic-messages/anthropic-messages.ts'
import { gemini } from '../../src/formats/gemini/gemini.ts'
import { openaiChat } from '../../src/formats/openai-chat/openai-chat.ts'
import { openaiCompletions } from '../../src/formats/openai-completions/openai-completions.ts'
import { openaiEmbeddings } from '../../src/formats/openai-embeddings.ts'
import { openaiResponses } from '../../src/formats/openai-responses/openai-responses.ts'
import { runAtOnce } from '../../src/runtime/yield-to-event-loop.ts'

const choice = (message: JsonObject, reason: unknown = 'stop') =>
  ({ choices: [{ index: 0, message, finish_reason: reason }] }) as JsonObject
const call = (called: JsonObject) => choice({ tool_calls: [{ index: 0, id: 'c', function: called }] })
const output = (...items: unknown[]) => ({ object: 'response', status: 'completed', output: items }) as JsonObject
const message = (content: unknown) => output({ type: 'message', content })
const blocks = (content: unknown[], reason: unknown = 'end_turn') =>
  ({ type: 'message', content, stop_reason: reason }) as JsonObject
const candidate = (content: unknown, reason: unknown = 'STOP') =>
  ({ candidates: [{ content, finishReason: reason }] }) as JsonObject

/** Answers that would be empty or successful if a missing member, or one of the wrong type, were skipped. */
const answers = {
  chat: [
    openaiChat,
    {},
    { choices: null },
    { choices: [] },
    { choices: [{ index: 0, finish_reason: 'stop' }] },
    { choices: [{ index: 0, message: null, finish_reason: 'stop' }] },
    choice({}),
    choice({ role: 'assistant' }),
    choice({ content: [null] }),
    choice({ content: 'x', tool_calls: 'x' }),
    choice({ content: 'x', tool_calls: [5] }),
    choice({ content: 'x', error: { message: 'x' } }),
    choice({ content: 'x' }, 5),
    choice({ content: 'x' }, { error: 'x' }),
    call({ name: 5, arguments: '{}' }),
    call({ name: 'f', arguments: 5 }),
  ],
  responses: [
    openaiResponses,
    { object: 'response', status: 'completed' },
    output(null),
    output('x'),
    message(5),
    message('x'),
    message([null]),
    message({}),
  ],
  messages: [
    anthropicMessages,
    { type: 'message', stop_reason: 'end_turn' },
    blocks([null]),
    blocks(['x']),
    blocks([], 5),
    blocks([], { error: 'x' }),
  ],
  gemini: [
    gemini,
    { candidates: null },
    { candidates: [] },
    { usageMetadata: {} },
    candidate('x'),
    candidate({ parts: 'x' }),
    candidate({ parts: [null] }),
    candidate({ parts: [{ text: 'x' }] }, 5),
    candidate({ parts: [{ functionCall: 'f' }] }),
    candidate({ parts: [{ functionCall: { name: 'f', args: '{}' } }] }),
    { candidates: [null] },
  ],
  embeddings: [
    openaiEmbeddings,
    { data: null },
    { data: [] },
    { data: [null] },
    { data: [{ index: 0 }] },
    { data: [{ index: 0, embedding: [] }] },
    { data: [{ index: 0, embedding: { a: 1 } }] },
  ],
} as const

describe.each(Object.entries(answers))('a non-streaming answer of %s', (_, [format, ...bodies]) => {
  test.each(bodies.map((body) => JSON.stringify(body)))(
    'is broken if a member is missing or has the wrong type: %s',
    (body) => {
      expect(() => format.readAnswer().readWhole(JSON.parse(body) as JsonObject)).toThrow(/broken|server_error/)
    },
  )
})

describe('a large answer of embeddings, which is read vector by vector', () => {
  const read = (body: string) => {
    const reader = openaiEmbeddings.readAnswer()
    const events = runAtOnce(reader.readLarge!(Buffer.from(body)))
    return [events, reader.finished]
  }
  const vector = (more: string): string => `{"object":"embedding",${more}}`
  const listOf = (...vectors: string[]): string =>
    `{"object":"list","data":[${vectors.join(' , ')}],"model":"m","usage":{"prompt_tokens":3,"total_tokens":3}}`
  const good = vector('"index":0,"embedding":[0.5,-1e-7],"note":"a \\"}]{[, \\\\"')

  test.each([listOf(good), listOf(good, vector('"index":1,"embedding":"AAAA"'), good), `{"data": [ ${good}\n] }`])(
    'means the same as when it is parsed at once: %s',
    (body) => {
      const whole = openaiEmbeddings.readAnswer()
      expect(read(body)).toEqual([whole.readWhole(JSON.parse(body) as JsonObject), true])
    },
  )

  const [, ...bodies] = answers.embeddings
  test.each([
    ...bodies.map((body) => JSON.stringify(body)),
    listOf(good, vector('"index":-1,"embedding":[1]')),
    listOf(good, vector('"embedding":[1,]')),
    listOf(good, vector('"embedding":[1')),
    listOf(good, '5'),
    listOf(good, 'null'),
    listOf(good, ''),
    listOf(`${good}${good}`),
    listOf(good).slice(0, -1),
    listOf(good).replace(/\],"model".*/, ''),
    listOf(good).replace('"usage"', '"base_resp":{"status_code":1004},"usage"'),
    listOf(good).replace('"usage"', 'usage'),
    listOf(good).replace('],"model"', '],"data":[],"model"'),
    `${listOf(good)}}`,
    `${listOf(good)} x`,
    `{"data":{"a":${good}}}`,
    `{"data":${good}}`,
    `[${good}]`,
    '5',
    '',
  ])('is broken if a part of it is malformed: %s', (body) => {
    expect(() => read(body)).toThrow(/broken|server_error|rejected_credentials/)
  })
})

test('a final event is broken if its reason is not a string', () => {
  const events = [
    [openaiChat, { choices: [{ index: 0, delta: { content: 'x' }, finish_reason: 5 }] }],
    [anthropicMessages, { type: 'message_delta', delta: { stop_reason: 5 } }],
    [gemini, candidate({ parts: [{ text: 'x' }] }, 5)],
  ] as const
  for (const [format, event] of events) {
    expect(() => format.readAnswer().readEvent(JSON.stringify(event))).toThrow('broken')
  }
})

test('a Responses stream is broken if it ends without any output', () => {
  const ending = (more: JsonObject) =>
    JSON.stringify({ type: 'response.completed', response: { id: 'r', status: 'completed', ...more } })
  for (const more of [{}, { output: null }, { output: 'x' }]) {
    expect(() => openaiResponses.readAnswer().readEvent(ending(more))).toThrow('broken')
  }
  const reader = openaiResponses.readAnswer()
  reader.readEvent('{"type":"response.output_text.delta","output_index":0,"delta":"x"}')
  reader.readEvent(ending({}))
  expect(reader.finished).toBe(true)
})

test('an unknown event of Messages is skipped, unless its type names an error', () => {
  const read = (type: string) => anthropicMessages.readAnswer().readEvent(JSON.stringify({ type, message: 'x' }))
  expect(read('message_note')).toEqual([])
  expect(() => read('response.error')).toThrow('server_error')
  expect(() => read('message_failed')).toThrow('server_error')
})

test('a whole message without content is complete if its finish reason explains that', () => {
  for (const reason of ['content_filter', 'length']) {
    const events = openaiChat.readAnswer().readWhole(choice({ role: 'assistant' }, reason))
    expect(events.at(-1)).toEqual({ type: 'finish', reason })
  }
})

describe('an index', () => {
  const bad = [-1, 0.5, 100_000, 1e15, 1e300, '0', true, [], {}]
  const good = [0, 1, 99_999, null]
  const events: Record<string, readonly [Pick<typeof gemini, 'readAnswer'>, (index: unknown) => unknown]> = {
    'of a choice': [openaiChat, (index) => ({ choices: [{ index, delta: { content: 'x' } }] })],
    'of a text': [openaiCompletions, (index) => ({ choices: [{ index, text: 'x' }] })],
    'of a call': [
      openaiChat,
      (index) => ({ choices: [{ index: 0, delta: { tool_calls: [{ index, id: 'c', function: { name: 'f' } }] } }] }),
    ],
    'of a call of a later choice': [
      openaiChat,
      (index) => ({ choices: [{ index: 1, delta: { tool_calls: [{ index, id: 'c', function: { name: 'f' } }] } }] }),
    ],
    'of a block': [
      anthropicMessages,
      (index) => ({ type: 'content_block_start', index, content_block: { type: 'text' } }),
    ],
    'of a delta': [
      anthropicMessages,
      (index) => ({ type: 'content_block_delta', index, delta: { type: 'text_delta', text: 'x' } }),
    ],
    "of a block's end": [anthropicMessages, (index) => ({ type: 'content_block_stop', index })],
    'of a candidate': [gemini, (index) => ({ candidates: [{ index, content: { parts: [{ text: 'x' }] } }] })],
    ...Object.fromEntries(
      ['output_index', 'content_index', 'summary_index', 'annotation_index', 'sequence_number'].map((member) => [
        `named ${member}`,
        [openaiResponses, (index: unknown) => ({ type: 'response.output_text.delta', delta: 'x', [member]: index })],
      ]),
    ),
  }

  test.each(Object.entries(events))('%s is a whole number within a bound', (name, [format, event]) => {
    const read = (index: unknown) => format.readAnswer().readEvent(JSON.stringify(event(index)))
    for (const index of good) expect(() => read(index), String(index)).not.toThrow()
    for (const index of bad) {
      const isAccepted =
        (name === 'named sequence_number' && index === 100_000) || (name.startsWith('of a call') && index === -1)
      if (isAccepted) expect(() => read(index)).not.toThrow()
      else expect(() => read(index), JSON.stringify(index)).toThrow('broken')
    }
  })

  test('of a call in a whole answer is ignored: some servers give each -1', () => {
    const called = choice({ tool_calls: [{ index: -1, id: 'c', function: { name: 'f', arguments: '{}' } }] })
    expect(() => openaiChat.readAnswer().readWhole(called)).not.toThrow()
  })

  test('of a vector is a whole number within a bound', () => {
    for (const index of bad) {
      const vector = { data: [{ index, embedding: [1] }] } as JsonObject
      expect(() => openaiEmbeddings.readAnswer().readWhole(vector)).toThrow('broken')
    }
  })
})
