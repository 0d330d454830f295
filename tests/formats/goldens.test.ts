import { describe, expect, test } from 'vitest'
import type { AnswerEvent, Conversation } from '../../src/domain/conversation.ts'
import type { JsonObject } from '../../src/domain/json.ts'
import { anthropicMessages } from '../../src/formats/anthropic-messages/anthropic-messages.ts'
import type { Format } from '../../src/formats/format.ts'
import { openaiChat } from '../../src/formats/openai-chat/openai-chat.ts'
import { openaiResponses } from '../../src/formats/openai-responses/openai-responses.ts'
import { contextOf, createdAt, golden, parseSse, readStream, writeStream } from './exchange.ts'

const model = 'svc-router/frontier'
const weather = { name: 'get_weather', parameters: { type: 'object', properties: {} } }
const chat = openaiChat.readRequest({ model, messages: [], stream: true, stream_options: { include_usage: true } })
const responses = openaiResponses.readRequest({ model, input: 'hi', stream: true })
const messages = anthropicMessages.readRequest({ model, max_tokens: 100, messages: [], stream: true })
const responsesWithTool = openaiResponses.readRequest({ model, input: 'hi', tools: [{ type: 'function', ...weather }] })

/** Replaces every ID with its prefix and the order of its first appearance, so that equal IDs remain equal. */
function withPlainIds(text: string): string {
  const seen = new Map<string, string>()
  return text.replaceAll(/\b(chatcmpl|resp|msg|fc|rs)_\w+/g, (id, prefix: string) => {
    if (!seen.has(id)) seen.set(id, `${prefix}_${seen.size}`)
    return seen.get(id)!
  })
}

function framesOf(text: string): unknown[] {
  return parseSse(withPlainIds(text)).map(({ event, data }) => ({
    event,
    data: data === '[DONE]' ? data : (JSON.parse(data) as JsonObject),
  }))
}

const streams: [string, Format, Conversation][] = [
  ['chat-text.sse', openaiChat, chat],
  ['chat-tool-call.sse', openaiChat, chat],
  ['response-text.sse', openaiResponses, responses],
  ['response-function-call.sse', openaiResponses, responsesWithTool],
  ['response-reasoning.sse', openaiResponses, responses],
  ['messages-text.sse', anthropicMessages, messages],
  ['messages-tool-use.sse', anthropicMessages, messages],
  ['messages-thinking.sse', anthropicMessages, messages],
]

describe('the golden streams', () => {
  test.each(streams)('%s: reading and writing the stream gives the same bytes', (name, format, conversation) => {
    const { events, finished } = readStream(format, golden(name))
    expect(finished).toBe(true)
    // Encrypted reasoning is known only when the item ends, so the event that opens the item cannot contain it.
    const expected = golden(name).replace(
      '"content":[],"encrypted_content":"ENC"}}\n\nevent: response.reasoning',
      '"content":[]}}\n\nevent: response.reasoning',
    )
    expect(framesOf(writeStream(format, events, contextOf(conversation)))).toEqual(framesOf(expected))
  })

  test('response-failed.sse: a failed stream ends with the same failure', () => {
    const [before = ''] = golden('response-failed.sse').split('event: error')
    const { events, finished } = readStream(openaiResponses, before)
    expect(finished).toBe(false)
    const writer = openaiResponses.writeAnswer(contextOf(responses))
    const failure = { code: 'server_error', type: 'server_error', message: 'upstream exploded', param: null }
    const about = { source: 'provider', retryable: true }
    // The nested form also has the fields of every error body (contract 4.1).
    const nested = `${JSON.stringify(about).slice(1, -1)},"request_id":"req_1"`
    const expected = golden('response-failed.sse').replace('"param":null}}', `"param":null,${nested}}}`)
    const written = writer.writeEvents(events) + writer.writeFailure({ ...failure, ...about, requestId: 'req_1' })
    expect(framesOf(written)).toEqual(framesOf(expected))
    expect(() => readStream(openaiResponses, golden('response-failed.sse'))).toThrow('server_error')
  })

  test.each([
    ['chat.json', openaiChat, chat],
    ['response.json', openaiResponses, responses],
    ['messages.json', anthropicMessages, messages],
  ] as const)('%s: reading and writing the stream gives the same bytes', (name, format, conversation) => {
    const reader = format.readAnswer()
    const events = reader.readWhole(JSON.parse(golden(name)) as JsonObject)
    expect(reader.finished).toBe(true)
    const written = JSON.stringify(format.writeAnswer(contextOf(conversation)).writeWhole(events))
    expect(JSON.parse(withPlainIds(written))).toEqual(JSON.parse(withPlainIds(golden(name))))
  })

  test.each(streams)('%s: a stream that ends after any earlier event is not finished', (name, format) => {
    const frames = golden(name).split(/(?<=\n\n)/)
    const terminal = frames.findIndex((frame) =>
      /"finish_reason":"|"type":"response.completed"|"type":"message_stop"/.test(frame),
    )
    expect(terminal).toBeGreaterThan(2)
    for (let count = 0; count <= frames.length; count++) {
      const { finished, events } = readStream(format, frames.slice(0, count).join(''))
      expect(finished).toBe(count > terminal)
      expect(events.some((event) => event.type === 'finish')).toBe(count > terminal)
    }
  })

  test.each(streams)('%s: each frame is one event with its data on one line', (name, format, conversation) => {
    const { events } = readStream(format, golden(name))
    const writer = format.writeAnswer(contextOf(conversation))
    for (const event of events) {
      const written = writer.writeEvents([event])
      if (written !== '') expect(written).toMatch(/^(?:(?:event: \S+\n)?data: .+\n\n)+$/)
    }
    const ending = format === anthropicMessages ? '"type":"message_stop"}' : '[DONE]'
    expect(writer.writeEnd().endsWith(`${ending}\n\n`)).toBe(true)
  })

  test('every golden stream was created at the time that the tests use', () => {
    const events: AnswerEvent[] = readStream(openaiChat, golden('chat-text.sse')).events
    expect(events[0]).toEqual({ type: 'start', id: 'chatcmpl_00005613528419', model })
    expect(golden('chat.json')).toContain(String(createdAt))
  })
})
