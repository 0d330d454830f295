import { describe, expect, test } from 'vitest'
import type { AnswerEvent } from '../../src/domain/conversation.ts'
import type { JsonObject } from '../../src/domain/json.ts'
import { relayById } from '../../src/formats/formats.ts'
import { openaiChat } from '../../src/formats/openai-chat/openai-chat.ts'
import { openaiResponses } from '../../src/formats/openai-responses/openai-responses.ts'
import { vendors } from '../../src/providers/registry.ts'
import { contextOf, dataOf, parseSse, targetOf, writeStream } from './exchange.ts'

/** The keys that the Open Responses test suite requires of every response object, `completed_at` to `metadata`. */
const responseKeys = `id object created_at completed_at status background error incomplete_details instructions
  max_output_tokens max_tool_calls model output parallel_tool_calls previous_response_id prompt_cache_key reasoning
  safety_identifier service_tier store temperature text tool_choice tools top_logprobs top_p presence_penalty
  frequency_penalty truncation usage metadata`.split(/\s+/)

const model = 'svc-router/frontier'
const plain = openaiResponses.readRequest({ model, input: 'hi', stream: true })
const usage = { inputTokens: 11, outputTokens: 7, cachedTokens: 3, reasoningTokens: 2, source: 'counted' } as const

const everything: AnswerEvent[] = [
  { type: 'start' },
  { type: 'reasoning', text: 'Let me ' },
  { type: 'reasoning', text: 'think.' },
  { type: 'reasoning_end' },
  { type: 'text', text: 'I will ' },
  { type: 'text', text: 'look.' },
  {
    type: 'annotation',
    annotation: { type: 'url_citation', url: 'https://example.com', title: 't', start_index: 0, end_index: 1 },
  },
  { type: 'refusal', text: 'Not that.' },
  { type: 'call', index: 0, kind: 'function', id: 'call_a', name: 'first' },
  { type: 'call_arguments', index: 0, text: '{"a"' },
  { type: 'call_arguments', index: 0, text: ':1}' },
  { type: 'call', index: 1, kind: 'custom', id: 'call_b', name: 'patch' },
  { type: 'call_arguments', index: 1, text: 'free text' },
  { type: 'finish', reason: 'tool_calls' },
  { type: 'usage', usage },
]

function streamed(events: readonly AnswerEvent[], body: JsonObject = {}): JsonObject[] {
  const conversation = openaiResponses.readRequest({ model, input: 'hi', stream: true, ...body })
  return dataOf(writeStream(openaiResponses, events, contextOf(conversation)))
}

function typesOf(frames: readonly JsonObject[]): unknown[] {
  return frames.map(({ type }) => type)
}

function toChat(input: readonly JsonObject[], body: JsonObject = {}, replaysReasoning = false): JsonObject {
  const conversation = openaiResponses.readRequest({ model, input, ...body })
  return openaiChat.writeRequest(conversation, targetOf(conversation, { replaysReasoning }))
}

const call = (id: string, name = 'look'): JsonObject => ({
  type: 'function_call',
  call_id: id,
  name,
  arguments: '{"x":1}',
})
const output = (id: string, value: unknown = 'done'): JsonObject =>
  ({ type: 'function_call_output', call_id: id, output: value }) as JsonObject
const user = { role: 'user', content: 'go' }

describe('pitfall 1: one ID for the whole response', () => {
  test('all events from created to completed have the same response ID', () => {
    const ids = streamed(everything).flatMap(({ response }) => (response ? [(response as JsonObject)['id']] : []))
    expect(ids).toHaveLength(3)
    expect(new Set(ids)).toEqual(new Set(['resp_0123456789']))
  })

  test('an input that is a list is kept', () => {
    const { turns } = openaiResponses.readRequest({ model, input: [user, { role: 'assistant', content: 'ok' }, user] })
    expect(turns.map(({ role }) => role)).toEqual(['user', 'assistant', 'user'])
  })
})

