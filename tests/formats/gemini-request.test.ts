import { describe, expect, test } from 'vitest'
import { ServiceError } from '../../src/domain/errors.ts'
import type { JsonObject } from '../../src/domain/json.ts'
import { gemini } from '../../src/formats/gemini/gemini.ts'
import { unsignedCall } from '../../src/formats/gemini/write-contents.ts'
import { openaiChat } from '../../src/formats/openai-chat/openai-chat.ts'
import { openaiResponses } from '../../src/formats/openai-responses/openai-responses.ts'
import { recordedRequests, targetOf } from './exchange.ts'

const model = 'svc-router/frontier'
const user = { role: 'user', content: 'go' }
const parameters = { type: 'object', properties: { city: { type: 'string' } } }
const weather = { type: 'function', function: { name: 'get_weather', description: 'Looks outside.', parameters } }
const call = (id: string, name: string, text: string): JsonObject => ({
  id,
  type: 'function',
  function: { name, arguments: text },
})

function fromChat(body: JsonObject, backend = 'gemini-2.5-flash'): JsonObject {
  const conversation = openaiChat.readRequest({ model, messages: [user], ...body })
  return gemini.writeRequest(conversation, { ...targetOf(conversation), model: backend })
}

function fromResponses(body: JsonObject, backend = 'gemini-3-pro-preview'): JsonObject {
  const conversation = openaiResponses.readRequest({ model, input: 'go', ...body })
  return gemini.writeRequest(conversation, { ...targetOf(conversation), model: backend })
}

function refusal(run: () => unknown): ServiceError {
  try {
    run()
  } catch (error) {
    if (error instanceof ServiceError) return error
  }
  throw new Error('no ServiceError was thrown')
}

