import { describe, expect, test } from 'vitest'
import type { JsonObject } from '../../../src/domain/json.ts'
import { readRequest } from '../../../src/formats/openai-responses/read-request.ts'
import { inputItems } from '../../../src/formats/openai-responses/stored-items.ts'
import { summaryRequest } from '../../../src/gateway/responses/summary-request.ts'
import { messagesBlocks } from '../../../src/simulation/caches/prompt-blocks.ts'
import { cachingProviders, written } from '../../simulation/caches/cache-world.ts'

const tools = [{ type: 'function', name: 'look', parameters: { type: 'object' } }]
const call = { type: 'function_call', call_id: 'c', name: 'look', arguments: '{}' }
const output = { type: 'function_call_output', call_id: 'c', output: 'A file.' }
const user = { type: 'message', role: 'user', content: 'Look.' }
const body = { model: 'svc-router/frontier', instructions: 'You are an agent.', tools, input: [user, call, output] }

const summaryOf = (given: JsonObject): JsonObject =>
  summaryRequest(given, inputItems(given['input']), readRequest(given))

describe('the request that has a model summarize a conversation', () => {
  test('begins like the conversation, so that the provider reads it from its cache', () => {
    const { backend } = cachingProviders[0]!
    const blocks = (request: JsonObject) =>
      messagesBlocks(written(backend, 'openai-responses', request).body).map(({ role, text }) => role + text)
    const conversation = blocks(body)
    expect(blocks(summaryOf(body)).slice(0, conversation.length)).toEqual(conversation)
  })

  test('forces no call, does not offer our own tool, and is not stored', () => {
    const choice = { type: 'function', name: 'look' }
    const asked = summaryOf({
      ...body,
      tools: [...tools, { type: 'svc-router:fusion' }],
      tool_choice: choice,
      store: true,
    })
    expect(asked).toMatchObject({ tools, store: false })
    expect(asked).not.toHaveProperty('tool_choice')
  })

  test('has the transcript if a call has no output', () => {
    const asked = summaryOf({ ...body, input: [user, call] })
    expect(asked).not.toHaveProperty('tools')
    expect(asked['input']).toContain('[assistant calls look] {}')
  })
})