describe('pitfall 2: one model turn is one assistant message', () => {
  test('text and parallel calls are merged, and their outputs follow in the order of the calls', () => {
    const { messages } = toChat([
      user,
      { role: 'assistant', content: 'Both.' },
      call('a'),
      call('b'),
      output('b', 'B'),
      output('a', 'A'),
    ])
    expect(messages).toEqual([
      { role: 'user', content: 'go' },
      {
        role: 'assistant',
        content: 'Both.',
        tool_calls: ['a', 'b'].map((id) => ({
          id,
          type: 'function',
          function: { name: 'look', arguments: '{"x":1}' },
        })),
      },
      { role: 'tool', tool_call_id: 'a', content: 'A' },
      { role: 'tool', tool_call_id: 'b', content: 'B' },
    ])
  })

  test('a late output is moved to its call, and a missing output is reported as aborted', () => {
    const { messages } = toChat([user, call('a'), call('b'), { role: 'user', content: 'wait' }, output('a')])
    expect((messages as JsonObject[]).map(({ role, content }) => [role, content])).toEqual([
      ['user', 'go'],
      ['assistant', null],
      ['tool', 'done'],
      ['tool', 'aborted'],
      ['user', 'wait'],
    ])
  })

  test('outputs for an ID that is reused in a later turn are matched in order', () => {
    const { messages } = toChat([user, call('a'), output('a', '1'), user, call('a'), output('a', '2')])
    const results = (messages as JsonObject[]).filter(({ role }) => role === 'tool')
    expect(results.map(({ content }) => content)).toEqual(['1', '2'])
  })

  test.each([
    { where: 'without its call', input: [user, output('a')] },
    { where: 'before its call', input: [user, output('a'), call('a')] },
    { where: 'given twice', input: [user, call('a'), output('a'), output('a')] },
  ])('an output $where is rejected', ({ input }) => {
    expect(() => toChat(input)).toThrow(
      expect.objectContaining({
        code: 'invalid_request',
        facts: expect.objectContaining({ param: 'input' }) as unknown,
      }) as Error,
    )
  })
})

describe('pitfall 3: text and calls are one choice', () => {
  test('a non-streaming chat answer has one choice with the reason tool_calls', () => {
    const conversation = openaiChat.readRequest({ model, messages: [user] })
    const { choices } = openaiChat.writeAnswer(contextOf(conversation)).writeWhole(everything)
    expect(choices).toHaveLength(1)
    expect(choices).toMatchObject([
      {
        index: 0,
        finish_reason: 'tool_calls',
        message: {
          content: 'I will look.',
          tool_calls: [
            { id: 'call_a' },
            { id: 'call_b', type: 'custom', custom: { name: 'patch', input: 'free text' } },
          ],
        },
      },
    ])
  })

  test('every chunk of a stream belongs to choice 0', () => {
    const conversation = openaiChat.readRequest({ model, messages: [user], stream: true })
    const chunks = dataOf(writeStream(openaiChat, everything, contextOf(conversation)))
    const choices = chunks.flatMap((chunk) => chunk['choices'] as JsonObject[])
    expect(new Set(choices.map(({ index }) => index))).toEqual(new Set([0]))
    expect(choices.filter(({ finish_reason: reason }) => reason !== null)).toHaveLength(1)
    expect(chunks.every((chunk) => !('usage' in chunk))).toBe(true)
  })
})

