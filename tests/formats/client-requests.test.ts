import { describe, expect, test } from 'vitest'
import { ServiceError } from '../../src/domain/errors.ts'
import type { JsonObject } from '../../src/domain/json.ts'
import { anthropicMessages } from '../../src/formats/anthropic-messages/anthropic-messages.ts'
import { unmarkConversation } from '../../src/formats/encrypted-reasoning.ts'
import type { Format } from '../../src/formats/format.ts'
import { clientFormats } from '../../src/formats/formats.ts'
import { openaiChat } from '../../src/formats/openai-chat/openai-chat.ts'
import { openaiResponses } from '../../src/formats/openai-responses/openai-responses.ts'
import { recordedRequests, targetOf, type RecordedRequest } from './exchange.ts'

const recorded = recordedRequests()

/** The format of a recording; undefined if it has no body in a supported format. */
function formatOf({ path, body }: RecordedRequest): Format | undefined {
  if (body === undefined) return undefined
  if (path === '(websocket message)') return openaiResponses
  return Object.values(clientFormats).find((format) => path.split('?')[0] === `/v1${format.path}`)
}

const readable = recorded.flatMap((request) => {
  const format = formatOf(request)
  return format === undefined || request.body === undefined ? [] : [{ ...request, body: request.body, format }]
})

function read(file: string): { format: Format; body: JsonObject } {
  return readable.find((request) => request.file === file)!
}

