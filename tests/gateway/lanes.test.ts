import { describe, expect, test } from 'vitest'
import { openaiChat } from '../../src/formats/openai-chat/openai-chat.ts'
import { openaiResponses } from '../../src/formats/openai-responses/openai-responses.ts'
import { formatById, relayById } from '../../src/formats/formats.ts'
import { RelayLane, TranslationLane } from '../../src/gateway/stream-lanes.ts'
import { contextOf, golden, readStream } from '../formats/exchange.ts'

const conversation = openaiChat.readRequest({ model: 'p', messages: [], stream: true })

describe('a translated stream', () => {
  test.each([
    ['openai-responses', 'response-text.sse', 'event: response.completed'],
    ['openai-chat', 'chat-text.sse', 'data: [DONE]'],
  ] as const)('of %s is complete where its last event has no empty line behind it', (id, name, last) => {
    const client = id === 'openai-chat' ? openaiResponses : openaiChat
    const stream = golden(name)
    const at = stream.indexOf(last)
    const unended = stream.slice(0, at) + stream.slice(at).split('\n\n')[0]!
    const lane = new TranslationLane(
      formatById(id).readAnswer(),
      client.writeAnswer(contextOf(conversation)),
      'someone',
    )
    const written = lane.push(Buffer.from(unended)) + lane.end()
    expect(readStream(client, written).finished).toBe(true)
  })

  test('that stops within its last event is broken', () => {
    const [before = ''] = golden('response-text.sse').split('event: response.completed')
    const lane = new TranslationLane(
      openaiResponses.readAnswer(),
      openaiChat.writeAnswer(contextOf(conversation)),
      'someone',
    )
    lane.push(Buffer.from(`${before}event: response.completed\ndata: {"type":"response.comp`))
    expect(() => lane.end()).toThrow('broken')
  })
})

test('a relayed response that was cancelled is a fault, and is not passed on', () => {
  const [before = ''] = golden('response-text.sse').split('event: response.completed')
  const context = contextOf({ ...conversation, hints: {} })
  const lane = new RelayLane(relayById('openai-responses'), openaiResponses.readAnswer(), context, true, 'someone')
  lane.push(Buffer.from(before))
  expect(lane.hasContent).toBe(true)
  const cancelled = { type: 'response.cancelled', sequence_number: 99, response: { id: 'r', status: 'cancelled' } }
  const passed = lane.push(Buffer.from(`event: response.cancelled\ndata: ${JSON.stringify(cancelled)}\n\n`))
  expect(passed).toBe('')
  expect(lane.fault).toMatchObject({ outcome: 'server_error' })
})
