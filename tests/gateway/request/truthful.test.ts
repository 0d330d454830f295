import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { UpstreamError } from '../../../src/domain/upstream.ts'
import { formatById, relayById } from '../../../src/formats/formats.ts'
import { patchEvent } from '../../../src/formats/patch-json.ts'
import { SseReader } from '../../../src/formats/sse.ts'
import type { Lane } from '../../../src/gateway/lanes/lane.ts'
import { openLane } from '../../../src/gateway/lanes/open-lane.ts'
import type { Backend } from '../../../src/gateway/ports.ts'
import { contextOf } from '../../formats/exchange.ts'
import {
  beside,
  deepCalls,
  faultyBodies,
  faultyEvents,
  goodAnswers,
  malformedDeltas,
  providerText,
  unknownReasons,
  vendorErrors,
  vendorSuccesses,
  withDeepMember,
  withMembers,
} from '../provider-faults.ts'

type ProviderFormat = keyof typeof goodAnswers

const clients = ['openai-chat', 'openai-completions', 'openai-responses', 'anthropic-messages'] as const
const providers = Object.keys(goodAnswers) as ProviderFormat[]
const pairs = clients.flatMap((client) => providers.map((provider) => [client, provider] as const))
const relayed = clients.map((format) => [format, format] as const)

function laneOf(client: (typeof clients)[number], provider: ProviderFormat, stream: boolean, streamUsage = true): Lane {
  const context = contextOf(
    formatById(client).readRequest({
      model: 'p',
      messages: [],
      input: 'x',
      prompt: 'x',
      max_tokens: 9,
      store: false,
      stream,
    }),
  )
  return openLane({
    context,
    client: formatById(client),
    backend: { issuer: 'someone', dialect: { streamUsage } } as Backend,
    backendFormat: formatById(provider),
    relay: client === provider ? relayById(client) : undefined,
  })
}

interface Read {
  /** What the client received before the answer failed or ended. */
  readonly text: string
  readonly failed: boolean
  /** The error with which it failed. */
  readonly error?: unknown
}

/** Processes these reads as an attempt does. */
function readAll(lane: Lane, reads: readonly string[]): Read {
  let text = ''
  try {
    for (const read of reads) {
      text += lane.push(Buffer.from(read))
      if (lane.upstreamError !== undefined) return { text, failed: true, error: lane.upstreamError }
    }
    return { text: text + lane.end().toString(), failed: false }
  } catch (error) {
    return { text, failed: true, error }
  }
}

/** Matches the successful end of an answer in any format. */
const cleanEnd =
  /"finish_reason"\s*:\s*"|response\.(?:completed|incomplete)"|"stop_reason"\s*:\s*"|message_stop|\[DONE\]/

function expectFailure({ text, failed, error }: Read, what: string): void {
  expect(failed, what).toBe(true)
  // Any other error would be treated as a bug of this service: no failover, and `internal_error`.
  expect(error, what).toBeInstanceOf(UpstreamError)
  expect(text, what).not.toMatch(cleanEnd)
  expect(text, what).not.toContain(providerText)
}

