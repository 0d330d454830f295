import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { Conversation, InputPart } from '../../src/domain/conversation.ts'
import type { JsonObject } from '../../src/domain/json.ts'
import { anthropicMessages } from '../../src/formats/anthropic-messages/anthropic-messages.ts'
import { anthropicMessagesRelay } from '../../src/formats/anthropic-messages/relay.ts'
import { markWithIssuer, unmarkMember } from '../../src/formats/encrypted-reasoning.ts'
import { openaiChat } from '../../src/formats/openai-chat/openai-chat.ts'
import { openaiResponses } from '../../src/formats/openai-responses/openai-responses.ts'
import { arbitraryConversation } from './arbitraries.ts'
import { recordedRequests, targetOf } from './exchange.ts'
import { breachesOf } from './messages-rules.ts'

const model = 'svc-router/frontier'
const hi = [{ role: 'user', content: 'Hi' }]
const pdf = 'data:application/pdf;base64,JVBERi0='

function read(body: JsonObject): Conversation {
  return anthropicMessages.readRequest({ model, max_tokens: 100, messages: hi, ...body })
}

/** A chat request as it is sent to an Anthropic backend. */
function fromChat(body: JsonObject, backend = 'claude-sonnet-4-5'): JsonObject {
  const conversation = openaiChat.readRequest({ model, messages: hi, ...body })
  const target = targetOf(conversation, { replaysReasoning: false })
  return anthropicMessages.writeRequest(conversation, { ...target, model: backend })
}

function fromResponses(body: JsonObject, backend = 'claude-opus-5'): JsonObject {
  const conversation = openaiResponses.readRequest({ model, input: 'Hi', ...body })
  return anthropicMessages.writeRequest(conversation, { ...targetOf(conversation), model: backend })
}