const apply = { type: 'grammar', syntax: 'lark', definition: 'start: "x"' }
const codexTools: JsonObject[] = [
  { type: 'function', name: 'look', parameters: { type: 'object', properties: {} } },
  { type: 'custom', name: 'apply_patch', description: 'Patches.', format: apply },
  {
    type: 'namespace',
    name: 'agents',
    description: 'Agents.',
    tools: [
      { type: 'function', name: 'wait', parameters: { type: 'object', properties: {} } },
      { type: 'custom', name: 'run' },
    ],
  },
  { type: 'web_search', external_web_access: false },
]
/** The calls of an endpoint that supports only functions. */
const flatCalls: AnswerEvent[] = [
  { type: 'call', index: 0, kind: 'function', id: 'c0', name: 'apply_patch' },
  { type: 'call_arguments', index: 0, text: '{"input":"*** Begin' },
  { type: 'call_arguments', index: 0, text: ' Patch\\n"}' },
  { type: 'call', index: 1, kind: 'function', id: 'c1', name: 'agents__wait' },
  { type: 'call_arguments', index: 1, text: '{"s":1}' },
  { type: 'call', index: 2, kind: 'function', id: 'c2', name: 'agents__run' },
  { type: 'call_arguments', index: 2, text: '{"input":"ls"}' },
  { type: 'finish', reason: 'tool_calls' },
]
const restored = [
  { type: 'custom_tool_call', call_id: 'c0', name: 'apply_patch', input: '*** Begin Patch\n', status: 'completed' },
  { type: 'function_call', call_id: 'c1', name: 'wait', namespace: 'agents', arguments: '{"s":1}' },
  { type: 'custom_tool_call', call_id: 'c2', name: 'run', namespace: 'agents', input: 'ls', status: 'completed' },
]
const functionsOnly = { hostedTools: [] }

