import { describe, expect, test } from 'vitest'
import type { AnswerEvent } from '../../src/domain/conversation.ts'
import type { JsonObject } from '../../src/domain/json.ts'
import { UpstreamError } from '../../src/domain/upstream.ts'
import { clientFormats } from '../../src/formats/formats.ts'
import { gemini } from '../../src/formats/gemini/gemini.ts'
import { SseReader } from '../../src/formats/sse.ts'
import { TranslationLane } from '../../src/gateway/lanes/translation-lane.ts'
import { contentOf, contextOf, readStream } from './exchange.ts'
import { recording, recordings } from './gemini-recordings.ts'

const conversation = clientFormats['openai-chat'].readRequest({
  model: 'svc-router/frontier',
  messages: [{ role: 'user', content: 'hi' }],
  stream: true,
  stream_options: { include_usage: true },
})
/** Streams that end successfully. */
const good = ['text.sse', 'thoughts-and-parallel-calls.sse', 'calls-without-ids.sse', 'cut-by-length.sse']

function readAll(text: string): { events: AnswerEvent[]; finished: boolean } {
  const reader = gemini.readAnswer()
  const sse = new SseReader()
  const events = [...sse.push(Buffer.from(text)), ...sse.end()].flatMap(({ data }) => [...reader.readEvent(data)])
  events.push(...(reader.readEnd?.() ?? []))
  return { events, finished: reader.finished }
}

function faultOf(run: () => unknown): UpstreamError {
  try {
    run()
  } catch (error) {
    if (error instanceof UpstreamError) return error
  }
  throw new Error('no UpstreamError was thrown')
}

function whole(name: string): readonly AnswerEvent[] {
  return gemini.readAnswer().readWhole(JSON.parse(recording(name)) as JsonObject)
}