describe('a request from an Anthropic client', () => {
  test('instructions may be a string, blocks, or messages between the others', () => {
    expect(read({ system: 'Be brief.' }).turns[0]).toEqual({
      role: 'system',
      parts: [{ type: 'text', text: 'Be brief.' }],
    })
    const system = [
      { type: 'text', text: 'x-anthropic-billing-header: cc_version=1;' },
      { type: 'text', text: 'One.', cache_control: { type: 'ephemeral' } },
      { type: 'text', text: 'Two.' },
    ]
    const messages = [...hi, { role: 'system', content: 'Three.' }]
    const { turns } = read({ system, messages })
    expect(turns.map(({ role }) => role)).toEqual(['system', 'user', 'system'])
    expect(turns[0]).toEqual({
      role: 'system',
      parts: [
        { type: 'text', text: 'One.', mark: '5m' },
        { type: 'text', text: 'Two.' },
      ],
    })
  })

  test.each<[JsonObject, InputPart[]]>([
    [
      { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'aGk=' } },
      [{ type: 'image', url: 'data:image/png;base64,aGk=' }],
    ],
    [{ type: 'image', source: { type: 'url', url: 'https://x/y' } }, [{ type: 'image', url: 'https://x/y' }]],
    [{ type: 'image', source: { type: 'file', file_id: 'f' } }, [{ type: 'file', id: 'f' }]],
    [
      { type: 'document', title: 'T', source: { type: 'base64', media_type: 'application/pdf', data: 'JVBERi0=' } },
      [{ type: 'file', data: pdf, filename: 'T' }],
    ],
    [{ type: 'document', source: { type: 'url', url: 'https://x/y' } }, [{ type: 'file', url: 'https://x/y' }]],
    [{ type: 'document', source: { type: 'file', file_id: 'f' } }, [{ type: 'file', id: 'f' }]],
    [
      { type: 'document', title: 'T', source: { type: 'text', media_type: 'text/plain', data: 'words' } },
      [{ type: 'text', text: 'T\n\nwords' }],
    ],
    [
      { type: 'document', source: { type: 'content', content: [{ type: 'text', text: 'words' }] } },
      [{ type: 'text', text: 'words' }],
    ],
    [
      { type: 'search_result', source: 'https://x', title: 'T', content: [{ type: 'text', text: 'found' }] },
      [{ type: 'text', text: 'T\n\nhttps://x\nfound' }],
    ],
    [{ type: 'container_upload', file_id: 'f' }, []],
    [{ type: 'text', text: '' }, []],
  ])('the block %j is read', (block, parts) => {
    const { turns } = read({ messages: [{ role: 'user', content: [block] }] })
    expect(turns).toEqual([{ role: 'user', parts }])
  })

  test('tool results come before the user’s own text and may hold images and documents', () => {
    const content = [
      { type: 'tool_result', tool_use_id: 'a', content: 'plain' },
      {
        type: 'tool_result',
        tool_use_id: 'b',
        content: [
          { type: 'text', text: 'see' },
          { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'aGk=' } },
          { type: 'document', source: { type: 'base64', media_type: 'application/pdf', data: 'JVBERi0=' } },
          { type: 'tool_reference', tool_name: 'x' },
        ],
      },
      { type: 'tool_result', tool_use_id: 'c', is_error: true },
      { type: 'text', text: 'Go on.' },
    ]
    expect(read({ messages: [{ role: 'user', content }] }).turns).toEqual([
      { role: 'tool', callId: 'a', kind: 'function', parts: [{ type: 'text', text: 'plain' }] },
      {
        role: 'tool',
        callId: 'b',
        kind: 'function',
        parts: [
          { type: 'text', text: 'see' },
          { type: 'image', url: 'data:image/png;base64,aGk=' },
          { type: 'file', data: pdf },
        ],
      },
      { role: 'tool', callId: 'c', kind: 'function', parts: [{ type: 'text', text: 'The tool failed.' }] },
      { role: 'user', parts: [{ type: 'text', text: 'Go on.' }] },
    ])
  })

  test('the assistant’s text, calls, and encrypted reasoning are read; tools that Anthropic ran itself are dropped', () => {
    const content = [
      { type: 'thinking', thinking: 'hm', signature: 'SIG' },
      { type: 'redacted_thinking', data: 'DATA' },
      { type: 'server_tool_use', id: 's', name: 'web_search', input: { query: 'x' } },
      { type: 'web_search_tool_result', tool_use_id: 's', content: [] },
      { type: 'text', text: 'So:' },
      { type: 'tool_use', id: 'toolu_1', name: 'f', input: { a: 1 } },
    ]
    expect(read({ messages: [...hi, { role: 'assistant', content }] }).turns[1]).toEqual({
      role: 'assistant',
      parts: [
        { type: 'reasoning', text: 'hm', sealed: 'anthropic.thinking.SIG' },
        { type: 'reasoning', text: '', sealed: 'anthropic.redacted.DATA' },
        { type: 'text', text: 'So:' },
        { type: 'call', kind: 'function', id: 'toolu_1', name: 'f', arguments: '{"a":1}' },
      ],
    })
  })

  test('the client’s own tools, Anthropic’s predefined tools, and hosted tools are read', () => {
    const { tools, fusionTool } = read({
      tools: [
        { name: 'f', description: 'd', input_schema: { type: 'object' }, cache_control: { type: 'ephemeral' } },
        { type: 'custom', name: 'g', input_schema: { type: 'object' }, strict: true, defer_loading: true },
        { type: 'bash_20250124', name: 'bash' },
        { type: 'text_editor_20250728', name: 'str_replace_based_edit_tool' },
        { type: 'computer_20250124', name: 'computer', display_width_px: 1, display_height_px: 1 },
        { type: 'memory_20250818', name: 'memory' },
        { type: 'web_search_20250305', name: 'web_search' },
        { type: 'svc-router:fusion' },
      ],
    })
    expect(tools.map((tool) => (tool.type === 'hosted' ? tool.declaration['type'] : tool.name))).toEqual([
      'f',
      'g',
      'bash',
      'str_replace_based_edit_tool',
      'computer',
      'memory',
      'web_search_20250305',
    ])
    expect(tools[0]).toMatchObject({ type: 'function', name: 'f', description: 'd', parameters: { type: 'object' } })
    expect(tools[1]).toEqual({ type: 'function', name: 'g', parameters: { type: 'object' } })
    expect(tools[2]).toMatchObject({ type: 'function', parameters: { properties: { command: { type: 'string' } } } })
    expect(fusionTool).toEqual({ type: 'svc-router:fusion' })
  })

  test.each([
    [{ type: 'auto' }, { toolChoice: { type: 'auto' } }],
    [{ type: 'none' }, { toolChoice: { type: 'none' } }],
    [
      { type: 'any', disable_parallel_tool_use: true },
      { toolChoice: { type: 'required' }, parallelToolCalls: false },
    ],
    [{ type: 'tool', name: 'f' }, { toolChoice: { type: 'tool', kind: 'function', name: 'f' } }],
    [{ type: 'to_come' }, {}],
  ])('the tool choice %j is read', (choice, expected) => {
    const { toolChoice, parallelToolCalls } = read({ tool_choice: choice })
    expect({
      ...(toolChoice && { toolChoice }),
      ...(parallelToolCalls !== undefined && { parallelToolCalls }),
    }).toEqual(expected)
  })

  test.each<[JsonObject, Conversation['reasoning']]>([
    [{ thinking: { type: 'enabled', budget_tokens: 1024 } }, { effort: 'low', summary: 'auto' }],
    [{ thinking: { type: 'enabled', budget_tokens: 10_000 } }, { effort: 'medium', summary: 'auto' }],
    [{ thinking: { type: 'enabled', budget_tokens: 31_999 } }, { effort: 'high', summary: 'auto' }],
    [{ thinking: { type: 'adaptive' } }, undefined],
    [
      { thinking: { type: 'adaptive' }, output_config: { effort: 'max' } },
      { effort: 'max', summary: 'auto' },
    ],
    [{ thinking: { type: 'adaptive', display: 'omitted' }, output_config: { effort: 'high' } }, { effort: 'high' }],
    [{ thinking: { type: 'disabled' } }, undefined],
    [{ output_config: { effort: 'low' } }, { effort: 'low' }],
  ])('the reasoning settings %j are read', (body, reasoning) => {
    expect(read(body).reasoning).toEqual(reasoning)
  })

  test('limits, output format, and hints are read', () => {
    const schema = { type: 'object', properties: {} }
    const conversation = read({
      max_tokens: 7,
      temperature: 0.5,
      top_p: 0.9,
      top_k: 40,
      stop_sequences: ['END'],
      stream: true,
      output_config: { format: { type: 'json_schema', schema } },
      metadata: { user_id: 'user-1' },
      service_tier: 'standard_only',
      context_management: { edits: [] },
    })
    expect(conversation.sampling).toEqual({
      maxOutputTokens: 7,
      temperature: 0.5,
      topP: 0.9,
      topK: 40,
      stop: ['END'],
    })
    expect(conversation.outputFormat).toEqual({ type: 'json_schema', name: 'response', schema })
    expect(conversation.hints).toEqual({ user: 'user-1', serviceTier: 'default' })
    expect(conversation.stream).toBe(true)
  })

  test.each([
    [{ messages: 'x' }, 'messages'],
    [{ messages: [{ role: 'tool', content: 'x' }] }, 'messages[0].role'],
    [{ messages: [{ role: 'user', content: 7 }] }, 'messages[0].content'],
    [{ messages: [{ role: 'user', content: [{ type: 'text' }] }] }, 'messages[0].content[0].text'],
    [{ messages: [{ role: 'user', content: [{ type: 'image' }] }] }, 'messages[0].content[0].source'],
    [{ tools: [7] }, 'tools[0]'],
    [{ max_tokens: 'x' }, 'max_tokens'],
    [{ stop_sequences: [7] }, 'stop_sequences'],
    [{ stream: 'yes' }, 'stream'],
  ])('%j is rejected with the field at fault', (body, param) => {
    expect(() => read(body)).toThrow(
      expect.objectContaining({ facts: expect.objectContaining({ param }) as unknown }) as Error,
    )
  })

  test('a request with MCP servers cannot be translated', () => {
    const conversation = read({ mcp_servers: [{ type: 'url', url: 'https://x', name: 'x' }] })
    expect(() => openaiChat.writeRequest(conversation, targetOf(conversation))).toThrow('unsupported_parameter')
  })
})