describe.each(pairs)('a %s client of a %s provider', (client, provider) => {
  const { opening, delta, ending, whole, success } = goodAnswers[provider]
  const beginning = [opening, delta('one '), delta('two '), delta('three ')]

  test('a good answer arrives complete', () => {
    for (const reads of [[...beginning, ending(success)], [beginning.join('') + ending(success)]]) {
      const { text, failed } = readAll(laneOf(client, provider, true), reads)
      expect([failed, cleanEnd.test(text)]).toEqual([false, true])
    }
    expect(readAll(laneOf(client, provider, false), [whole(success)]).failed).toBe(false)
  })

  test.each(Object.entries(faultyEvents))('after %s, the stream does not end successfully', (_, fault) => {
    expectFailure(
      readAll(laneOf(client, provider, true), [opening, fault, ...beginning.slice(1), ending(success)]),
      'before',
    )
    expectFailure(
      readAll(laneOf(client, provider, true), [...beginning, fault, delta('four'), ending(success)]),
      'after',
    )
    expectFailure(
      readAll(laneOf(client, provider, true), [`${beginning.join('')}${fault}${ending(success)}`]),
      'at once',
    )
    expectFailure(readAll(laneOf(client, provider, true), [...beginning, fault + ending(success)]), 'with the end')
  })

  test.each(Object.entries(beside))('a good answer arrives complete with %s between its events', (_, event) => {
    const events = [...beginning, ending(success)].flatMap((text) => [event, text])
    const { text, failed } = readAll(laneOf(client, provider, true), events)
    expect([failed, cleanEnd.test(text), text.includes('three')]).toEqual([false, true, true])
  })

  test('an empty error member does not break an answer', () => {
    const body = whole(success).replace('{', '{"error":"",')
    expect(readAll(laneOf(client, provider, false), [body]).failed).toBe(false)
  })

  test('after a delta that is not text, the stream does not end successfully', () => {
    const delta = malformedDeltas[provider]
    expectFailure(readAll(laneOf(client, provider, true), [...beginning, delta, ending(success)]), 'after')
    expectFailure(readAll(laneOf(client, provider, true), [opening, delta, ending(success)]), 'before')
  })

  test.each([false, true])('JSON that nests too deep breaks the answer (objects: %s)', (isObject) => {
    const event = withDeepMember(delta('four'), isObject)
    expectFailure(readAll(laneOf(client, provider, true), [...beginning, event, ending(success)]), 'after')
    expectFailure(readAll(laneOf(client, provider, true), [opening, event, ending(success)]), 'before')
    expectFailure(readAll(laneOf(client, provider, true), [withDeepMember(opening, isObject)]), 'at the start')
    expectFailure(readAll(laneOf(client, provider, false), [withDeepMember(whole(success), isObject)]), 'whole')
    expectFailure(readAll(laneOf(client, provider, false), [deepCalls[provider] ?? '']), 'arguments')
  })

  test('faults after the end are ignored', () => {
    for (const fault of Object.values(faultyEvents)) {
      const { text, failed } = readAll(laneOf(client, provider, true), [...beginning, ending(success) + fault, fault])
      expect([failed, cleanEnd.test(text), text.includes(providerText)]).toEqual([false, true, false])
    }
  })

  test.each(unknownReasons)('the unknown finish reason %s breaks the answer', (reason) => {
    expectFailure(readAll(laneOf(client, provider, true), [...beginning, ending(reason)]), 'stream')
    expectFailure(readAll(laneOf(client, provider, true), [beginning.join('') + ending(reason)]), 'at once')
    expectFailure(readAll(laneOf(client, provider, false), [whole(reason)]), 'whole')
  })

  // vLLM ends aborted messages like this. Chat tolerates missing reasons, and a response ends with its status.
  test.runIf(provider === 'anthropic-messages' || provider === 'gemini')(
    'an answer without a finish reason breaks',
    () => {
      const withoutReason = [
        (text: string) => text.replace('"REASON"', 'null'),
        (text: string) => text.replace(/,?"\w+":"REASON"/, ''),
      ]
      for (const remove of withoutReason) {
        expectFailure(readAll(laneOf(client, provider, true), [...beginning, remove(ending('REASON'))]), 'stream')
        expectFailure(
          readAll(laneOf(client, provider, true), [beginning.join('') + remove(ending('REASON'))]),
          'at once',
        )
        expectFailure(readAll(laneOf(client, provider, false), [remove(whole('REASON'))]), 'whole')
      }
    },
  )

  test('an answer without an end breaks', () => {
    expectFailure(readAll(laneOf(client, provider, true), beginning), 'stream')
    expectFailure(readAll(laneOf(client, provider, true), [opening]), 'nothing beginning')
  })

  test.each(Object.entries(faultyBodies))('%s is not an answer', (_, body) => {
    expectFailure(readAll(laneOf(client, provider, false), [body]), 'whole')
  })

  test.each(Object.entries(vendorErrors))('an answer with the error of %s is broken', (_, members) => {
    const stream = laneOf(client, provider, true)
    expectFailure(readAll(stream, [...beginning, withMembers(ending(success), members)]), 'at the end')
    expectFailure(readAll(laneOf(client, provider, true), [withMembers(opening, members)]), 'at the start')
    const event = withMembers(delta('four'), members)
    expectFailure(readAll(laneOf(client, provider, true), [...beginning, event, ending(success)]), 'between')
    expectFailure(readAll(laneOf(client, provider, false), [withMembers(whole(success), members)]), 'whole')
  })

  test.each(vendorSuccesses)('an answer with %s is complete', (members) => {
    const reads = [...beginning, ...(provider === 'openai-responses' ? [] : [ending(success)])].map((text) =>
      withMembers(text, members),
    )
    const last = provider === 'openai-responses' ? [ending(success)] : []
    const { text, failed } = readAll(laneOf(client, provider, true), [...reads, ...last])
    expect([failed, cleanEnd.test(text)]).toEqual([false, true])
    expect(readAll(laneOf(client, provider, false), [withMembers(whole(success), members)]).failed).toBe(false)
  })

  test('an event that is not valid JSON breaks the stream', () => {
    const event = delta('four')
    const start = event.indexOf('{') + 1
    const edit = fc.record({
      at: fc.integer({ min: start, max: event.length - 4 }),
      remove: fc.integer({ min: 0, max: 3 }),
      insert: fc.constantFrom('', '"', '\\', '{', '}', ',', ':', '\u0001', '\t', 'x', '\\u12', '\\x'),
    })
    fc.assert(
      fc.property(edit, ({ at, remove, insert }) => {
        const edited = `${event.slice(0, at)}${insert}${event.slice(Math.min(at + remove, event.length - 3))}`
        fc.pre(!isJson(edited.slice(edited.indexOf('data: ') + 6)))
        expectFailure(readAll(laneOf(client, provider, true), [...beginning, edited, ending(success)]), edited)
      }),
      { numRuns: 150 },
    )
  })
})