describe('pitfalls 4 and 5: custom tools and namespaces', () => {
  const conversation = openaiResponses.readRequest({ model, input: 'hi', stream: true, tools: codexTools })

  test.each([
    ['chat', openaiChat, {}],
    ['Responses endpoints that support only functions', openaiResponses, functionsOnly],
  ] as const)('all of them become functions for %s', (_, format, dialect) => {
    const { tools } = format.writeRequest(conversation, targetOf(conversation, dialect))
    const declared = (tools as JsonObject[]).map((tool) => (tool['function'] ?? tool) as JsonObject)
    expect(declared.map(({ name }) => name)).toEqual(['look', 'apply_patch', 'agents__wait', 'agents__run'])
    expect((tools as JsonObject[]).every(({ type }) => type === 'function')).toBe(true)
    expect(declared[1]).toMatchObject({
      description: expect.stringContaining('start: "x"') as string,
      parameters: { required: ['input'] },
    })
  })

  test('their calls come back with the original types, streamed and non-streaming', () => {
    const frames = streamed(flatCalls, { tools: codexTools })
    expect(frames.at(-1)!['response']).toMatchObject({ output: restored })
    const done = frames.filter(({ type }) => type === 'response.output_item.done')
    expect(done.map(({ item }) => item)).toMatchObject(restored)
    const added = frames.filter(({ type }) => type === 'response.output_item.added')
    expect(added.map(({ item }) => (item as JsonObject)['namespace'])).toEqual([undefined, 'agents', 'agents'])
    const input = frames.filter(({ type }) => type === 'response.custom_tool_call_input.delta')
    expect(input.map(({ delta }) => delta)).toEqual(['*** Begin Patch\n', 'ls'])
    expect(openaiResponses.writeAnswer(contextOf(conversation)).writeWhole(flatCalls)).toMatchObject({
      output: restored,
    })
  })

  test('names, types, and results are kept when the client sends them back', () => {
    const results = restored.map(({ type, call_id: id }) => ({ type: `${type}_output`, call_id: id, output: 'ok' }))
    const input = [user, ...restored, ...results]
    const history = openaiResponses.readRequest({ model, input, tools: codexTools })
    const flat = ['apply_patch', 'agents__wait', 'agents__run']
    const { messages } = openaiChat.writeRequest(history, targetOf(history))
    const calls = (messages as JsonObject[])[1]!['tool_calls'] as { function: JsonObject }[]
    expect(calls.map((one) => one.function)).toEqual([
      { name: flat[0], arguments: '{"input":"*** Begin Patch\\n"}' },
      { name: flat[1], arguments: '{"s":1}' },
      { name: flat[2], arguments: '{"input":"ls"}' },
    ])
    const functions = openaiResponses.writeRequest(history, targetOf(history, functionsOnly))['input'] as JsonObject[]
    expect(functions.slice(1, 4).map(({ type, name }) => [type, name])).toEqual(
      flat.map((name) => ['function_call', name]),
    )
    expect(functions.slice(4).map(({ type }) => type)).toEqual(flat.map(() => 'function_call_output'))
    const native = openaiResponses.writeRequest(history, targetOf(history))
    expect(native['input']).toMatchObject([
      { role: 'user' },
      ...restored.map(({ type, call_id: id, name }) => ({ type, call_id: id, name })),
      ...results,
    ])
    expect((native['tools'] as JsonObject[]).slice(0, 2)).toMatchObject(codexTools.slice(0, 2))
  })

  test.each([
    [{ type: 'custom', name: 'apply_patch' }, 'apply_patch'],
    [{ type: 'function', name: 'wait', namespace: 'agents' }, 'agents__wait'],
    [{ type: 'custom', name: 'run', namespace: 'agents' }, 'agents__run'],
    [{ type: 'function', name: 'wait' }, 'agents__wait'],
  ])('the tool choice %j is translated', (choice, flat) => {
    const chosen = openaiResponses.readRequest({ model, input: 'hi', tools: codexTools, tool_choice: choice })
    expect(openaiChat.writeRequest(chosen, targetOf(chosen))['tool_choice']).toEqual({
      type: 'function',
      function: { name: flat },
    })
    expect(openaiResponses.writeRequest(chosen, targetOf(chosen, functionsOnly))['tool_choice']).toEqual({
      type: 'function',
      name: flat,
    })
  })

  test('allowed_tools can name them', () => {
    const allowed = { type: 'allowed_tools', mode: 'required', tools: [{ type: 'custom', name: 'apply_patch' }] }
    const chosen = openaiResponses.readRequest({ model, input: 'hi', tools: codexTools, tool_choice: allowed })
    const body = openaiResponses.writeRequest(chosen, targetOf(chosen, functionsOnly))
    expect(body['tools']).toHaveLength(4)
    expect((body['input'] as JsonObject[]).at(-1)?.['content']).toContain('only these tools: apply_patch.')
    expect(body['tool_choice']).toBe('required')
  })

  test('a namespace without a description gets one, which Azure requires', () => {
    const { tools } = openaiResponses.writeRequest(conversation, targetOf(conversation))
    expect((tools as JsonObject[])[2]).toMatchObject({
      type: 'namespace',
      name: 'agents',
      description: expect.stringMatching(/./) as string,
    })
  })
})

describe('pitfall 6: additional_tools', () => {
  const item = { type: 'additional_tools', role: 'developer', tools: codexTools }

  test('an additional_tools item declares tools and is not a message', () => {
    const conversation = openaiResponses.readRequest({ model, input: [item, user] as JsonObject[] })
    expect(conversation.turns).toHaveLength(1)
    const direct = openaiResponses.readRequest({ model, input: [user], tools: codexTools })
    expect(conversation.tools).toEqual(direct.tools)
    const events = openaiResponses.writeAnswer(contextOf(conversation)).writeWhole(flatCalls)
    expect(events).toMatchObject({ output: restored })
  })
})