describe('recorded client requests', () => {
  test('there are 52 recordings, and all but two have a body in a supported format', () => {
    expect(recorded).toHaveLength(52)
    const others = recorded.filter((request) => formatOf(request) === undefined).map(({ file }) => file)
    expect(others.sort()).toEqual(['codex-ws-upgrade.json', 'openai-models-list.json'])
  })

  test.each(readable)('$file is accepted', ({ format, body }) => {
    const conversation = format.readRequest(body)
    expect(conversation.profile).toBe(body['model'])
    expect(conversation.stream).toBe(body['stream'] ?? false)
    expect(conversation.turns.length).toBeGreaterThan(0)
  })

  test.each(readable)(
    '$file is translated to every format, or rejected because it refers to stored items',
    ({ format, body }) => {
      const conversation = format.readRequest(body)
      const { previousResponseId, references } = conversation.hints
      for (const other of Object.values(clientFormats)) {
        const write = (): JsonObject => other.writeRequest(conversation, targetOf(conversation))
        if (previousResponseId === undefined && references === undefined) {
          const written = JSON.parse(JSON.stringify(write())) as JsonObject
          expect(written['model']).toBe('backend-model')
          expect(other.readRequest(written).turns.length).toBeGreaterThan(0)
          continue
        }
        const code = previousResponseId === undefined ? 'item_not_found' : 'previous_response_not_found'
        const param = previousResponseId === undefined ? 'input' : 'previous_response_id'
        expect(write).toThrow(
          expect.objectContaining({ code, facts: expect.objectContaining({ param }) as unknown }) as Error,
        )
      }
    },
  )

  test('all Codex tools are kept: functions, children of namespaces, custom tools, and hosted tools', () => {
    const { body } = read('codex-custom-tool-output.json')
    const { tools } = openaiResponses.readRequest(body)
    expect(tools.filter(({ type }) => type === 'function')).toHaveLength(12)
    expect(tools.filter((tool) => tool.type !== 'hosted' && tool.namespace === 'multi_agent_v1')).toHaveLength(5)
    expect(tools).toContainEqual(expect.objectContaining({ type: 'custom', name: 'apply_patch' }))
    expect(tools.at(-1)).toEqual({ type: 'hosted', declaration: { type: 'web_search', external_web_access: false } })
  })

  test('tools that Codex sends in additional_tools items are read', () => {
    const { body } = read('codex-additional-tools-responses-lite.json')
    const { tools, turns } = openaiResponses.readRequest(body)
    expect(tools.filter((tool) => tool.type !== 'hosted' && tool.namespace === 'functions')).toHaveLength(3)
    expect(tools.filter((tool) => tool.type !== 'hosted' && tool.namespace === 'collaboration')).toHaveLength(6)
    expect(turns).toHaveLength(6)
  })

  test('the fusion tool that an SDK attaches is never sent to a provider', () => {
    const { body } = read('openai-chat-fusion-tool.json')
    const conversation = openaiChat.readRequest(body)
    expect(conversation.fusionTool).toEqual({ type: 'svc-router:fusion' })
    expect(conversation.tools).toEqual([])
    const written = openaiResponses.writeRequest(conversation, targetOf(conversation))
    expect(written).not.toHaveProperty('tools')
    expect(written).not.toHaveProperty('tool_choice')
  })

  test('parallel calls from Codex become one assistant message with text and both calls', () => {
    const { body } = read('codex-reasoning-parallel-calls.json')
    const conversation = openaiResponses.readRequest(body)
    const { messages } = openaiChat.writeRequest(conversation, targetOf(conversation, { replaysReasoning: false }))
    expect((messages as JsonObject[]).slice(-3)).toEqual([
      {
        role: 'assistant',
        content: 'Let me look.',
        tool_calls: [
          { id: 'call_abc2', type: 'function', function: { name: 'exec_command', arguments: '{"cmd":"true"}' } },
          { id: 'call_abc3', type: 'function', function: { name: 'exec_command', arguments: '{"cmd":"echo 2"}' } },
        ],
      },
      { role: 'tool', tool_call_id: 'call_abc2', content: '(102 characters of text)' },
      { role: 'tool', tool_call_id: 'call_abc3', content: '(104 characters of text)' },
    ])
  })

  test('encrypted reasoning is never translated into another format', () => {
    const sealed = readable.filter(({ body }) => JSON.stringify(body).includes('"encrypted_content":"'))
    expect(sealed.length).toBeGreaterThanOrEqual(3)
    for (const { format, body } of sealed) {
      const conversation = unmarkConversation(format.readRequest(body), 'someone')
      for (const other of Object.values(clientFormats)) {
        const written = JSON.stringify(other.writeRequest(conversation, targetOf(conversation)))
        expect(written).not.toMatch(/"ENC\d?"|"encrypted_content"/)
      }
    }
  })

  test('requests from Claude Code keep their instructions, positions, and tools, and hide Anthropic’s billing text from others', () => {
    const { body } = read('claude-code-messages.json')
    const conversation = anthropicMessages.readRequest(body)
    expect(conversation.turns.map(({ role }) => role)).toEqual(['system', 'user', 'system'])
    expect(conversation.reasoning).toEqual({ effort: 'high' })
    expect(conversation.hints).toEqual({})
    const chat = openaiChat.writeRequest(conversation, targetOf(conversation))
    expect((chat['messages'] as JsonObject[]).map(({ role }) => role)).toEqual(['system', 'user', 'system'])
    expect(chat).toMatchObject({ max_completion_tokens: 32_000, reasoning_effort: 'high', stream: true })
    expect((chat['tools'] as JsonObject[]).map((tool) => (tool['function'] as JsonObject)['name'])).toHaveLength(12)
    const responses = openaiResponses.writeRequest(conversation, targetOf(conversation))
    expect((responses['input'] as JsonObject[]).map(({ role }) => role)).toEqual(['system', 'user', 'system'])
    expect(responses).toMatchObject({ max_output_tokens: 32_000, reasoning: { effort: 'high' }, store: false })
    for (const written of [chat, responses]) {
      expect(JSON.stringify(written)).not.toMatch(/billing|cache_control|context_management|user_id|device_id/)
    }
  })

  test('errors contain only our own text', () => {
    const { body } = read('openai-chat-basic.json')
    expect(() => openaiChat.readRequest({ ...body, stream: 'yes' })).toThrow(ServiceError)
  })
})