describe('a request to Gemini', () => {
  test('the path contains model and streaming, and a model name cannot escape from it', () => {
    expect(gemini.upstreamPath('gemini-2.5-pro', false)).toBe('/models/gemini-2.5-pro:generateContent')
    expect(gemini.upstreamPath('gemini-2.5-pro', true)).toBe('/models/gemini-2.5-pro:streamGenerateContent?alt=sse')
    expect(gemini.upstreamPath('tunedModels/mine', false)).toBe('/tunedModels/mine:generateContent')
    expect(gemini.upstreamPath('a b?c#d', false)).toBe('/models/a%20b%3Fc%23d:generateContent')
  })

  test('a complete chat is translated', () => {
    const messages = [
      { role: 'system', content: 'Be brief.' },
      { role: 'developer', content: 'Be kind.' },
      {
        role: 'user',
        content: [
          { type: 'text', text: 'Weather?' },
          { type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } },
        ],
      },
      {
        role: 'assistant',
        content: 'Looking.',
        tool_calls: [call('c1', 'get_weather', '{"city":"Oslo"}'), call('c2', 'get_weather', '')],
      },
      { role: 'tool', tool_call_id: 'c2', content: 'rain' },
      { role: 'tool', tool_call_id: 'c1', content: 'sun' },
      { role: 'system', content: 'Now in French.' },
      { role: 'user', content: 'Thanks' },
    ]
    const body = fromChat({
      messages,
      tools: [weather],
      tool_choice: 'required',
      temperature: 0.5,
      top_p: 0.9,
      max_completion_tokens: 50,
      stop: ['END'],
      seed: 7,
      presence_penalty: 0.1,
      logprobs: true,
      top_logprobs: 3,
      stream: true,
    })
    expect(body).toEqual({
      systemInstruction: { parts: [{ text: 'Be brief.' }, { text: 'Be kind.' }] },
      contents: [
        { role: 'user', parts: [{ text: 'Weather?' }, { inlineData: { mimeType: 'image/png', data: 'AAAA' } }] },
        {
          role: 'model',
          parts: [
            { text: 'Looking.' },
            { functionCall: { name: 'get_weather', args: { city: 'Oslo' } } },
            { functionCall: { name: 'get_weather', args: {} } },
          ],
        },
        {
          role: 'user',
          parts: [
            { functionResponse: { name: 'get_weather', response: { output: 'sun' } } },
            { functionResponse: { name: 'get_weather', response: { output: 'rain' } } },
            { text: 'Now in French.' },
            { text: 'Thanks' },
          ],
        },
      ],
      tools: [
        {
          functionDeclarations: [
            { name: 'get_weather', description: 'Looks outside.', parametersJsonSchema: parameters },
          ],
        },
      ],
      toolConfig: { functionCallingConfig: { mode: 'ANY' } },
      generationConfig: {
        temperature: 0.5,
        topP: 0.9,
        maxOutputTokens: 50,
        seed: 7,
        presencePenalty: 0.1,
        stopSequences: ['END'],
        responseLogprobs: true,
        logprobs: 3,
      },
    })
  })

  test('user and model alternate, and the user starts', () => {
    const messages = [
      { role: 'assistant', content: 'Hello.' },
      { role: 'assistant', content: 'Hello?' },
      { role: 'user', content: 'a' },
      { role: 'user', content: 'b' },
    ]
    expect(fromChat({ messages })['contents']).toEqual([
      { role: 'user', parts: [{ text: ' ' }] },
      { role: 'model', parts: [{ text: 'Hello.' }, { text: 'Hello?' }] },
      { role: 'user', parts: [{ text: 'a' }, { text: 'b' }] },
    ])
    expect(fromChat({ messages: [{ role: 'system', content: 'Alone.' }] })).toEqual({
      contents: [{ role: 'user', parts: [{ text: 'Alone.' }] }],
    })
  })

  test.each([
    ['auto', { mode: 'AUTO' }],
    ['none', { mode: 'NONE' }],
    [
      { type: 'function', function: { name: 'get_weather' } },
      { mode: 'ANY', allowedFunctionNames: ['get_weather'] },
    ],
  ] as [JsonObject | string, JsonObject][])('the tool choice %j is translated', (choice, expected) => {
    const body = fromChat({ tools: [weather], tool_choice: choice })
    expect(body['toolConfig']).toEqual({ functionCallingConfig: expected })
  })

  test('only allowed tools can be called, namespaces and custom tools become functions, and hosted tools are omitted', () => {
    const tools = [
      { type: 'function', name: 'look', parameters: null },
      { type: 'namespace', name: 'agents', tools: [{ type: 'function', name: 'wait', parameters }] },
      { type: 'custom', name: 'patch', description: 'Patches.' },
      { type: 'web_search' },
    ]
    const declared = (fromResponses({ tools })['tools'] as JsonObject[])[0]!['functionDeclarations']
    expect(declared).toMatchObject([
      { name: 'look' },
      { name: 'agents__wait' },
      { name: 'patch', parametersJsonSchema: { required: ['input'] } },
    ])
    expect(JSON.stringify(declared)).not.toContain('"name":"look","parametersJsonSchema"')
    const allowed = { type: 'allowed_tools', mode: 'required', tools: [{ type: 'function', name: 'look' }] }
    const body = fromResponses({ tools, tool_choice: allowed })
    expect(body['tools']).toEqual([{ functionDeclarations: declared }])
    expect(body['toolConfig']).toEqual({ functionCallingConfig: { mode: 'ANY', allowedFunctionNames: ['look'] } })
    expect(fromResponses({ tools: [{ type: 'web_search' }], tool_choice: 'auto' })).not.toHaveProperty('tools')
  })

  test('schemas are rewritten for Google, but property names that look like keywords stay', () => {
    const schema = {
      $schema: 'https://json-schema.org/draft/2020-12/schema',
      properties: {
        const: { const: 'a' },
        $schema: { type: 'string', default: { const: 1 } },
        list: { anyOf: [{ const: 2 }] },
      },
      required: ['const'],
    }
    const body = fromChat({ tools: [{ type: 'function', function: { name: 'f', parameters: schema } }] })
    expect((body['tools'] as { functionDeclarations: JsonObject[] }[])[0]!.functionDeclarations[0]).toEqual({
      name: 'f',
      parametersJsonSchema: {
        type: 'object',
        properties: {
          const: { enum: ['a'] },
          $schema: { type: 'string', default: { const: 1 } },
          list: { anyOf: [{ enum: [2] }] },
        },
        required: ['const'],
      },
    })
  })

  test('JSON output is requested by schema, and as instructions from older models that also get tools', () => {
    const format = { type: 'json_schema', json_schema: { name: 'n', schema: parameters, strict: true } }
    expect(fromChat({ response_format: format })['generationConfig']).toEqual({
      responseMimeType: 'application/json',
      responseJsonSchema: parameters,
    })
    expect(fromChat({ response_format: { type: 'json_object' } })['generationConfig']).toEqual({
      responseMimeType: 'application/json',
    })
    const both = fromChat({ response_format: format, tools: [weather] })
    expect(both).not.toHaveProperty('generationConfig')
    expect(JSON.stringify((both['contents'] as JsonObject[]).at(-1))).toContain('JSON Schema')
    expect(fromChat({ response_format: format, tools: [weather] }, 'gemini-3-flash-preview')).toHaveProperty(
      'generationConfig.responseJsonSchema',
    )
  })

  test.each([
    ['gemini-2.5-flash', 'none', { includeThoughts: false, thinkingBudget: 0 }],
    ['gemini-2.5-pro', 'none', { includeThoughts: false, thinkingBudget: 128 }],
    ['gemini-2.5-pro', 'medium', { includeThoughts: true, thinkingBudget: 8192 }],
    ['gemini-3-pro-preview', 'medium', { includeThoughts: true, thinkingLevel: 'high' }],
    ['gemini-3.1-pro-preview', 'medium', { includeThoughts: true, thinkingLevel: 'medium' }],
    ['gemini-3-pro-preview', 'none', { includeThoughts: false, thinkingLevel: 'low' }],
    ['gemini-3-flash-preview', 'minimal', { includeThoughts: true, thinkingLevel: 'minimal' }],
    ['gemini-flash-latest', 'xhigh', { includeThoughts: true, thinkingLevel: 'high' }],
    ['gemini-2.0-flash', 'high', undefined],
    ['gemma-3-27b-it', 'high', undefined],
    ['gemini-3-flash-preview', 'unheard-of', { includeThoughts: true }],
  ])('%s with effort %s gets the documented thinking settings', (backend, effort, expected) => {
    const config = fromChat({ reasoning_effort: effort }, backend)['generationConfig'] as JsonObject | undefined
    expect(config?.['thinkingConfig']).toEqual(expected)
  })

  test('fields that the endpoint rejects are omitted', () => {
    const conversation = openaiChat.readRequest({ model, messages: [user], presence_penalty: 1, top_p: 0.5 })
    const target = { ...targetOf(conversation, { refusedFields: ['presencePenalty'] }), model: 'gemini-2.5-pro' }
    expect(gemini.writeRequest(conversation, target)['generationConfig']).toEqual({ topP: 0.5 })
  })

  test('what Gemini cannot do is rejected with the field at fault', () => {
    expect(refusal(() => fromChat({ n: 2 })).facts.param).toBe('n')
    const file = [{ role: 'user', content: [{ type: 'file', file: { file_id: 'file-1' } }] }]
    expect(refusal(() => fromChat({ messages: file })).code).toBe('unsupported_parameter')
    const image = [{ role: 'user', content: [{ type: 'image_url', image_url: { url: 'no url' } }] }]
    expect(refusal(() => fromChat({ messages: image })).code).toBe('unsupported_parameter')
    const orphan = [{ role: 'tool', tool_call_id: 'x', content: 'y' }]
    expect(refusal(() => fromChat({ messages: orphan })).code).toBe('invalid_request')
  })

  test('every recorded client request that refers to nothing stored is accepted', () => {
    const formats = { '/v1/chat/completions': openaiChat, '/v1/responses': openaiResponses } as const
    let accepted = 0
    for (const { path, body } of recordedRequests()) {
      const format = formats[path as keyof typeof formats]
      if (format === undefined || body === undefined) continue
      const conversation = format.readRequest(body)
      const { previousResponseId, references } = conversation.hints
      // The service resolves these before anything is written.
      if (previousResponseId !== undefined || (references ?? []).length > 0) continue
      const written = gemini.writeRequest(conversation, { ...targetOf(conversation), model: 'gemini-3-pro-preview' })
      const contents = written['contents'] as readonly JsonObject[]
      for (const [position, content] of contents.entries()) {
        expect(content['role']).toBe(position % 2 === 0 ? 'user' : 'model')
      }
      accepted += 1
    }
    expect(accepted).toBeGreaterThan(35)
  })
})