describe('the tools that a Responses endpoint supports decide whether a request is relayed', () => {
  const fits = (body: JsonObject, dialect: object = functionsOnly): boolean | undefined =>
    relayById('openai-responses').fits?.(body, { ...targetOf(plain).dialect, ...dialect })
  const look = codexTools[0]!

  test.each([
    ['functions', { tools: [look], input: [user, call('a'), output('a')] }],
    ['a tool without a type', { tools: [{ name: 'look' }], input: 'hi' }],
    ['our own tool', { tools: [{ type: 'svc-router:fusion' }] }],
    ['a result in text parts', { input: [output('a', [{ type: 'input_text', text: 'x' }])] }],
    ['messages, reasoning, and references', { input: [user, { type: 'reasoning', summary: [] }, { id: 'msg_1' }] }],
  ])('%s: the request is relayed', (_, body) => {
    expect(fits(body as JsonObject)).toBe(true)
  })

  test.each([
    ['a custom tool', { tools: [codexTools[1]!] }],
    ['a namespace', { tools: [codexTools[2]!] }],
    ['a hosted tool', { tools: [codexTools[3]!] }],
    ['a tool that is not an object', { tools: ['x'] }],
    ['a call of a custom tool', { input: [restored[0]!] }],
    ['a call in a namespace', { input: [restored[1]!] }],
    ['tools inside the input', { input: [{ type: 'additional_tools', tools: [] }] }],
    ['an image in a result', { input: [output('a', [{ type: 'input_image', image_url: 'x' }])] }],
    ['an item of an unknown type', { input: [{ type: 'web_search_call' }] }],
  ])('%s: the request is relayed only to an endpoint that supports all tools', (_, body) => {
    expect(fits(body as JsonObject)).toBe(false)
    expect(fits(body as JsonObject, {})).toBe(true)
  })

  test('a hosted tool is relayed to an endpoint that runs it', () => {
    const search = { hostedTools: ['web_search'] }
    expect(fits({ tools: [codexTools[3]!] }, search)).toBe(true)
    const conversation = openaiResponses.readRequest({ model, input: 'hi', tools: codexTools })
    const { tools } = openaiResponses.writeRequest(conversation, targetOf(conversation, search))
    expect((tools as JsonObject[]).at(-1)).toEqual(codexTools[3])
  })

  test('every vendor with Responses lists its hosted tools, except OpenAI, Azure, and their simulation', () => {
    const speaking = Object.entries(vendors).filter(([, { formats }]) =>
      formats.some((id) => id === 'openai-responses'),
    )
    const knowing = speaking.filter(([, { dialect }]) => !('hostedTools' in dialect))
    expect(knowing.map(([id]) => id)).toEqual(['openai', 'azure-openai', 'simulated'])
  })
})

describe('pitfall 7: no unknown type causes a 400', () => {
  const tools = [
    { type: 'web_search', external_web_access: false },
    { type: 'local_shell' },
    { type: 'mcp', server_label: 'x' },
    { type: 'vendor:thing', anything: [1] },
    { type: 'namespace', name: 'n', tools: [{ type: 'something_new' }] },
    { type: 'namespace', name: 'without_tools' },
  ]

  test('unknown tools are kept, and dropped for endpoints that cannot serve them', () => {
    const conversation = openaiResponses.readRequest({ model, input: 'hi', tools, tool_choice: 'required' })
    // A namespace without tools declares nothing.
    expect(conversation.tools).toHaveLength(5)
    expect(conversation.tools.every(({ type }) => type === 'hosted')).toBe(true)
    for (const format of [openaiChat, openaiResponses]) {
      const body = format.writeRequest(conversation, targetOf(conversation))
      expect(body).not.toHaveProperty('tools')
      expect(body).not.toHaveProperty('tool_choice')
    }
  })

  test('unknown tools are accepted on chat, too', () => {
    expect(openaiChat.readRequest({ model, messages: [user], tools }).tools).toHaveLength(5)
  })

  test('unknown types of items and content are accepted', () => {
    const input = [
      { type: 'web_search_call', id: 'ws_1' },
      { type: 'compaction', encrypted_content: 'x' },
      { type: 'acme:note' },
    ]
    const odd = {
      role: 'user',
      content: [
        { type: 'hologram', data: 'x' },
        { type: 'input_text', text: 'go' },
      ],
    }
    expect(openaiResponses.readRequest({ model, input: [...input, odd] }).turns).toEqual([
      { role: 'user', parts: [{ type: 'text', text: 'go' }] },
    ])
  })
})

