import { describe, expect, test } from 'vitest'
import type { AnswerEvent, Conversation } from '../../src/domain/conversation.ts'
import type { JsonObject } from '../../src/domain/json.ts'
import { openaiChat } from '../../src/formats/openai-chat/openai-chat.ts'
import { openaiResponses } from '../../src/formats/openai-responses/openai-responses.ts'
import { ToolNames } from '../../src/formats/tool-names.ts'
import { contentOf, contextOf, readStream, targetOf, writeStream } from './exchange.ts'

const model = 'svc-router/frontier'
const user = { role: 'user', content: 'go' }
const parameters = { type: 'object', properties: {} }
const codex = openaiResponses.readRequest({
  model,
  stream: true,
  input: [user],
  tools: [
    { type: 'function', name: 'look', parameters, strict: null },
    {
      type: 'namespace',
      name: 'agents',
      tools: [
        { type: 'function', name: 'wait', parameters },
        { type: 'custom', name: 'run' },
      ],
    },
    {
      type: 'custom',
      name: 'apply_patch',
      description: 'Patches.',
      format: { type: 'grammar', syntax: 'lark', definition: 'start: "x"' },
    },
  ],
})

function chatBody(body: JsonObject): JsonObject {
  const conversation = openaiResponses.readRequest({ model, input: [user], ...body })
  return openaiChat.writeRequest(conversation, targetOf(conversation))
}

function responsesBody(body: JsonObject): JsonObject {
  const conversation = openaiChat.readRequest({ model, messages: [user], ...body })
  return openaiResponses.writeRequest(conversation, targetOf(conversation))
}

function callOf(name: string, text: string): AnswerEvent[] {
  return [
    { type: 'call', index: 0, kind: 'function', id: 'call_1', name },
    ...Array.from(text, (character): AnswerEvent => ({ type: 'call_arguments', index: 0, text: character })),
    { type: 'finish', reason: 'tool_calls' },
  ]
}

function outputOf(conversation: Conversation, events: readonly AnswerEvent[]): unknown {
  const whole = openaiResponses.writeAnswer(contextOf(conversation)).writeWhole(events)['output']
  const frames = writeStream(openaiResponses, events, contextOf(conversation)).split('\n\n').at(-3)!
  const streamed = (JSON.parse(frames.split('data: ')[1]!) as { response: JsonObject }).response['output']
  expect(streamed).toEqual(whole)
  return whole
}

describe('Codex tools on a chat backend', () => {
  test('all become functions whose names contain their namespace', () => {
    const { tools } = openaiChat.writeRequest(codex, targetOf(codex))
    expect(tools).toMatchObject([
      { type: 'function', function: { name: 'look', parameters } },
      { type: 'function', function: { name: 'agents__wait', parameters } },
      {
        type: 'function',
        function: { name: 'agents__run', parameters: { properties: { input: { type: 'string' } } } },
      },
      {
        type: 'function',
        function: { name: 'apply_patch', description: expect.stringContaining('lark grammar:\nstart: "x"') as string },
      },
    ])
    expect(JSON.stringify(tools)).not.toContain('strict')
  })

  test('their calls come back with the original names and types', () => {
    expect(outputOf(codex, callOf('agents__wait', '{"a":1}'))).toEqual([
      {
        type: 'function_call',
        id: 'fc_minted1',
        call_id: 'call_1',
        name: 'wait',
        namespace: 'agents',
        arguments: '{"a":1}',
        status: 'completed',
      },
    ])
    expect(outputOf(codex, callOf('apply_patch', '{"input":"*** Begin\\n"}'))).toEqual([
      {
        type: 'custom_tool_call',
        id: 'ctc_minted1',
        call_id: 'call_1',
        name: 'apply_patch',
        input: '*** Begin\n',
        status: 'completed',
      },
    ])
    expect(outputOf(codex, callOf('agents__run', 'not json'))).toMatchObject([
      { type: 'custom_tool_call', name: 'run', namespace: 'agents', input: 'not json' },
    ])
    expect(outputOf(codex, callOf('unheard_of', '{}'))).toMatchObject([{ type: 'function_call', name: 'unheard_of' }])
  })

  test('their names are translated in the history and in the tool choice', () => {
    const input = [
      user,
      { type: 'function_call', call_id: 'a', name: 'wait', namespace: 'agents', arguments: '' },
      { type: 'custom_tool_call', call_id: 'b', name: 'apply_patch', input: 'text' },
      { type: 'function_call_output', call_id: 'a', output: '1' },
      { type: 'custom_tool_call_output', call_id: 'b', output: '2' },
    ]
    const tools = [{ type: 'namespace', name: 'agents', tools: [{ type: 'function', name: 'wait' }] }]
    const body = chatBody({ input, tools, tool_choice: { type: 'function', name: 'wait', namespace: 'agents' } })
    expect((body['messages'] as JsonObject[])[1]!['tool_calls']).toEqual([
      { id: 'a', type: 'function', function: { name: 'agents__wait', arguments: '{}' } },
      { id: 'b', type: 'function', function: { name: 'apply_patch', arguments: '{"input":"text"}' } },
    ])
    expect(body['tool_choice']).toEqual({ type: 'function', function: { name: 'agents__wait' } })
  })

  test('their names have at most 64 valid characters and are unique', () => {
    const long = 'x'.repeat(60)
    const tools = [
      { type: 'function', name: 'a__b' } as const,
      { type: 'function', name: 'b', namespace: 'a' } as const,
      { type: 'function', name: 'b__c', namespace: 'a' } as const,
      { type: 'function', name: 'c', namespace: 'a__b' } as const,
      { type: 'function', name: `${long}1`, namespace: 'ns' } as const,
      { type: 'function', name: `${long}2`, namespace: 'ns' } as const,
      { type: 'function', name: 'with space', namespace: 'né' } as const,
    ]
    const names = new ToolNames(tools)
    const flat = tools.map((tool) => names.flatten(tool.name, 'namespace' in tool ? tool.namespace : undefined))
    expect(new Set(flat).size).toBe(tools.length)
    for (const name of flat) expect(name).toMatch(/^[a-zA-Z0-9_-]{1,64}$/)
    expect(flat.slice(0, 3)).toEqual(['a__b', expect.stringMatching(/^a__b_\w{7}$/), 'a__b__c'])
    for (const [position, name] of flat.entries()) {
      const tool = tools[position]!
      const called = names.identify({ type: 'call', index: 0, kind: 'function', id: '', name })
      expect(called).toEqual({
        kind: 'function',
        wrapped: false,
        name: tool.name,
        ...('namespace' in tool && { namespace: tool.namespace }),
      })
    }
  })
})

