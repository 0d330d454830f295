import { describe, expect, test } from 'vitest'
import { ServiceError } from '../../src/domain/errors.ts'
import type { Json, JsonObject } from '../../src/domain/json.ts'
import { anthropicMessages } from '../../src/formats/anthropic-messages/anthropic-messages.ts'
import { openaiChat } from '../../src/formats/openai-chat/openai-chat.ts'
import { openaiCompletions } from '../../src/formats/openai-completions/openai-completions.ts'
import { openaiResponses } from '../../src/formats/openai-responses/openai-responses.ts'

const marker = 'PRIVATE-TEXT'
const user = { role: 'user', content: marker }
const called = {
  role: 'assistant',
  content: null,
  tool_calls: [{ id: 'c', type: 'function', function: { name: 'f', arguments: '{}' } }],
}

function refusalOf(read: () => unknown): ServiceError {
  try {
    read()
  } catch (error) {
    if (error instanceof ServiceError) return error
    throw error
  }
  throw new Error('accepted')
}

function expectRefusal(read: () => unknown, param: string): void {
  const { code, facts, status } = refusalOf(read)
  expect({ code, param: facts.param, status }).toEqual({ code: 'invalid_request', param, status: 400 })
  const problem = String(facts.words?.['problem'])
  expect(problem).toMatch(/^\S.+\.$/)
  expect(problem.length).toBeLessThanOrEqual(240)
  expect(problem).not.toContain(marker)
}

/** The invalid fields, added to an otherwise valid body, and the field that the error must name. */
const both: [JsonObject, string][] = [
  [{ model: 7 }, 'model'],
  [{ model: null }, 'model'],
  [{ stream: marker }, 'stream'],
  [{ temperature: marker }, 'temperature'],
  [{ top_p: [] }, 'top_p'],
  [{ top_logprobs: marker }, 'top_logprobs'],
  [{ user: 7 }, 'user'],
  [{ metadata: marker }, 'metadata'],
  [{ service_tier: {} }, 'service_tier'],
  [{ tools: {} }, 'tools'],
  [{ tools: [marker] }, 'tools[0]'],
  [{ tools: [{ type: 7 }] }, 'tools[0].type'],
  [{ tools: [{ type: 'function' }] }, 'tools[0].name'],
  [{ tools: [{ type: 'function', function: { name: 1 } }] }, 'tools[0].function.name'],
  [{ tools: [{ type: 'function', name: 'f', parameters: marker }] }, 'tools[0].parameters'],
  [{ tools: [{ type: 'custom', name: 'f', format: marker }] }, 'tools[0].format'],
  [{ tools: [{ type: 'namespace', name: 'n', tools: [{ type: 'function' }] }] }, 'tools[0].tools[0].name'],
  [{ tool_choice: 7 }, 'tool_choice'],
  [{ tool_choice: { type: 'function' } }, 'tool_choice.name'],
  [{ tool_choice: { type: 'allowed_tools', tools: marker } }, 'tool_choice.tools'],
  [{ parallel_tool_calls: 'no' }, 'parallel_tool_calls'],
]

const chat: [JsonObject, string][] = [
  ...both,
  [{ messages: marker }, 'messages'],
  [{ messages: null }, 'messages'],
  [{ messages: [user, marker] }, 'messages[1]'],
  [{ messages: [user, null] }, 'messages[1]'],
  [{ messages: [user, user, { role: 7 }] }, 'messages[2].role'],
  [{ messages: [{ content: marker }] }, 'messages[0].role'],
  [{ messages: [{ role: marker, content: 'x' }] }, 'messages[0].role'],
  [{ messages: [{ role: 'user', content: 7 }] }, 'messages[0].content'],
  [{ messages: [{ role: 'user', content: [7] }] }, 'messages[0].content[0]'],
  [{ messages: [{ role: 'user', content: [{ type: 'text', text: 7 }] }] }, 'messages[0].content[0].text'],
  [
    { messages: [{ role: 'user', content: [{ type: 'image_url', image_url: {} }] }] },
    'messages[0].content[0].image_url.url',
  ],
  [{ messages: [{ role: 'user', content: [{ type: 'input_audio' }] }] }, 'messages[0].content[0].input_audio'],
  [
    { messages: [{ role: 'user', content: [{ type: 'file', file: { file_data: 7 } }] }] },
    'messages[0].content[0].file.file_data',
  ],
  [{ messages: [{ role: 'assistant', tool_calls: {} }] }, 'messages[0].tool_calls'],
  [{ messages: [{ role: 'assistant', tool_calls: [{ id: 7 }] }] }, 'messages[0].tool_calls[0].id'],
  [{ messages: [{ role: 'assistant', tool_calls: [{ id: 'c' }] }] }, 'messages[0].tool_calls[0].function'],
  [{ messages: [called, { role: 'tool', content: marker }] }, 'messages[1].tool_call_id'],
  [{ max_completion_tokens: marker }, 'max_completion_tokens'],
  [{ max_tokens: marker }, 'max_tokens'],
  [{ n: '2' }, 'n'],
  [{ stop: 7 }, 'stop'],
  [{ stop: ['a', 7] }, 'stop'],
  [{ logprobs: 1 }, 'logprobs'],
  [{ stream_options: marker }, 'stream_options'],
  [{ response_format: marker }, 'response_format'],
  [
    { response_format: { type: 'json_schema', json_schema: { name: 'x', schema: marker } } },
    'response_format.json_schema.schema',
  ],
  [{ reasoning_effort: 7 }, 'reasoning_effort'],
]