describe('pitfall 10: indexes and item IDs', () => {
  const frames = streamed(everything)

  test('sequence numbers and output indexes start at 0 and have no gaps', () => {
    expect(frames.map(({ sequence_number: number }) => number)).toEqual(frames.map((_, index) => index))
    const added = frames.filter(({ type }) => type === 'response.output_item.added')
    expect(added.map((frame) => frame['output_index'])).toEqual([0, 1, 2, 3])
  })

  test('an item has the same ID in added, deltas, done, and the final output', () => {
    const { output } = frames.at(-1)!['response'] as { output: JsonObject[] }
    expect(output.map(({ type }) => type)).toEqual(['reasoning', 'message', 'function_call', 'custom_tool_call'])
    expect(new Set(output.map(({ id }) => id)).size).toBe(4)
    for (const frame of frames) {
      if (typeof frame['item_id'] === 'string')
        expect(frame['item_id']).toBe(output[frame['output_index'] as number]!['id'])
      if (frame['type'] === 'response.output_item.added') {
        expect((frame['item'] as JsonObject)['id']).toBe(output[frame['output_index'] as number]!['id'])
      }
      if (frame['type'] === 'response.output_item.done')
        expect(frame['item']).toEqual(output[frame['output_index'] as number])
    }
    expect(output.map(({ id }) => (id as string).replace(/_.*/, ''))).toEqual(['rs', 'msg', 'fc', 'ctc'])
  })

  test('content indexes count the parts of a message with text and refusal', () => {
    const parts = frames.filter(({ type }) => type === 'response.content_part.added')
    expect(parts.map((frame) => frame['content_index'])).toEqual([0, 1])
  })
})

describe('parallel calls with interleaved arguments', () => {
  const open = (index: number, kind: 'function' | 'custom'): AnswerEvent => ({
    type: 'call',
    index,
    kind,
    id: `c${index}`,
    name: 'f',
  })
  const piece = (index: number, text: string): AnswerEvent => ({ type: 'call_arguments', index, text })
  const finish: AnswerEvent = { type: 'finish', reason: 'tool_calls' }

  test.each([
    { what: 'a function whose arguments so far only look complete', kind: 'function', pieces: ['{"a":{}', '}'] },
    { what: 'a custom tool whose input so far happens to be JSON', kind: 'custom', pieces: ['{}', ' and more'] },
    { what: 'a function with whitespace after its arguments', kind: 'function', pieces: ['{}', ' \n'] },
  ] as const)('nothing is lost with $what', ({ kind, pieces }) => {
    const events = [
      open(0, kind),
      piece(0, pieces[0]),
      open(1, 'function'),
      piece(0, pieces[1]),
      piece(1, '{}'),
      finish,
    ]
    const { output } = streamed(events).at(-1)!['response'] as { output: JsonObject[] }
    expect(output.map((item) => ((item['arguments'] ?? item['input']) as string).trim())).toEqual([
      pieces.join('').trim(),
      '{}',
    ])
  })

  test('each call is done before the next if its arguments are already complete', () => {
    const types = typesOf(streamed([open(0, 'function'), piece(0, '{}'), open(1, 'function'), piece(1, '{}'), finish]))
    expect(types.filter((type) => (type as string).includes('output_item'))).toEqual([
      'response.output_item.added',
      'response.output_item.done',
      'response.output_item.added',
      'response.output_item.done',
    ])
  })

  test('arguments that continue after a complete object break the answer', () => {
    const events = [open(0, 'function'), piece(0, '{}'), open(1, 'function'), piece(0, '{}'), finish]
    expect(() => streamed(events)).toThrow('broken')
  })
})