describe('a request from Responses to chat', () => {
  test('every field is translated', () => {
    const body = chatBody({
      instructions: 'Be brief.',
      max_output_tokens: 50,
      temperature: 0.5,
      top_logprobs: 2,
      reasoning: { effort: 'low', summary: 'auto' },
      text: { format: { type: 'json_schema', name: 'x', schema: { a: 1 }, strict: true }, verbosity: 'low' },
      store: true,
      metadata: { a: 'b' },
    })
    expect(body).toEqual({
      model: 'backend-model',
      messages: [{ role: 'system', content: 'Be brief.' }, user],
      stream: false,
      response_format: { type: 'json_schema', json_schema: { name: 'x', schema: { a: 1 }, strict: true } },
      reasoning_effort: 'low',
      max_completion_tokens: 50,
      logprobs: true,
      top_logprobs: 2,
      temperature: 0.5,
      verbosity: 'low',
      metadata: { a: 'b' },
    })
  })

  test('the backend’s dialect is respected', () => {
    const conversation = openaiResponses.readRequest({
      model,
      stream: true,
      max_output_tokens: 5,
      temperature: 1,
      prompt_cache_key: 'k',
      input: [
        {
          role: 'developer',
          content: [
            { type: 'input_text', text: 'a' },
            { type: 'input_text', text: 'b' },
          ],
        },
      ],
    })
    const refusing = {
      maxTokensField: 'max_tokens',
      developerRole: false,
      streamUsage: false,
      refusedFields: ['temperature'],
    } as const
    expect(openaiChat.writeRequest(conversation, targetOf(conversation, refusing))).toEqual({
      model: 'backend-model',
      messages: [{ role: 'system', content: 'a\nb' }],
      stream: true,
      max_tokens: 5,
    })
    expect(openaiChat.writeRequest(conversation, targetOf(conversation))).toMatchObject({
      stream_options: { include_usage: true },
      messages: [{ role: 'developer' }],
      prompt_cache_key: 'k',
    })
  })

  test('all tools are sent even if only some are allowed, and a note after the messages says which', () => {
    const tools = ['a', 'b'].map((name) => ({ type: 'function', name, parameters }))
    const allowed = (names: string[]): JsonObject =>
      chatBody({
        tools,
        tool_choice: {
          type: 'allowed_tools',
          mode: 'required',
          tools: names.map((name) => ({ type: 'function', name })),
        },
      })
    const both = [{ function: { name: 'a' } }, { function: { name: 'b' } }]
    const written = allowed(['b'])
    expect(written).toMatchObject({ tools: both, tool_choice: 'required' })
    expect((written['messages'] as JsonObject[]).at(-1)).toEqual({
      role: 'user',
      content: 'For this answer, call only these tools: b.',
    })
    expect(allowed([])).toMatchObject({ tools: both, tool_choice: 'none' })
  })

  test.each([
    [{ previous_response_id: 'resp_1' }, 'previous_response_not_found', 'previous_response_id'],
    [{ input: [{ type: 'item_reference', id: 'msg_1' }] }, 'item_not_found', 'input'],
    [{ background: true }, 'unsupported_parameter', 'background'],
    [{ conversation: 'conv_1' }, 'conversation_not_found', 'conversation'],
    [{ prompt: { id: 'p' } }, 'unsupported_parameter', 'prompt'],
    [
      { input: [{ role: 'user', content: [{ type: 'input_file', file_id: 'file-1' }] }] },
      'unsupported_parameter',
      'input',
    ],
    [
      { input: [{ role: 'user', content: [{ type: 'input_image', file_id: 'file-1' }] }] },
      'unsupported_parameter',
      'input',
    ],
  ])('what only the client’s own format can serve is rejected: %j', (body, code, param) => {
    expect(() => chatBody(body)).toThrow(
      expect.objectContaining({ code, facts: expect.objectContaining({ param }) as unknown }) as Error,
    )
  })
})