describe('a Gemini stream', () => {
  test('text, finish reason, and usage are read, and reasoning tokens count as output', () => {
    const { events, finished } = readAll(recording('text.sse'))
    expect(finished).toBe(true)
    expect(events[0]).toEqual({ type: 'start', id: 'Zm9vYmFyMQ', model: 'gemini-2.5-flash' })
    expect(contentOf(events)).toMatchObject({
      text: 'The capital of Norway is Oslo – “the tiger city” 🐯.',
      reasons: ['stop'],
      usage: { inputTokens: 9, outputTokens: 25, cachedTokens: 4, reasoningTokens: 12, source: 'counted' },
    })
  })

  test('thoughts are reasoning, and each call is whole, with a signature if Google signed it', () => {
    const { events } = readAll(recording('thoughts-and-parallel-calls.sse'))
    const content = contentOf(events)
    expect(content.reasoning).toContain('**Looking up two cities**')
    expect(content.text).toBe('')
    expect(content.reasons).toEqual(['tool_calls'])
    expect(content.calls).toEqual([
      {
        kind: 'function',
        id: '9vpkq2xu',
        name: 'get_weather',
        namespace: undefined,
        arguments: '{"city":"Oslo","days":2}',
      },
      { kind: 'function', id: 'm6t0c3aa', name: 'get_weather', namespace: undefined, arguments: '{"city":"Bergen"}' },
    ])
    expect(content.sealed).toEqual(['Q2lRQlZLaGM3bWFkZS11cA=='])
    const types = events.map(({ type }) => type)
    expect(types.indexOf('reasoning_end')).toBe(types.indexOf('call') - 1)
  })

  test('IDs and arguments may be missing', () => {
    const { calls, text } = contentOf(readAll(recording('calls-without-ids.sse')).events)
    expect(text).toBe('I will look.')
    expect(calls).toMatchObject([{ id: '', name: 'get_time', arguments: '{}' }])
  })

  test('finish reasons other than STOP are translated', () => {
    expect(contentOf(readAll(recording('cut-by-length.sse')).events).reasons).toEqual(['length'])
    const withheld = readAll(recording('withheld-for-safety.sse'))
    expect(withheld.finished).toBe(true)
    expect(contentOf(withheld.events)).toMatchObject({ text: 'First you', reasons: ['content_filter'] })
  })

  test.each(['RECITATION', 'BLOCKLIST', 'PROHIBITED_CONTENT', 'SPII', 'LANGUAGE', 'IMAGE_SAFETY'])(
    'an answer withheld for %s is filtered',
    (finishReason) => {
      const events = gemini.readAnswer().readWhole({ candidates: [{ finishReason }] })
      expect(contentOf(events).reasons).toEqual(['content_filter'])
    },
  )

  test.each([
    'MALFORMED_FUNCTION_CALL',
    'UNEXPECTED_TOOL_CALL',
    'OTHER',
    'MISSING_THOUGHT_SIGNATURE',
    'NEVER_HEARD_OF',
  ])('the finish reason %s is a failure', (finishReason) => {
    const reader = gemini.readAnswer()
    expect(faultOf(() => reader.readEvent(JSON.stringify({ candidates: [{ finishReason }] }))).outcome).toBe(
      'server_error',
    )
    expect(reader.finished).toBe(false)
  })

  test('a blocked prompt is a rejection of the content', () => {
    const fault = faultOf(() => readAll(recording('blocked-prompt.sse')))
    expect([fault.outcome, fault.status]).toEqual(['rejected_content', 400])
  })

  test('an error event gives its category and never its text', () => {
    const fault = faultOf(() => readAll(recording('error-in-the-midst.sse')))
    expect(fault.outcome).toBe('server_error')
    expect(String(fault)).not.toContain('overloaded')
    expect(faultOf(() => readAll(recording('malformed-call.sse'))).outcome).toBe('server_error')
  })

  test('bytes that arrive one at a time give the same answer', () => {
    for (const name of good) {
      const expected = readAll(recording(name))
      const reader = gemini.readAnswer()
      const sse = new SseReader()
      const events: AnswerEvent[] = []
      for (const byte of Buffer.from(recording(name))) {
        for (const { data } of sse.push(Buffer.from([byte]))) events.push(...reader.readEvent(data))
      }
      events.push(...(reader.readEnd?.() ?? []))
      expect(events).toEqual(expected.events)
      expect(reader.finished).toBe(true)
    }
  })

  test('the stream needs no [DONE], and events after its end are ignored', () => {
    const reader = gemini.readAnswer()
    const end = '{"candidates":[{"index":0,"finishReason":"STOP"}]}'
    reader.readEvent(end)
    const late = reader.readEvent(
      '{"candidates":[{"index":0,"content":{"parts":[{"text":""}]},"finishReason":"OTHER"}]}',
    )
    expect(late).toEqual([])
    expect(faultOf(() => gemini.readAnswer().readEvent('[DONE]')).outcome).toBe('broken')
  })

  test('a stream with a reason in every chunk is read to its end', () => {
    const chunk = (text: string): string =>
      `data: {"candidates":[{"content":{"parts":[{"text":"${text}"}]},"finishReason":"STOP"}]}\n\n`
    const { events, finished } = readAll(chunk('Hello ') + chunk('world'))
    expect(events.filter(({ type }) => type !== 'start')).toEqual([
      { type: 'text', text: 'Hello ' },
      { type: 'text', text: 'world' },
      { type: 'finish', reason: 'stop' },
    ])
    expect(finished).toBe(true)
    const lane = new TranslationLane(
      gemini.readAnswer(),
      clientFormats['openai-chat'].writeAnswer(contextOf(conversation)),
      'someone',
      conversation,
    )
    lane.push(Buffer.from(chunk('one ') + chunk('two ')))
    // Content followed an earlier reason, so no reason proves that this stream is complete.
    expect(lane.finished).toBe(false)
    lane.push(Buffer.from('data: {"error":{"message":"x"}}\n\n'))
    expect(lane.upstreamError).toBeDefined()
    expect(() => lane.end()).toThrow()
  })

  test('only the first of several candidates is read', () => {
    const events = gemini.readAnswer().readWhole({
      candidates: [
        { index: 1, content: { parts: [{ text: 'second' }] }, finishReason: 'STOP' },
        { index: 0, content: { parts: [{ text: 'first' }] }, finishReason: 'STOP' },
      ],
    })
    expect(contentOf(events).text).toBe('first')
  })

  test('unknown parts are skipped', () => {
    const parts = [
      { executableCode: { language: 'PYTHON', code: 'print(1)' } },
      { codeExecutionResult: { outcome: 'OUTCOME_OK', output: '1' } },
      { inlineData: { mimeType: 'image/png', data: 'AA==' } },
      { text: 'said', thoughtSignature: 'AA==' },
    ]
    const events = gemini.readAnswer().readWhole({ candidates: [{ content: { parts }, finishReason: 'STOP' }] })
    expect(contentOf(events)).toMatchObject({ text: 'said', calls: [], sealed: [] })
  })
})