describe('pitfall 11: every lifecycle event is sent in order', () => {
  test('reasoning, a message, and calls have their lifecycle events', () => {
    expect(typesOf(streamed(everything))).toEqual([
      'response.created',
      'response.in_progress',
      'response.output_item.added',
      'response.reasoning_summary_part.added',
      'response.reasoning_summary_text.delta',
      'response.reasoning_summary_text.delta',
      'response.reasoning_summary_text.done',
      'response.reasoning_summary_part.done',
      'response.output_item.done',
      'response.output_item.added',
      'response.content_part.added',
      'response.output_text.delta',
      'response.output_text.delta',
      'response.output_text.annotation.added',
      'response.output_text.done',
      'response.content_part.done',
      'response.content_part.added',
      'response.refusal.delta',
      'response.refusal.done',
      'response.content_part.done',
      'response.output_item.done',
      'response.output_item.added',
      'response.function_call_arguments.delta',
      'response.function_call_arguments.delta',
      'response.function_call_arguments.done',
      'response.output_item.done',
      'response.output_item.added',
      'response.custom_tool_call_input.delta',
      'response.custom_tool_call_input.done',
      'response.output_item.done',
      'response.completed',
    ])
  })

  test('the name of each event equals its type', () => {
    for (const { event, data } of parseSse(writeStream(openaiResponses, everything, contextOf(plain)))) {
      if (data !== '[DONE]') expect(event).toBe((JSON.parse(data) as JsonObject)['type'])
    }
  })

  test('if an answer is truncated, the response and its last item are incomplete', () => {
    const frames = streamed([
      { type: 'reasoning', text: 'Hm.' },
      { type: 'text', text: 'Half' },
      { type: 'finish', reason: 'length' },
    ])
    const { type, response } = frames.at(-1)!
    expect(type).toBe('response.incomplete')
    expect(response).toMatchObject({
      status: 'incomplete',
      completed_at: null,
      incomplete_details: { reason: 'max_output_tokens' },
      output: [{ type: 'reasoning' }, { type: 'message', status: 'incomplete' }],
    })
  })

  test('usage that arrives after the end is in the final event, with its details', () => {
    expect(streamed(everything).at(-1)!['response']).toMatchObject({
      usage: {
        input_tokens: 11,
        input_tokens_details: { cached_tokens: 3, cache_write_tokens: 0 },
        output_tokens: 7,
        output_tokens_details: { reasoning_tokens: 2 },
        total_tokens: 18,
      },
    })
  })

  test('every response object has all keys of the API', () => {
    const writer = openaiResponses.writeAnswer(contextOf(plain))
    const failure = {
      code: 'c',
      type: 't',
      message: 'm',
      param: null,
      source: 'gateway',
      retryable: true,
      requestId: 'req_1',
    }
    const broken = dataOf(writer.writeKeepAlive() + writer.writeKeepAlive() + writer.writeFailure(failure))
    const whole = openaiResponses.writeAnswer(contextOf(plain)).writeWhole(everything)
    const objects = [...streamed(everything), ...broken].flatMap(({ response }) => (response ? [response] : []))
    expect(responseKeys).toHaveLength(31)
    expect(typesOf(broken)).toEqual([
      'response.created',
      'response.in_progress',
      'response.in_progress',
      'error',
      'response.failed',
    ])
    for (const response of [...objects, whole]) expect(Object.keys(response).sort()).toEqual([...responseKeys].sort())
  })

  test('a response repeats the request’s settings, and of its tools only functions', () => {
    const parameters = { type: 'object', properties: {} }
    const asked = {
      instructions: 'Be brief.',
      temperature: 0.5,
      metadata: { a: 'b' },
      user: 'u',
      store: false,
      max_output_tokens: 9,
      reasoning: { effort: 'low' },
      text: { verbosity: 'low' },
      tool_choice: { type: 'function', name: 'f' },
      tools: [{ type: 'function', name: 'f', parameters }, { type: 'web_search' }, { type: 'custom', name: 'c' }],
    }
    expect(streamed(everything, asked)[0]!['response']).toMatchObject({
      ...asked,
      reasoning: { effort: 'low', summary: null },
      text: { format: { type: 'text' }, verbosity: 'low' },
      tools: [{ type: 'function', name: 'f', description: null, parameters, strict: null }],
    })
  })
})