describe('content sent to Gemini', () => {
  const partsOf = (content: JsonObject[]): unknown =>
    (fromChat({ messages: [{ role: 'user', content }] })['contents'] as JsonObject[])[0]!['parts']

  test('media are sent inline, or as a URL that Google fetches itself', () => {
    expect(
      partsOf([
        { type: 'image_url', image_url: { url: 'data:image/jpg;base64,AAAA' } },
        { type: 'image_url', image_url: { url: 'https://example.com/a.webp?x=1' } },
        { type: 'image_url', image_url: { url: 'https://example.com/picture' } },
        { type: 'input_audio', input_audio: { data: 'BBBB', format: 'wav' } },
        { type: 'file', file: { file_data: 'data:application/pdf;base64,CCCC', filename: 'a.pdf' } },
        { type: 'file', file: { file_data: 'DDDD', filename: 'notes.txt' } },
        { type: 'image_url', image_url: { url: 'data:text/plain,caf%C3%A9' } },
      ]),
    ).toEqual([
      { inlineData: { mimeType: 'image/jpeg', data: 'AAAA' } },
      { fileData: { mimeType: 'image/webp', fileUri: 'https://example.com/a.webp?x=1' } },
      { fileData: { mimeType: 'image/jpeg', fileUri: 'https://example.com/picture' } },
      { inlineData: { mimeType: 'audio/wav', data: 'BBBB' } },
      { inlineData: { mimeType: 'application/pdf', data: 'CCCC' } },
      { inlineData: { mimeType: 'text/plain', data: 'DDDD' } },
      { inlineData: { mimeType: 'text/plain', data: Buffer.from('café').toString('base64') } },
    ])
  })

  test.each([
    [
      'gemini-3-pro-preview',
      [
        {
          functionResponse: {
            name: 'view',
            id: 'a',
            response: { output: 'seen\n[image]' },
            parts: [{ inlineData: { mimeType: 'image/png', data: 'AAAA' } }],
          },
        },
      ],
    ],
    [
      'gemini-2.5-pro',
      [
        { functionResponse: { name: 'view', response: { output: 'seen\n[image]' } } },
        { inlineData: { mimeType: 'image/png', data: 'AAAA' } },
      ],
    ],
  ])('an image in a tool result reaches %s', (backend, expected) => {
    const output = [
      { type: 'input_text', text: 'seen' },
      { type: 'input_image', image_url: 'data:image/png;base64,AAAA' },
    ]
    const input = [
      { type: 'function_call', call_id: 'a', name: 'view', arguments: '{}' },
      { type: 'function_call_output', call_id: 'a', output },
    ]
    const contents = fromResponses({ input }, backend)['contents'] as JsonObject[]
    expect(contents.at(-1)).toEqual({ role: 'user', parts: expected })
  })

  test('a call without a result gets the result “aborted”', () => {
    const messages = [user, { role: 'assistant', tool_calls: [call('a', 'f', '{}')] }, user]
    expect(JSON.stringify(fromChat({ messages })['contents'])).toContain('"response":{"output":"aborted"}')
  })

  test('arguments that are not an object are wrapped in one', () => {
    const messages = [user, { role: 'assistant', tool_calls: [call('a', 'f', '[1]'), call('b', 'f', 'oops')] }]
    const text = JSON.stringify(fromChat({ messages })['contents'])
    expect(text).toContain('"args":{"arguments":[1]}')
    expect(text).toContain('"args":{"arguments":"oops"}')
  })
})