describe('a request from chat to Responses', () => {
  test('every field is translated, and nothing is stored', () => {
    const body = responsesBody({
      messages: [
        { role: 'system', content: 'Be brief.' },
        {
          role: 'user',
          content: [
            { type: 'text', text: 'see' },
            { type: 'image_url', image_url: { url: 'data:x', detail: 'low' } },
          ],
        },
        {
          role: 'assistant',
          content: 'Looking.',
          tool_calls: [{ id: 'c', type: 'function', function: { name: 'f', arguments: '{}' } }],
        },
        { role: 'tool', tool_call_id: 'c', content: 'seen' },
      ],
      tools: [{ type: 'function', function: { name: 'f', parameters } }],
      tool_choice: 'auto',
      parallel_tool_calls: false,
      max_tokens: 50,
      logprobs: true,
      n: 1,
      presence_penalty: 0,
      response_format: { type: 'json_object' },
      reasoning_effort: 'low',
    })
    expect(body).toEqual({
      model: 'backend-model',
      input: [
        { type: 'message', role: 'system', content: 'Be brief.' },
        {
          type: 'message',
          role: 'user',
          content: [
            { type: 'input_text', text: 'see' },
            { type: 'input_image', image_url: 'data:x', detail: 'low' },
          ],
        },
        { type: 'message', role: 'assistant', content: 'Looking.' },
        { type: 'function_call', call_id: 'c', name: 'f', arguments: '{}' },
        { type: 'function_call_output', call_id: 'c', output: 'seen' },
      ],
      stream: false,
      store: false,
      tools: [{ type: 'function', name: 'f', parameters, strict: false }],
      tool_choice: 'auto',
      parallel_tool_calls: false,
      text: { format: { type: 'json_object' } },
      reasoning: { effort: 'low' },
      include: ['message.output_text.logprobs'],
      max_output_tokens: 50,
    })
  })

  test.each([
    [{ n: 2 }, 'n'],
    [{ stop: ['END'] }, 'stop'],
    [{ modalities: ['text', 'audio'] }, 'modalities'],
    [{ functions: [{ name: 'f' }] }, 'functions'],
    [{ messages: [{ role: 'user', content: [{ type: 'file', file: { file_id: 'file-1' } }] }] }, 'messages'],
  ])('what Responses cannot express is rejected: %j', (body, param) => {
    expect(() => responsesBody(body)).toThrow(
      expect.objectContaining({
        code: 'unsupported_parameter',
        facts: expect.objectContaining({ param }) as unknown,
      }) as Error,
    )
  })
})

describe('call IDs', () => {
  test.each([openaiChat, openaiResponses])('on $id they are never empty, too long, or duplicated', (format) => {
    const ids = ['', 'same', 'same', 'x'.repeat(65)]
    const events: AnswerEvent[] = [
      ...ids.map((id, index): AnswerEvent => ({ type: 'call', index, kind: 'function', id, name: 'f' })),
      { type: 'finish', reason: 'tool_calls' },
    ]
    const context = contextOf({ ...codex, tools: [] })
    const { calls } = contentOf(readStream(format, writeStream(format, events, context)).events)
    expect(calls.map(({ id }) => id).every((id) => /^\w{1,64}$/.test(id))).toBe(true)
    expect(new Set(calls.map(({ id }) => id)).size).toBe(4)
    expect(calls[1]!.id).toBe('same')
    expect(calls.map((call) => call.arguments)).toEqual(['{}', '{}', '{}', '{}'])
  })
})
