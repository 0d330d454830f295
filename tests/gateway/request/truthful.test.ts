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
  withDeepMember,
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
  /** What the caller got before the answer failed or ended. */
  readonly text: string
  readonly failed: boolean
  /** What it failed with. */
  readonly error?: unknown
}

/** Reads what comes in these reads, as an attempt does. */
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

/** What says in any convention that an answer is whole. */
const cleanEnd =
  /"finish_reason"\s*:\s*"|response\.(?:completed|incomplete)"|"stop_reason"\s*:\s*"|message_stop|\[DONE\]/

function expectFailure({ text, failed, error }: Read, what: string): void {
  expect(failed, what).toBe(true)
  // Anything else would be taken for a bug of this service: no failover, and `internal_error`.
  expect(error, what).toBeInstanceOf(UpstreamError)
  expect(text, what).not.toMatch(cleanEnd)
  expect(text, what).not.toContain(providerText)
}

describe.each(pairs)('a %s caller of a %s provider', (client, provider) => {
  const { opening, delta, ending, whole, success } = goodAnswers[provider]
  const said = [opening, delta('one '), delta('two '), delta('three ')]

  test('gets a good answer whole', () => {
    for (const reads of [[...said, ending(success)], [said.join('') + ending(success)]]) {
      const { text, failed } = readAll(laneOf(client, provider, true), reads)
      expect([failed, cleanEnd.test(text)]).toEqual([false, true])
    }
    expect(readAll(laneOf(client, provider, false), [whole(success)]).failed).toBe(false)
  })

  test.each(Object.entries(faultyEvents))('gets no clean end behind %s', (_, fault) => {
    expectFailure(
      readAll(laneOf(client, provider, true), [opening, fault, ...said.slice(1), ending(success)]),
      'before',
    )
    expectFailure(readAll(laneOf(client, provider, true), [...said, fault, delta('four'), ending(success)]), 'after')
    expectFailure(readAll(laneOf(client, provider, true), [`${said.join('')}${fault}${ending(success)}`]), 'at once')
    expectFailure(readAll(laneOf(client, provider, true), [...said, fault + ending(success)]), 'with the end')
  })

  test.each(Object.entries(beside))('gets a good answer whole with %s between its events', (_, event) => {
    const events = [...said, ending(success)].flatMap((text) => [event, text])
    const { text, failed } = readAll(laneOf(client, provider, true), events)
    expect([failed, cleanEnd.test(text), text.includes('three')]).toEqual([false, true, true])
  })

  test('gets a whole answer beside an empty error', () => {
    const body = whole(success).replace('{', '{"error":"",')
    expect(readAll(laneOf(client, provider, false), [body]).failed).toBe(false)
  })

  test('gets no clean end behind a delta that is no text', () => {
    const delta = malformedDeltas[provider]
    expectFailure(readAll(laneOf(client, provider, true), [...said, delta, ending(success)]), 'after')
    expectFailure(readAll(laneOf(client, provider, true), [opening, delta, ending(success)]), 'before')
  })

  test.each([false, true])('gets no clean end from JSON that nests too deep (objects: %s)', (isObject) => {
    const event = withDeepMember(delta('four'), isObject)
    expectFailure(readAll(laneOf(client, provider, true), [...said, event, ending(success)]), 'after')
    expectFailure(readAll(laneOf(client, provider, true), [opening, event, ending(success)]), 'before')
    expectFailure(readAll(laneOf(client, provider, true), [withDeepMember(opening, isObject)]), 'at the start')
    expectFailure(readAll(laneOf(client, provider, false), [withDeepMember(whole(success), isObject)]), 'whole')
    expectFailure(readAll(laneOf(client, provider, false), [deepCalls[provider] ?? '']), 'arguments')
  })

  test('is not hurt by a fault behind the end', () => {
    for (const fault of Object.values(faultyEvents)) {
      const { text, failed } = readAll(laneOf(client, provider, true), [...said, ending(success) + fault, fault])
      expect([failed, cleanEnd.test(text), text.includes(providerText)]).toEqual([false, true, false])
    }
  })

  test.each(unknownReasons)('gets no clean end from the reason %s', (reason) => {
    expectFailure(readAll(laneOf(client, provider, true), [...said, ending(reason)]), 'stream')
    expectFailure(readAll(laneOf(client, provider, true), [said.join('') + ending(reason)]), 'at once')
    expectFailure(readAll(laneOf(client, provider, false), [whole(reason)]), 'whole')
  })

  // vLLM ends messages that it aborts so. Chat's missing reasons are tolerated, and a response ends with its status.
  test.runIf(provider === 'anthropic-messages' || provider === 'gemini')('gets no clean end without a reason', () => {
    const withoutReason = [
      (text: string) => text.replace('"REASON"', 'null'),
      (text: string) => text.replace(/,?"\w+":"REASON"/, ''),
    ]
    for (const remove of withoutReason) {
      expectFailure(readAll(laneOf(client, provider, true), [...said, remove(ending('REASON'))]), 'stream')
      expectFailure(readAll(laneOf(client, provider, true), [said.join('') + remove(ending('REASON'))]), 'at once')
      expectFailure(readAll(laneOf(client, provider, false), [remove(whole('REASON'))]), 'whole')
    }
  })

  test('gets no clean end where the end is missing', () => {
    expectFailure(readAll(laneOf(client, provider, true), said), 'stream')
    expectFailure(readAll(laneOf(client, provider, true), [opening]), 'nothing said')
  })

  test.each(Object.entries(faultyBodies))('gets no whole answer from %s', (_, body) => {
    expectFailure(readAll(laneOf(client, provider, false), [body]), 'whole')
  })

  test('gets no clean end from an event that is no JSON any more', () => {
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
        expectFailure(readAll(laneOf(client, provider, true), [...said, edited, ending(success)]), edited)
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

describe.each(relayed)('a %s stream that is relayed', (format) => {
  const { opening, delta, ending, success } = goodAnswers[format]

  test('is the same whether its events are read or have a shape that is known', () => {
    fc.assert(
      fc.property(fc.array(fc.string({ unit: 'grapheme' }), { maxLength: 12 }), fc.boolean(), (texts, atOnce) => {
        const events = texts.map((text) => delta(JSON.stringify(text).slice(1, -1)))
        const reads = [opening, delta('x'), ...(atOnce ? [events.join('')] : events), ending(success)]
        // Where a backend does not count, every event is read.
        const all = readAll(laneOf(format, format, true, false), reads)
        expect(readAll(laneOf(format, format, true), reads)).toEqual(all)
        expect(all.failed).toBe(false)
      }),
    )
  })
})

test.each(['openai-chat', 'openai-completions', 'gemini'] as const)(
  'an own event of a vendor of %s is skipped',
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

test('an event whose data has several lines stays one event when its members change', () => {
  // What lies between unchanged members is kept, line feeds too.
  const data = '{\n "type": "response.created",\n "sequence_number": 0,\n "response": {\n  "id": "a"\n }\n}'
  const block = `event: response.created\n${data.replaceAll(/^/gm, 'data: ')}`
  const restated = patchEvent(block, { id: '"b"' })
  const [event] = new SseReader().push(`${restated.block}\n\n`)
  expect(JSON.parse(event!.data)).toEqual({ type: 'response.created', sequence_number: 0, response: { id: 'b' } })
})

test('of several choices one that failed breaks the answer', () => {
  const { opening, delta } = goodAnswers['openai-chat']
  const failed = 'data: {"choices":[{"index":1,"delta":{},"finish_reason":"abort"}]}\n\n'
  for (const client of clients) {
    expectFailure(readAll(laneOf(client, 'openai-chat', true), [opening, delta('x'), failed]), client)
  }
})

test('usage behind the last reason is noted, and nothing behind [DONE] is passed on', () => {
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

test('a whole call of Gemini is told although its answer ends for a reason nobody knows, and then breaks', () => {
  const call =
    'data: {"candidates":[{"content":{"parts":[{"functionCall":{"name":"look_up","args":{"q":1}}}]},"finishReason":"NEW"}]}\n\n'
  // Text completions have no calls.
  for (const client of clients.filter((one) => one !== 'openai-completions')) {
    const read = readAll(laneOf(client, 'gemini', true), [call])
    expect(read.text).toContain('look_up')
    expectFailure(read, client)
  }
})