describe('a non-streaming Gemini answer', () => {
  test('it is read like the stream', () => {
    expect(contentOf(whole('text.json'))).toMatchObject({
      text: 'Oslo, of course.',
      reasoning: 'Considering the question.',
      reasons: ['stop'],
      usage: { inputTokens: 9, outputTokens: 35, reasoningTokens: 30 },
    })
    expect(contentOf(whole('call.json'))).toMatchObject({ reasons: ['tool_calls'], calls: [{ name: 'get_weather' }] })
  })

  test('log probabilities are translated into OpenAI’s form', () => {
    expect(contentOf(whole('logprobs.json')).logprobs).toEqual([
      {
        token: 'Yes',
        logprob: -0.01,
        bytes: [89, 101, 115],
        top_logprobs: [
          { token: 'Yes', logprob: -0.01, bytes: [89, 101, 115] },
          { token: 'No', logprob: -4.6, bytes: [78, 111] },
        ],
      },
    ])
  })

  test('an answer without a finish reason is broken', () => {
    for (const body of [{}, { candidates: [] }, { candidates: [{ content: { parts: [{ text: 'x' }] } }] }]) {
      expect(faultOf(() => gemini.readAnswer().readWhole(body)).outcome).toBe('broken')
    }
  })
})

describe.each(Object.values(clientFormats))('a Gemini stream for a client of $id', (client) => {
  const open = (): TranslationLane =>
    new TranslationLane(gemini.readAnswer(), client.writeAnswer(contextOf(conversation)), 'someone', conversation)

  test.each(good)('%s has the same content there', (name) => {
    const lane = open()
    const text = lane.push(Buffer.from(recording(name))) + lane.end()
    const read = readStream(client, text)
    const expected = contentOf(readAll(recording(name)).events)
    const got = contentOf(read.events)
    expect(read.finished).toBe(true)
    expect(got.calls.map((call) => [call.name, call.arguments])).toEqual(
      expected.calls.map((call) => [call.name, call.arguments]),
    )
    expect({ ...got, calls: [], sealed: [] }).toEqual({ ...expected, calls: [], sealed: [] })
  })

  test.each(recordings)('%s that ends after any event but the last is never a complete answer', (name) => {
    const frames = recording(name).split(/(?<=\r\n\r\n)/)
    for (let kept = 0; kept < frames.length; kept++) {
      const lane = open()
      try {
        lane.push(Buffer.from(frames.slice(0, kept).join('')))
      } catch (error) {
        expect(error).toBeInstanceOf(UpstreamError)
        continue
      }
      expect(() => lane.end()).toThrow(UpstreamError)
    }
  })

  test('a stream that ends at any byte is not complete unless its finish reason was read', () => {
    const bytes = Buffer.from(recording('thoughts-and-parallel-calls.sse'))
    const end = bytes.lastIndexOf('"finishReason"')
    for (let length = 0; length < end; length += 7) {
      const lane = open()
      lane.push(bytes.subarray(0, length))
      expect(() => lane.end()).toThrow(UpstreamError)
    }
  })
})
