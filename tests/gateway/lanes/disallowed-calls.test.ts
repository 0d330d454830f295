import { describe, expect, test } from 'vitest'
import { openaiChat } from '../../../src/formats/openai-chat/openai-chat.ts'
import { openaiResponses } from '../../../src/formats/openai-responses/openai-responses.ts'
import { openLane } from '../../../src/gateway/lanes/open-lane.ts'
import { contextOf } from '../../formats/exchange.ts'
import { someBackend } from '../routing/some-backend.ts'

const tools = ['look', 'write'].map((name) => ({ type: 'function', name, parameters: { type: 'object' } }))

/** The answer of a chat backend that calls this tool, as the client of Responses gets it. */
function answer(called: string, stream: boolean): string {
  const choice = { type: 'allowed_tools', mode: 'auto', tools: [{ type: 'function', name: 'look' }] }
  const body = { model: 'svc-router/frontier', input: 'Hi', tools, tool_choice: choice, stream }
  const context = contextOf(openaiResponses.readRequest(body))
  const backend = someBackend('b')
  const lane = openLane({ context, client: openaiResponses, backend, backendFormat: openaiChat, relay: undefined })
  const call = { index: 0, id: 'call_1', type: 'function', function: { name: called, arguments: '{}' } }
  const base = { id: 'c', object: 'chat.completion', created: 1, model: 'm' }
  const part = stream ? { delta: { tool_calls: [call] } } : { message: { role: 'assistant', tool_calls: [call] } }
  const sent = JSON.stringify({ ...base, choices: [{ index: 0, ...part, finish_reason: 'tool_calls' }] })
  const written = lane.push(Buffer.from(stream ? `data: ${sent}\n\ndata: [DONE]\n\n` : sent))
  return written + lane.end().toString()
}

describe.each([true, false])('a request that allows only some of its tools, streamed: %s', (stream) => {
  test('gets calls of those', () => {
    expect(answer('look', stream)).toContain('"name":"look"')
  })

  test('fails the attempt if the model calls another one', () => {
    expect(() => answer('write', stream)).toThrow(expect.objectContaining({ outcome: 'broken' }))
  })
})