const responses: [JsonObject, string][] = [
  ...both,
  [{ input: 7 }, 'input'],
  [{ input: { role: 'user' } }, 'input'],
  [{ input: [marker] }, 'input[0]'],
  [{ input: [{ type: 7 }] }, 'input[0].type'],
  [{ input: [{ type: 'message', content: marker }] }, 'input[0].role'],
  [{ input: [{ role: marker, content: 'x' }] }, 'input[0].role'],
  [{ input: [{ role: 'user', content: {} }] }, 'input[0].content'],
  [{ input: [{ role: 'assistant', content: [{ type: 'output_text' }] }] }, 'input[0].content[0].text'],
  [{ input: [{ type: 'function_call', name: 'f' }] }, 'input[0].call_id'],
  [{ input: [{ type: 'function_call', call_id: 'c', name: 'f', arguments: {} }] }, 'input[0].arguments'],
  [{ input: [{ type: 'function_call_output', call_id: 'c', output: 7 }] }, 'input[0].output'],
  [{ input: [{ type: 'item_reference' }] }, 'input[0].id'],
  [{ input: [{ type: 'additional_tools', tools: [{ type: 'function' }] }] }, 'input[0].tools[0].name'],
  [{ instructions: [] }, 'instructions'],
  [{ max_output_tokens: marker }, 'max_output_tokens'],
  [{ store: 'yes' }, 'store'],
  [{ include: marker }, 'include'],
  [{ reasoning: marker }, 'reasoning'],
  [{ reasoning: { effort: 7 } }, 'reasoning.effort'],
  [{ text: marker }, 'text'],
  [{ text: { format: 7 } }, 'text.format'],
  [{ previous_response_id: 7 }, 'previous_response_id'],
]

describe('a value of the wrong type is rejected with its field', () => {
  test.each(chat.map(([wrong, param]) => ({ wrong, param })))('on chat: $wrong', ({ wrong, param }) => {
    expectRefusal(() => openaiChat.readRequest({ model: 'm', messages: [user], ...wrong }), param)
  })

  test.each(responses.map(([wrong, param]) => ({ wrong, param })))('on Responses: $wrong', ({ wrong, param }) => {
    expectRefusal(() => openaiResponses.readRequest({ model: 'm', input: [user], ...wrong }), param)
  })
})

describe('null and unknown fields are treated as absent', () => {
  const nothing = [
    'temperature',
    'stream',
    'tools',
    'tool_choice',
    'metadata',
    'user',
    'stop',
    'response_format',
    'text',
    'reasoning',
    'store',
    'include',
    'previous_response_id',
    'background',
    'prompt',
  ]
  const empty = Object.fromEntries([
    ...nothing.map((name): [string, Json] => [name, null]),
    ['client_metadata', { a: 1 }],
  ])

  test('on chat', () => {
    const read = openaiChat.readRequest({ ...empty, model: 'm', messages: [user] })
    expect(read).toEqual(openaiChat.readRequest({ model: 'm', messages: [user] }))
  })

  test('on Responses', () => {
    const read = openaiResponses.readRequest({ ...empty, model: 'm', input: [user] })
    expect(read).toEqual(openaiResponses.readRequest({ model: 'm', input: [user] }))
  })
})

describe('a chat request', () => {
  test('the older names are accepted: max_tokens, the function role, and function_call', () => {
    const read = openaiChat.readRequest({
      model: 'm',
      max_tokens: 5,
      messages: [
        user,
        { role: 'assistant', content: null, function_call: { name: 'f', arguments: '{"a":1}' } },
        { role: 'function', name: 'f', content: 'result' },
      ],
    })
    expect(read.sampling).toEqual({ maxOutputTokens: 5 })
    expect(read.turns.slice(1)).toEqual([
      { role: 'assistant', parts: [{ type: 'call', kind: 'function', id: 'f', name: 'f', arguments: '{"a":1}' }] },
      { role: 'tool', callId: 'f', parts: [{ type: 'text', text: 'result' }], kind: 'function' },
    ])
  })

  test('results of custom calls are distinguished from results of functions', () => {
    const custom = { id: 'x', type: 'custom', custom: { name: 'patch', input: 'text' } }
    const { turns } = openaiChat.readRequest({
      model: 'm',
      messages: [
        { role: 'assistant', tool_calls: [custom] },
        { role: 'tool', tool_call_id: 'x', content: 'ok' },
      ],
    })
    expect(turns).toEqual([
      { role: 'assistant', parts: [{ type: 'call', kind: 'custom', id: 'x', name: 'patch', arguments: 'text' }] },
      { role: 'tool', callId: 'x', parts: [{ type: 'text', text: 'ok' }], kind: 'custom' },
    ])
  })

  test('the output format is read', () => {
    const read = openaiChat.readRequest({
      model: 'm',
      messages: [],
      stream: true,
      stream_options: { include_usage: true },
      stop: 'END',
      n: 2,
      seed: 7,
      logprobs: true,
      top_logprobs: 3,
      reasoning_effort: 'high',
      verbosity: 'low',
    })
    expect(read).toMatchObject({
      stream: true,
      streamUsage: true,
      sampling: { stop: ['END'], choices: 2, seed: 7, logprobs: true, topLogprobs: 3 },
      reasoning: { effort: 'high' },
      hints: { verbosity: 'low' },
    })
  })
})

