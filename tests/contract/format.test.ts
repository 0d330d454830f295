import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { AnswerEvent, Conversation } from '../../src/domain/conversation.ts'
import { clientFormatIds, formatIds } from '../../src/domain/format-id.ts'
import type { JsonObject } from '../../src/domain/json.ts'
import { UpstreamError } from '../../src/domain/upstream.ts'
import type { Format } from '../../src/formats/format.ts'
import { clientFormats, formatById } from '../../src/formats/formats.ts'
import { arbitraryAnswer, arbitraryConversation } from '../formats/arbitraries.ts'
import {
  type Content,
  contentOf,
  contextOf,
  dataOf,
  parseSse,
  readStream,
  recordedRequests,
  encodableContent,
  targetOf,
  writeStream,
} from '../formats/exchange.ts'
import { asGemini, asWholeGemini } from '../formats/gemini-recordings.ts'
import { casesOf } from '../long-run.ts'

const draws = { numRuns: casesOf({ sample: 100, all: 1_000 }) }
const all = Object.values(clientFormats)
/** All provider formats, including those that no client uses. */
const providerFormats = formatIds.map((id) => formatById(id))
const plain: Conversation = {
  profile: 'svc-router/frontier',
  stream: true,
  turns: [{ role: 'user', parts: [{ type: 'text', text: 'hi' }] }],
  tools: [],
  sampling: {},
  streamUsage: true,
  hints: {},
}

/** The body after it was sent as text. */
function sent(body: JsonObject): JsonObject {
  return JSON.parse(JSON.stringify(body)) as JsonObject
}