describe('a request to an Anthropic backend', () => {
  test.each([openaiChat, openaiResponses])(
    'every conversation from a client of $id becomes a valid request',
    (format) => {
      fc.assert(
        fc.property(
          arbitraryConversation(format.id),
          fc.constantFrom('claude-opus-5', 'claude-3-haiku', 'kimi'),
          (conversation, backend) => {
            // Audio and other kinds of files have their own test.
            const turns = conversation.turns.map((turn) =>
              turn.role === 'user'
                ? { ...turn, parts: turn.parts.filter(({ type }) => type === 'text' || type === 'image') }
                : turn,
            )
            const target = { ...targetOf(conversation), model: backend }
            const written = anthropicMessages.writeRequest({ ...conversation, turns }, target)
            expect(breachesOf(JSON.parse(JSON.stringify(written)) as JsonObject)).toEqual([])
          },
        ),
        { numRuns: 300 },
      )
    },
  )

  test.each(recordedRequests().filter(({ path, body }) => body !== undefined && /^\/v1\/(chat|responses$)/.test(path)))(
    '$file becomes a valid request',
    ({ path, body }) => {
      const conversation = (path.endsWith('responses') ? openaiResponses : openaiChat).readRequest(body!)
      if (conversation.hints.references !== undefined || conversation.hints.previousResponseId !== undefined) return
      const target = { ...targetOf(conversation), model: 'claude-sonnet-4-5' }
      const written = anthropicMessages.writeRequest(conversation, target)
      expect(breachesOf(JSON.parse(JSON.stringify(written)) as JsonObject)).toEqual([])
    },
  )

  test('a whole conversation with tools is translated', () => {
    const parameters = { type: 'object', properties: { city: { type: 'string' } } }
    const called = { name: 'f', arguments: '{"city":"Oslo"}' }
    expect(
      fromChat({
        messages: [
          { role: 'system', content: 'Be brief.' },
          { role: 'user', content: 'A' },
          { role: 'user', content: [{ type: 'image_url', image_url: { url: 'https://x/y', detail: 'low' } }] },
          {
            role: 'assistant',
            content: ' ',
            reasoning_content: 'unsigned',
            tool_calls: [
              { id: 'functions.f:0', type: 'function', function: called },
              { id: 'functions.f:0', type: 'function', function: { name: 'f', arguments: '' } },
            ],
          },
          { role: 'tool', tool_call_id: 'functions.f:0', content: 'rain' },
          { role: 'developer', content: 'Hurry.' },
          { role: 'user', content: 'And?' },
        ],
        tools: [{ type: 'function', function: { name: 'f', description: 'd', parameters, strict: true } }],
        parallel_tool_calls: false,
        temperature: 1.7,
        top_p: 0.5,
        stop: ['END', '\n'],
        user: 'u',
        seed: 7,
      }),
    ).toEqual({
      model: 'claude-sonnet-4-5',
      max_tokens: 32_000,
      stream: false,
      system: [{ type: 'text', text: 'Be brief.' }],
      messages: [
        {
          role: 'user',
          content: [
            { type: 'text', text: 'A' },
            { type: 'image', source: { type: 'url', url: 'https://x/y' } },
          ],
        },
        {
          role: 'assistant',
          content: [
            { type: 'tool_use', id: 'functions_f_0', name: 'f', input: { city: 'Oslo' } },
            { type: 'tool_use', id: 'functions_f_0_2', name: 'f', input: {} },
          ],
        },
        {
          role: 'user',
          content: [
            { type: 'tool_result', tool_use_id: 'functions_f_0', content: [{ type: 'text', text: 'rain' }] },
            { type: 'tool_result', tool_use_id: 'functions_f_0_2', content: 'aborted' },
            { type: 'text', text: '<system>\nHurry.\n</system>' },
            { type: 'text', text: 'And?' },
          ],
        },
      ],
      tools: [{ name: 'f', description: 'd', input_schema: parameters }],
      tool_choice: { type: 'auto', disable_parallel_tool_use: true },
      temperature: 1,
      stop_sequences: ['END'],
      metadata: { user_id: 'u' },
    })
  })

  test('the first message is the user’s, even if the conversation starts with another role', () => {
    expect(fromChat({ messages: [{ role: 'assistant', content: 'Hello ' }] })['messages']).toEqual([
      { role: 'user', content: [{ type: 'text', text: 'Begin.' }] },
      { role: 'assistant', content: [{ type: 'text', text: 'Hello' }] },
    ])
    expect(fromChat({ messages: [{ role: 'system', content: 'Tell a joke.' }] })['messages']).toHaveLength(1)
  })

  test('later instructions follow the user’s words, as a message of their own for models that accept one', () => {
    const messages = [...hi, { role: 'system', content: 'Now.' }, { role: 'assistant', content: 'ok' }, ...hi]
    expect(fromChat({ messages }, 'claude-opus-4-8')['messages']).toMatchObject([
      { role: 'user' },
      { role: 'system', content: [{ type: 'text', text: 'Now.' }] },
      { role: 'assistant' },
      { role: 'user' },
    ])
    const before = [...hi, { role: 'assistant', content: 'ok' }, { role: 'system', content: 'Now.' }, ...hi]
    const placed = fromChat({ messages: before }, 'claude-fable-5-1')
    expect(placed['messages']).toMatchObject([
      {},
      {},
      { role: 'user' },
      { role: 'system', content: [{ text: 'Now.' }] },
    ])
    const note = { type: 'text', text: '<system>\nNow.\n</system>' }
    const last = (written: JsonObject) => (written['messages'] as JsonObject[]).at(-1)?.['content']
    expect(last(fromChat({ messages: before }, 'claude-sonnet-5'))).toEqual([{ type: 'text', text: 'Hi' }, note])
    const first = fromChat({ messages }, 'claude-sonnet-5')
    expect(first).not.toHaveProperty('system')
    expect(first['messages']).toMatchObject([{ content: [{ type: 'text', text: 'Hi' }, note] }, {}, {}])
  })

  test('tools that were called earlier are declared even if the client no longer declares them', () => {
    const calls = [{ id: 'c', type: 'function', function: { name: 'f', arguments: '{}' } }]
    const written = fromChat({ messages: [...hi, { role: 'assistant', tool_calls: calls }] })
    expect(written['tools']).toEqual([{ name: 'f', input_schema: { type: 'object', properties: {} } }])
    expect(written['tool_choice']).toEqual({ type: 'none' })
  })

  test('Codex tools are translated: namespaces become part of the name, free text an object, and hosted tools are omitted', () => {
    const written = fromResponses({
      input: [
        { role: 'user', content: 'x' },
        { type: 'custom_tool_call', call_id: 'a', name: 'apply_patch', input: '*** Begin' },
        { type: 'custom_tool_call_output', call_id: 'a', output: [{ type: 'input_image', image_url: 'https://x/y' }] },
      ],
      tools: [
        { type: 'custom', name: 'apply_patch', description: 'd' },
        { type: 'namespace', name: 'ns', tools: [{ type: 'function', name: 'f', parameters: { anyOf: [{}] } }] },
        { type: 'web_search' },
      ],
      tool_choice: { type: 'custom', name: 'apply_patch' },
    })
    expect((written['tools'] as JsonObject[]).map(({ name }) => name)).toEqual(['apply_patch', 'ns__f'])
    expect((written['tools'] as JsonObject[])[1]).toEqual({
      name: 'ns__f',
      description: 'The input must also match this JSON schema: {"anyOf":[{}]}',
      input_schema: { type: 'object' },
    })
    expect(written['tool_choice']).toEqual({ type: 'tool', name: 'apply_patch' })
    expect((written['messages'] as JsonObject[]).slice(1)).toEqual([
      {
        role: 'assistant',
        content: [{ type: 'tool_use', id: 'a', name: 'apply_patch', input: { input: '*** Begin' } }],
      },
      {
        role: 'user',
        content: [
          {
            type: 'tool_result',
            tool_use_id: 'a',
            content: [{ type: 'image', source: { type: 'url', url: 'https://x/y' } }],
          },
        ],
      },
    ])
  })

  test.each([
    [
      'claude-opus-5',
      'high',
      { thinking: { type: 'adaptive', display: 'summarized' }, output_config: { effort: 'high' } },
    ],
    ['claude-opus-5', 'minimal', { output_config: { effort: 'low' } }],
    ['claude-sonnet-4-6', 'xhigh', { thinking: { type: 'adaptive' }, output_config: { effort: 'high' } }],
    ['claude-sonnet-4-5-20250929', 'medium', { thinking: { type: 'enabled', budget_tokens: 8_192 } }],
    ['anthropic/claude-3-7-sonnet', 'low', { thinking: { type: 'enabled', budget_tokens: 2_048 } }],
    ['kimi-k2', 'high', { thinking: { type: 'enabled', budget_tokens: 16_384 } }],
  ])('%s with effort %s gets the reasoning settings that it understands', (backend, effort, expected) => {
    expect(fromChat({ reasoning_effort: effort }, backend)).toMatchObject(expected)
  })

  test.each<[string, JsonObject, string]>([
    ['no effort', {}, 'claude-sonnet-4-5'],
    ['effort none', { reasoning_effort: 'none' }, 'claude-opus-5'],
    ['a model that does not support it', { reasoning_effort: 'high' }, 'claude-3-5-haiku-20241022'],
    ['an answer too short for it', { reasoning_effort: 'high', max_completion_tokens: 1_000 }, 'claude-sonnet-4-5'],
    [
      'a tool that must be called',
      {
        reasoning_effort: 'high',
        tools: [{ type: 'function', function: { name: 'f' } }],
        tool_choice: 'required',
      },
      'claude-sonnet-4-5',
    ],
    [
      'calls whose reasoning is missing',
      {
        reasoning_effort: 'high',
        messages: [
          ...hi,
          { role: 'assistant', tool_calls: [{ id: 'c', function: { name: 'f', arguments: '{}' } }] },
          { role: 'tool', tool_call_id: 'c', content: 'x' },
        ],
      },
      'claude-sonnet-4-5',
    ],
  ])('reasoning is not requested with %s', (_what, body, backend) => {
    expect(fromChat(body, backend)).not.toHaveProperty('thinking')
  })

  test('settings that newer models reject are omitted: sampling and forced calls', () => {
    const tools = [{ type: 'function', function: { name: 'f' } }]
    const asked = { temperature: 0.2, top_p: 0.5, tools, tool_choice: 'required' }
    const newest = fromChat(asked, 'claude-opus-5-5')
    expect(newest).toMatchObject({ tool_choice: { type: 'auto' } })
    expect(newest).not.toHaveProperty('temperature')
    expect(newest).not.toHaveProperty('top_p')
    expect(fromChat(asked, 'claude-haiku-4-5')).toMatchObject({ temperature: 0.2, tool_choice: { type: 'any' } })
    expect(fromChat({ top_p: 0.5 }, 'claude-haiku-4-5')).toMatchObject({ top_p: 0.5 })
    expect(fromChat({ temperature: 0.2 }, 'claude-latest')).not.toHaveProperty('temperature')
  })

  test('a schema is sent in the subset that the model supports, and as instructions to older models', () => {
    const schema = {
      type: 'object',
      properties: {
        age: { type: 'integer', minimum: 0, description: 'years' },
        kind: {
          oneOf: [
            { type: 'string', format: 'x-odd' },
            { type: 'array', items: { type: 'object' } },
          ],
        },
      },
      required: ['age'],
    }
    const response_format = { type: 'json_schema', json_schema: { name: 'n', strict: true, schema } }
    expect(fromChat({ response_format, reasoning_effort: 'low' }, 'claude-opus-5')['output_config']).toEqual({
      effort: 'low',
      format: {
        type: 'json_schema',
        schema: {
          type: 'object',
          properties: {
            age: { type: 'integer', description: 'years\nminimum: 0' },
            kind: {
              anyOf: [
                { type: 'string', description: 'format: x-odd' },
                { type: 'array', items: { type: 'object', additionalProperties: false } },
              ],
            },
          },
          required: ['age'],
          additionalProperties: false,
        },
      },
    })
    const older = fromChat({ response_format }, 'claude-sonnet-4-20250514')
    expect(older).not.toHaveProperty('output_config')
    expect(older).not.toHaveProperty('system')
    expect(JSON.stringify((older['messages'] as JsonObject[]).at(-1))).toContain('JSON schema')
    expect(JSON.stringify(fromChat({ response_format: { type: 'json_object' } })['messages'])).toContain(
      'one JSON object',
    )
  })

  test('files become documents, and images become images', () => {
    const content = [
      { type: 'file', file: { filename: 'a.pdf', file_data: pdf } },
      { type: 'file', file: { file_data: 'JVBERi0=' } },
      { type: 'file', file: { file_data: 'data:text/plain;base64,w7w=' } },
      { type: 'file', file: { file_data: 'data:image/jpg;base64,aGk=' } },
      { type: 'image_url', image_url: { url: 'data:image/webp,%68i' } },
    ]
    const [message] = fromChat({ messages: [{ role: 'user', content }] })['messages'] as JsonObject[]
    expect(message?.['content']).toEqual([
      { type: 'document', title: 'a.pdf', source: { type: 'base64', media_type: 'application/pdf', data: 'JVBERi0=' } },
      { type: 'document', source: { type: 'base64', media_type: 'application/pdf', data: 'JVBERi0=' } },
      { type: 'document', source: { type: 'text', media_type: 'text/plain', data: 'ü' } },
      { type: 'image', source: { type: 'base64', media_type: 'image/jpeg', data: 'aGk=' } },
      { type: 'image', source: { type: 'base64', media_type: 'image/webp', data: 'aGk=' } },
    ])
  })

  test.each([
    [{ type: 'input_audio', input_audio: { data: 'x', format: 'wav' } }],
    [{ type: 'file', file: { file_id: 'f' } }],
    [{ type: 'file', file: { file_data: 'data:application/zip;base64,x' } }],
    [{ type: 'image_url', image_url: { url: 'data:image/tiff;base64,x' } }],
  ])('%j is rejected', (part) => {
    expect(() => fromChat({ messages: [{ role: 'user', content: [part] }] })).toThrow('unsupported_parameter')
  })

  test('several choices and tool results without calls are rejected', () => {
    expect(() => fromChat({ n: 2 })).toThrow('unsupported_parameter')
    expect(() => fromChat({ messages: [...hi, { role: 'tool', tool_call_id: 'x', content: 'y' }] })).toThrow(
      'invalid_request',
    )
  })
})