describe('a Responses request', () => {
  test('the input may be a string', () => {
    expect(openaiResponses.readRequest({ model: 'm', input: 'hi' }).turns).toEqual([
      { role: 'user', parts: [{ type: 'text', text: 'hi' }] },
    ])
  })

  test('references to stored items are kept for the caller to resolve', () => {
    const { hints, turns } = openaiResponses.readRequest({
      model: 'm',
      previous_response_id: 'resp_1',
      background: true,
      prompt: { id: 'p' },
      conversation: null,
      input: [{ type: 'item_reference', id: 'msg_1' }, { id: 'rs_2' }],
    })
    expect(turns).toEqual([])
    expect(hints).toEqual({
      previousResponseId: 'resp_1',
      references: ['msg_1', 'rs_2'],
      untranslatable: ['background', 'prompt'],
    })
  })

  test('reasoning is read as a summary, or raw if there is none, with its encrypted content', () => {
    const { turns } = openaiResponses.readRequest({
      model: 'm',
      input: [
        {
          type: 'reasoning',
          summary: [
            { type: 'summary_text', text: 'a' },
            { type: 'summary_text', text: 'b' },
          ],
          encrypted_content: 'S',
        },
        { type: 'reasoning', summary: [], content: [{ type: 'reasoning_text', text: 'raw' }] },
        { type: 'reasoning', summary: [] },
      ],
    })
    expect(turns).toEqual([
      {
        role: 'assistant',
        parts: [
          { type: 'reasoning', text: 'a\n\nb', sealed: 'S' },
          { type: 'reasoning', text: 'raw' },
        ],
      },
    ])
  })
})

describe('a limit or count is an integer of 32 bits (contract 2.46)', () => {
  const formats = [
    {
      format: openaiChat,
      content: { messages: [user] },
      fields: ['max_tokens', 'max_completion_tokens', 'n', 'best_of'],
    },
    { format: openaiCompletions, content: { prompt: marker }, fields: ['max_tokens', 'n', 'best_of'] },
    { format: openaiResponses, content: { input: marker }, fields: ['max_output_tokens', 'max_tool_calls'] },
    { format: anthropicMessages, content: { messages: [user] }, fields: ['max_tokens', 'thinking.budget_tokens'] },
  ]
  const withZero = new Set([
    'openai-completions max_tokens',
    'anthropic-messages max_tokens',
    'anthropic-messages thinking.budget_tokens',
    'openai-responses max_tool_calls',
  ])
  const cases = formats.flatMap(({ format, content, fields }) =>
    fields.map((field) => ({ format, content, field, name: `${format.id} ${field}` })),
  )

  function bodyWith(content: JsonObject, field: string, value: Json): JsonObject {
    const [outer, inner] = field.split('.')
    return { model: 'm', ...content, [outer!]: inner === undefined ? value : { type: 'enabled', [inner]: value } }
  }

  test.each(cases)('$name', ({ format, content, field, name }) => {
    for (const value of [-1, -1e7, -1e308, 1e308, 0.1, 99.5, 2 ** 31, marker])
      expectRefusal(() => format.readRequest(bodyWith(content, field, value)), field)
    for (const value of [null, 1, 64_000, 2 ** 31 - 1]) format.readRequest(bodyWith(content, field, value))
    const readZero = () => format.readRequest(bodyWith(content, field, 0))
    if (withZero.has(name)) readZero()
    else expectRefusal(readZero, field)
  })

  test('of two limits of a chat request, the larger one counts', () => {
    for (const limits of [
      { max_tokens: 20_000, max_completion_tokens: 1 },
      { max_tokens: 1, max_completion_tokens: 20_000 },
    ])
      expect(openaiChat.readRequest({ model: 'm', messages: [user], ...limits }).sampling.maxOutputTokens).toBe(20_000)
  })

  test('a provider writes best_of answers for each prompt', () => {
    const body = { model: 'm', prompt: ['a', 'b'], n: 2, best_of: 5 }
    expect(openaiCompletions.readRequest(body).sampling).toMatchObject({ choices: 4, candidates: 10 })
  })
})