describe.each(all)('the format $id', (format) => {
  const encodable = (events: readonly AnswerEvent[]): Content => encodableContent(contentOf(events), format)

  test('the format is found by its ID and has a path', () => {
    expect(formatById(format.id)).toBe(format)
    expect(format.path).toMatch(/^\/[a-z/]+$/)
  })

  test('the format has recordings of real clients', () => {
    expect(recordedRequests().filter(({ path }) => path.split('?')[0] === `/v1${format.path}`)).not.toEqual([])
  })

  test('the format reads back the request that it wrote', () => {
    fc.assert(
      fc.property(arbitraryConversation(format.id), (conversation) => {
        const { turns, tools, toolChoice, parallelToolCalls, outputFormat, stream } = conversation
        const read = format.readRequest(sent(format.writeRequest(conversation, targetOf(conversation))))
        expect(read.turns).toEqual(turns)
        expect(read.tools).toEqual(tools)
        expect(read.toolChoice).toEqual(toolChoice)
        expect(read.parallelToolCalls).toBe(parallelToolCalls)
        expect(read.outputFormat).toEqual(outputFormat)
        expect(read.stream).toBe(stream)
        expect(read.profile).toBe('backend-model')
      }),
      draws,
    )
  })

  test('the format reads back the stream that it wrote', () => {
    fc.assert(
      fc.property(arbitraryAnswer(), (events) => {
        const read = readStream(format, writeStream(format, events, contextOf(plain)))
        expect(read.finished).toBe(true)
        expect(encodable(read.events)).toEqual(encodable(events))
      }),
      draws,
    )
  })

  test('the format reads back the non-streaming answer that it wrote', () => {
    fc.assert(
      fc.property(arbitraryAnswer(), (events) => {
        const reader = format.readAnswer()
        const read = reader.readWhole(sent(format.writeAnswer(contextOf(plain)).writeWhole(events)))
        expect(reader.finished).toBe(true)
        expect(encodable(read)).toEqual(encodable(events))
      }),
      draws,
    )
  })

  test('a stream truncated anywhere before its last content never counts as finished', () => {
    fc.assert(
      fc.property(arbitraryAnswer(), fc.nat(), (events, place) => {
        const whole = events.findIndex(({ type }) => type === 'finish')
        const writer = format.writeAnswer(contextOf(plain))
        const text = events
          .slice(0, place % (whole + 1))
          .map((event) => writer.writeEvents([event]))
          .join('')
        const read = readStream(format, text)
        expect(read.finished).toBe(false)
        expect(contentOf(read.events).reasons).toEqual([])
      }),
    )
  })

  test('nothing is written before there is content', () => {
    const usage = { inputTokens: 1, outputTokens: 1, cachedTokens: 0, reasoningTokens: 0, source: 'counted' } as const
    const writer = format.writeAnswer(contextOf(plain))
    expect(
      writer.writeEvents([
        { type: 'start', id: 'x', model: 'y' },
        { type: 'usage', usage },
      ]),
    ).toBe('')
    expect(writer.writeEvents([])).toBe('')
  })

  test('the answer names the profile as its model, and never the backend', () => {
    const events = [
      { type: 'start', id: 'backend-id', model: 'backend-model' },
      { type: 'text', text: 'x' },
      { type: 'finish', reason: 'stop' },
    ] as const
    const stream = writeStream(format, events, contextOf(plain))
    const whole = JSON.stringify(format.writeAnswer(contextOf(plain)).writeWhole(events))
    for (const text of [stream, whole]) {
      expect(text).not.toContain('backend-')
      expect(text).toContain('"model":"svc-router/frontier"')
    }
  })

  test("a broken stream ends with an error in the format's own shape, so that no reader takes it for complete", () => {
    const failure = { code: 'upstream_broken', type: 'server_error', message: 'It broke off.', param: null }
    const about = { source: 'provider', retryable: true }
    for (const before of [[], [{ type: 'text', text: 'Hel' }]] as const) {
      const writer = format.writeAnswer(contextOf(plain))
      const text = writer.writeEvents(before) + writer.writeFailure({ ...failure, ...about, requestId: 'req_1' })
      expect(text.endsWith('data: [DONE]\n\n')).toBe(format.id !== 'anthropic-messages')
      expect(text).toContain('It broke off.')
      expect(text).not.toMatch(/message_stop|"finish_reason":"|response\.completed/)
      const errors = dataOf(text).flatMap(({ type, error }) => (type === 'response.failed' || !error ? [] : [error]))
      const own = format.id === 'anthropic-messages' ? { type: 'api_error', details: { error_code: failure.code } } : {}
      expect(errors).toEqual([{ ...failure, ...about, ...own, request_id: 'req_1' }])
      expect(() => readStream(format, text)).toThrow(UpstreamError)
    }
  })

  test('keep-alives before, between, and after content do not change the answer', () => {
    const events = [
      { type: 'text', text: 'a' },
      { type: 'text', text: 'b' },
      { type: 'finish', reason: 'stop' },
    ] as const
    const writer = format.writeAnswer(contextOf(plain))
    let text = writer.writeKeepAlive() + writer.writeKeepAlive()
    for (const event of events) text += writer.writeEvents([event]) + writer.writeKeepAlive()
    text += writer.writeEnd()
    expect(contentOf(readStream(format, text).events)).toEqual(contentOf(events))
  })

  test('keys such as __proto__ have no special meaning', () => {
    const body =
      '{"model":"m","messages":[{"role":"user","content":"x","__proto__":{"name":1}}],"input":[{"role":"user","content":"x","__proto__":{"type":1}}],"__proto__":{"stream":true,"temperature":"hot"},"metadata":{"__proto__":{"a":"b"},"constructor":"c"}}'
    const conversation = format.readRequest(JSON.parse(body) as JsonObject)
    expect(conversation.stream).toBe(false)
    expect(conversation.sampling).toEqual({})
    for (const other of providerFormats) other.writeRequest(conversation, targetOf(conversation))
    expect(({} as JsonObject)['stream']).toBeUndefined()
  })

  test('200,000 messages are read and written without a stack overflow', () => {
    const messages = Array.from({ length: 200_000 }, () => ({ role: 'user', content: [{ type: 'text', text: 'x' }] }))
    const conversation = format.readRequest({ model: 'm', messages, input: messages })
    expect(conversation.turns).toHaveLength(200_000)
    for (const other of providerFormats) other.writeRequest(conversation, targetOf(conversation))
  })
})

describe.each(providerFormats)('the format $id toward providers', (format) => {
  test('data of another format is rejected with a category, and the error never contains the data', () => {
    for (const data of [
      '',
      '{',
      'null',
      '[]',
      '"x"',
      '<html>secret</html>',
      '{"error":{"message":"secret"}}',
      '{"error":"secret"}',
    ]) {
      const thrown = caught(() => format.readAnswer().readEvent(data))
      expect(thrown).toBeInstanceOf(UpstreamError)
      expect(String(thrown)).not.toContain('secret')
    }
    for (const body of [{}, { error: { message: 'secret' } }, { choices: 'x', output: 'x' }]) {
      expect(caught(() => format.readAnswer().readWhole(body))).toBeInstanceOf(UpstreamError)
    }
  })

  test('errors inside an answer are sorted into categories', () => {
    const outcomeOf = (code: string | number): unknown =>
      (caught(() => format.readAnswer().readEvent(JSON.stringify({ error: { code, message: 'x' } }))) as UpstreamError)
        .outcome
    expect(outcomeOf('context_length_exceeded')).toBe('context_too_long')
    expect(outcomeOf('rate_limit_exceeded')).toBe('rate_limited')
    expect(outcomeOf(429)).toBe('rate_limited')
    expect(outcomeOf('constructor')).toBe('server_error')
  })

  test('an answer is read only once, and is not finished before it starts', () => {
    expect(format.readAnswer().finished).toBe(false)
    expect(format.readAnswer()).not.toBe(format.readAnswer())
  })
})

describe.each(all.flatMap((backend) => all.map((client) => ({ backend, client }))))(
  'an answer from $backend.id to $client.id',
  ({ backend, client }: { backend: Format; client: Format }) => {
    const encodable = (events: readonly AnswerEvent[]): Content => encodableContent(contentOf(events), backend, client)

    test('the answer is the same when streamed', () => {
      fc.assert(
        fc.property(arbitraryAnswer(), (events) => {
          const reader = backend.readAnswer()
          const writer = client.writeAnswer(contextOf(plain))
          let text = ''
          for (const { data } of parseSse(writeStream(backend, events, contextOf(plain)))) {
            text += writer.writeEvents(reader.readEvent(data))
          }
          expect(reader.finished).toBe(true)
          expect(encodable(readStream(client, text + writer.writeEnd()).events)).toEqual(encodable(events))
        }),
        draws,
      )
    })

    test('the answer is the same when not streamed', () => {
      fc.assert(
        fc.property(arbitraryAnswer(), (events) => {
          const whole = sent(backend.writeAnswer(contextOf(plain)).writeWhole(events))
          const translated = client.writeAnswer(contextOf(plain)).writeWhole(backend.readAnswer().readWhole(whole))
          expect(encodable(client.readAnswer().readWhole(sent(translated)))).toEqual(encodable(events))
        }),
        draws,
      )
    })
  },
)

describe.each(all)('an answer from a Gemini provider to $id', (client) => {
  /** The content that Gemini can express: one kind of calls, no refusals, and no citations. */
  const encodable = arbitraryAnswer().map((events): AnswerEvent[] =>
    events.flatMap((event): AnswerEvent[] => {
      if (event.type === 'refusal' || event.type === 'annotation') return []
      if (event.type === 'text') return [{ type: 'text', text: event.text }]
      if (event.type === 'call') return [{ ...event, kind: 'function' }]
      if (event.type !== 'usage') return [event]
      const { outputTokens, reasoningTokens } = event.usage
      // An answer with content that was not counted is estimated.
      return [{ type: 'usage', usage: { ...event.usage, outputTokens: 1 + outputTokens + reasoningTokens } }]
    }),
  )

  test('the answer is the same when streamed', () => {
    fc.assert(
      fc.property(encodable, (events) => {
        const reader = formatById('gemini').readAnswer()
        const writer = client.writeAnswer(contextOf(plain))
        let text = ''
        for (const answer of asGemini(events)) text += writer.writeEvents(reader.readEvent(JSON.stringify(answer)))
        text += writer.writeEvents(reader.readEnd?.() ?? [])
        expect(reader.finished).toBe(true)
        expect(contentOf(readStream(client, text + writer.writeEnd()).events)).toEqual(contentOf(events))
      }),
      draws,
    )
  })

  test('the answer is the same when not streamed', () => {
    fc.assert(
      fc.property(encodable, (events) => {
        const read = formatById('gemini')
          .readAnswer()
          .readWhole(sent(asWholeGemini(events)))
        const translated = client.writeAnswer(contextOf(plain)).writeWhole(read)
        expect(contentOf(client.readAnswer().readWhole(sent(translated)))).toEqual(contentOf(events))
      }),
      draws,
    )
  })
})

test('this suite has answers for every format that only providers use', () => {
  expect(formatIds.filter((id) => !clientFormatIds.some((known) => known === id))).toEqual(['gemini'])
})

function caught(run: () => unknown): unknown {
  try {
    run()
  } catch (error) {
    return error
  }
  throw new Error('nothing was thrown')
}