describe('pitfall 12: images in tool outputs', () => {
  const image = { type: 'input_image', image_url: 'data:image/png;base64,AAAA', detail: 'original' }

  test('images follow in one user message after the last output, never as text', () => {
    const { messages } = toChat([
      user,
      call('a'),
      call('b'),
      output('a', [image]),
      output('b', [{ type: 'input_text', text: 'seen' }, image]),
    ])
    expect((messages as JsonObject[]).slice(2)).toEqual([
      { role: 'tool', tool_call_id: 'a', content: '[image]' },
      { role: 'tool', tool_call_id: 'b', content: 'seen' },
      {
        role: 'user',
        content: [0, 1].map(() => ({
          type: 'image_url',
          image_url: { url: 'data:image/png;base64,AAAA', detail: 'high' },
        })),
      },
    ])
  })

  test('images stay in the output on Responses', () => {
    const conversation = openaiResponses.readRequest({ model, input: [user, call('a'), output('a', [image])] })
    const { input } = openaiResponses.writeRequest(conversation, targetOf(conversation))
    expect((input as JsonObject[])[2]).toEqual({ type: 'function_call_output', call_id: 'a', output: [image] })
  })
})

describe('pitfall 12 for Responses endpoints whose tool outputs are text only', () => {
  const image = { type: 'input_image', image_url: 'data:image/png;base64,AAAA', detail: 'high' }

  test('images follow the last output as a user message', () => {
    const input = [
      user,
      call('a'),
      call('b'),
      output('a', [image]),
      output('b', 'seen'),
      { role: 'assistant', content: 'Ok.' },
    ]
    const conversation = openaiResponses.readRequest({ model, input })
    const written = openaiResponses.writeRequest(conversation, targetOf(conversation, functionsOnly))['input']
    expect((written as JsonObject[]).slice(3)).toEqual([
      { type: 'function_call_output', call_id: 'a', output: '[image]' },
      { type: 'function_call_output', call_id: 'b', output: 'seen' },
      { type: 'message', role: 'user', content: [image] },
      { type: 'message', role: 'assistant', content: 'Ok.' },
    ])
  })
})

describe('pitfall 13: reasoning is never sent as text', () => {
  const thought = {
    type: 'reasoning',
    id: 'rs_1',
    summary: [{ type: 'summary_text', text: 'secret thought' }],
    encrypted_content: 'SEALED',
  }

  test('a turn with only reasoning becomes no message', () => {
    const body = toChat([user, thought, user])
    expect(body['messages']).toEqual([user, user])
    expect(JSON.stringify(body)).not.toMatch(/secret thought|SEALED/)
  })

  test('a backend that needs reasoning back gets it in its own field', () => {
    const { messages } = toChat([user, thought, { role: 'assistant', content: 'Hi.' }], {}, true)
    expect((messages as JsonObject[])[1]).toEqual({
      role: 'assistant',
      content: 'Hi.',
      reasoning_content: 'secret thought',
    })
  })

  test('a backend’s reasoning reaches the client as reasoning', () => {
    const reader = openaiChat.readAnswer()
    const chunk = {
      choices: [{ index: 0, delta: { reasoning_content: 'Hm.', content: 'Hi.' }, finish_reason: 'stop' }],
    }
    const { output } = openaiResponses.writeAnswer(contextOf(plain)).writeWhole(reader.readEvent(JSON.stringify(chunk)))
    expect(output).toMatchObject([
      { type: 'reasoning', summary: [{ type: 'summary_text', text: 'Hm.' }] },
      { type: 'message', content: [{ type: 'output_text', text: 'Hi.' }] },
    ])
  })
})