describe('thought signatures that are sent back', () => {
  const signature = 'Q2lRQlZLaGM3bWFkZS11cA=='
  const turn = (sealed: string | undefined): JsonObject[] => [
    { role: 'user', content: 'go' },
    ...(sealed === undefined ? [] : [{ type: 'reasoning', id: 'rs_1', summary: [], encrypted_content: sealed }]),
    { type: 'function_call', call_id: 'a', name: 'f', arguments: '{}' },
    { type: 'function_call', call_id: 'b', name: 'f', arguments: '{}' },
    { type: 'function_call_output', call_id: 'a', output: '1' },
    { type: 'function_call_output', call_id: 'b', output: '2' },
  ]
  const signaturesOf = (body: JsonObject): unknown[] =>
    (body['contents'] as { parts: JsonObject[] }[])
      .flatMap(({ parts }) => parts)
      .filter((part) => part['functionCall'] !== undefined)
      .map((part) => part['thoughtSignature'])

  test('a signature returns on the call that it came with', () => {
    expect(signaturesOf(fromResponses({ input: turn(signature) }))).toEqual([signature, undefined])
  })

  test('Google’s placeholder is sent if the client could not keep the signature', () => {
    expect(signaturesOf(fromResponses({ input: turn(undefined) }))).toEqual([unsignedCall, undefined])
    const messages = [
      user,
      { role: 'assistant', tool_calls: [call('a', 'f', '{}')] },
      { role: 'tool', tool_call_id: 'a', content: '1' },
    ]
    expect(signaturesOf(fromChat({ messages }, 'gemini-3-flash-preview'))).toEqual([unsignedCall])
  })

  test('models that need no signature get none', () => {
    expect(signaturesOf(fromResponses({ input: turn(undefined) }, 'gemini-2.5-pro'))).toEqual([undefined, undefined])
  })
})