function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

describe.each(relayed)('a relayed %s stream', (format) => {
  const { opening, delta, ending, success } = goodAnswers[format]

  test('parsing events and skipping known shapes give the same stream', () => {
    fc.assert(
      fc.property(fc.array(fc.string({ unit: 'grapheme' }), { maxLength: 12 }), fc.boolean(), (texts, atOnce) => {
        const events = texts.map((text) => delta(JSON.stringify(text).slice(1, -1)))
        const reads = [opening, delta('x'), ...(atOnce ? [events.join('')] : events), ending(success)]
        // If the usage has to be estimated, every event is parsed.
        const all = readAll(laneOf(format, format, true, false), reads)
        expect(readAll(laneOf(format, format, true), reads)).toEqual(all)
        expect(all.failed).toBe(false)
      }),
    )
  })
})

test('a number of an event that is forwarded unparsed has at most 9 digits', () => {
  const { opening, delta, ending, success } = goodAnswers['openai-responses']
  const numbered = (number: string): string => delta('x').replace('"sequence_number":2', `"sequence_number":${number}`)
  const streamed = (number: string): Read =>
    readAll(laneOf('openai-responses', 'openai-responses', true), [
      opening + delta('one '),
      delta('two '),
      numbered(number) + ending(success),
    ])
  expect(streamed('999999999').failed).toBe(false)
  for (const number of ['1000000000', '1e15', '100000000000000000000', '-1', '0.5']) {
    expectFailure(streamed(number), number)
    expect(streamed(number).text).not.toContain(number)
  }
})

test.each(['openai-chat', 'openai-completions', 'gemini'] as const)(
  'a vendor’s own event in a stream of %s is skipped',
  (provider) => {
    const { opening, delta, ending, success } = goodAnswers[provider]
    const reads = [opening, delta('x'), 'data: {"object":"vendor.thing","a":1}\n\n', delta('y'), ending(success)]
    for (const client of clients) {
      const { text, failed } = readAll(laneOf(client, provider, true), reads)
      expect([failed, cleanEnd.test(text), text.includes('vendor')]).toEqual([false, true, false])
      for (const fault of ['"status":"error"', '"errors":[]', '"message":"x"']) {
        const event = `data: {"object":"vendor.thing",${fault}}\n\n`
        expectFailure(readAll(laneOf(client, provider, true), [opening, delta('x'), event, ending(success)]), fault)
      }
    }
  },
)

test.each(clients)('additional empty lines between and after events change nothing: %s', (client) => {
  const { opening, delta, ending, success } = goodAnswers['openai-chat']
  const plain = readAll(laneOf(client, 'openai-chat', true), [opening, delta('one '), delta('two'), ending(success)])
  expect([plain.failed, cleanEnd.test(plain.text)]).toEqual([false, true])
  for (const extra of ['\n', '\n\n', '\n\n\n', '\r\n', '\r\n\r\n\r\n']) {
    for (const reads of [
      [opening + extra, delta('one ') + extra, delta('two') + extra, ending(success) + extra],
      [opening, extra, delta('one ') + delta('two') + extra, ending(success), extra],
    ]) {
      const { text, failed } = readAll(laneOf(client, 'openai-chat', true), reads)
      expect([extra, failed, text.replaceAll(/\n{2,}/g, '\n\n')]).toEqual([extra, false, plain.text])
    }
  }
})