describe('encrypted reasoning', () => {
  const thought = { type: 'reasoning', summary: [{ type: 'summary_text', text: 'hm' }] }
  const sealedAs = (encrypted_content: string): JsonObject[] => {
    const input = [
      { role: 'user', content: 'x' },
      { ...thought, encrypted_content },
      { role: 'assistant', content: 'y' },
    ]
    const written = anthropicMessages.writeRequest(openaiResponses.readRequest({ model, input }), {
      ...targetOf(read({}), { replaysReasoning: false }),
      model: 'claude-opus-5',
    })
    return (written['messages'] as JsonObject[])[1]!['content'] as unknown as JsonObject[]
  }

  test('Anthropic’s reasoning returns to Anthropic through another format with its signature', () => {
    expect(sealedAs('anthropic.thinking.SIG')[0]).toEqual({ type: 'thinking', thinking: 'hm', signature: 'SIG' })
    expect(sealedAs('anthropic.redacted.DATA')[0]).toEqual({ type: 'redacted_thinking', data: 'DATA' })
  })

  test('another vendor’s reasoning never reaches Anthropic, neither translated nor relayed', () => {
    expect(sealedAs('gAAAAsealed-by-another')).toEqual([{ type: 'text', text: 'y' }])
    const foreign = (seal: string): JsonObject => ({
      type: 'thinking',
      thinking: 'foreign',
      signature: `svc-router.${seal}`,
    })
    const own = (signature: string): JsonObject => ({ type: 'thinking', thinking: 'own', signature })
    const said = (...content: JsonObject[]): JsonObject => ({ role: 'assistant', content })
    const text = { type: 'text', text: 'y' }
    const messages = [
      ...hi,
      said(foreign(markWithIssuer('other', 'gAAAA')), own(markWithIssuer('me', 'EqQB')), text),
      said(foreign('')),
    ]
    const sent = unmarkMember(anthropicMessagesRelay.encryptedReasoning!, JSON.stringify(messages), 'me')
    expect(JSON.parse(sent)).toEqual([...hi, said(own('EqQB'), text)])
  })
})