test('an event with several data lines stays one event when its members are replaced', () => {
  // Everything between unchanged members stays, including line feeds.
  const data = '{\n "type": "response.created",\n "sequence_number": 0,\n "response": {\n  "id": "a"\n }\n}'
  const block = `event: response.created\n${data.replaceAll(/^/gm, 'data: ')}`
  const patched = patchEvent(block, { id: '"b"' })
  const [event] = new SseReader().push(`${patched}\n\n`)
  expect(JSON.parse(event!.data)).toEqual({ type: 'response.created', sequence_number: 0, response: { id: 'b' } })
})

describe.each(clients)('a %s client of chat', (client) => {
  const { opening, delta } = goodAnswers['openai-chat']
  const besideContent = ['"choices":null', '"choices":[]', '"usage":{"prompt_tokens":1,"completion_tokens":1}', '"a":1']

  test.each(besideContent)('an error instead of content breaks the stream: %s', (members) => {
    for (const error of [...Object.values(vendorErrors), `"message":"${providerText}"`, `"msg":"${providerText}"`]) {
      if (members === '"choices":[]' && !Object.values(vendorErrors).includes(error)) continue
      const event = `data: {"id":"c","object":"chat.completion.chunk",${members},${error}}\n\n`
      const done = 'data: [DONE]\n\n'
      expectFailure(readAll(laneOf(client, 'openai-chat', true), [opening, delta('x'), event, done]), 'after content')
      expectFailure(readAll(laneOf(client, 'openai-chat', true), [event, done]), 'alone')
      const body = `{"id":"c","object":"chat.completion",${members},${error}}`
      expectFailure(readAll(laneOf(client, 'openai-chat', false), [body]), 'whole')
    }
  })
})

test('MiniMax’s codes for credentials and rate limits mean the same as those of others', () => {
  const outcomeOf = (code: number): unknown => {
    const body = `{"id":"c","choices":null,"base_resp":{"status_code":${code},"status_msg":"${providerText}"}}`
    return (readAll(laneOf('openai-chat', 'openai-chat', false), [body]).error as UpstreamError).outcome
  }
  expect([1004, 1008, 2049].map(outcomeOf)).toEqual(Array(3).fill('rejected_credentials'))
  expect(outcomeOf(1002)).toBe('rate_limited')
  expect(outcomeOf(1000)).toBe('server_error')
})

test('of several choices one that failed breaks the answer', () => {
  const { opening, delta } = goodAnswers['openai-chat']
  const failed = 'data: {"choices":[{"index":1,"delta":{},"finish_reason":"abort"}]}\n\n'
  for (const client of clients) {
    expectFailure(readAll(laneOf(client, 'openai-chat', true), [opening, delta('x'), failed]), client)
  }
})

test('usage after the last finish reason is recorded, and nothing after [DONE] is passed on', () => {
  const { opening, delta, ending } = goodAnswers['openai-chat']
  const late = 'data: {"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":5}}\n\n'
  const [end = '', done = ''] = ending('stop').split(/(?<=\n\n)/)
  for (const reads of [
    [opening, delta('x'), end, late, done],
    [opening, delta('x'), end + done, late, delta('y')],
  ]) {
    for (const client of clients) {
      const lane = laneOf(client, 'openai-chat', true)
      const { text, failed } = readAll(lane, reads)
      expect([failed, text.includes('"y"')]).toEqual([false, false])
      expect(lane.usage).toMatchObject({ inputTokens: 3, outputTokens: 5, source: 'counted' })
      if (client === 'openai-chat') expect(text.match(/\[DONE\]/g)).toHaveLength(1)
    }
  }
})

test('a complete Gemini call is passed on even if an unknown finish reason then breaks the answer', () => {
  const call =
    'data: {"candidates":[{"content":{"parts":[{"functionCall":{"name":"look_up","args":{"q":1}}}]},"finishReason":"NEW"}]}\n\n'
  // Text completions have no calls.
  for (const client of clients.filter((one) => one !== 'openai-completions')) {
    const read = readAll(laneOf(client, 'gemini', true), [call])
    expect(read.text).toContain('look_up')
    expectFailure(read, client)
  }
})
