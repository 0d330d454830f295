import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { AnswerEvent } from '../../../src/domain/conversation.ts'
import { ServiceError } from '../../../src/domain/errors.ts'
import type { JsonObject } from '../../../src/domain/json.ts'
import type { RoutingPolicy } from '../../../src/domain/routing-policy.ts'
import { UpstreamError } from '../../../src/domain/upstream.ts'
import type { AnswerContext, ClientFormatId } from '../../../src/formats/format.ts'
import { formatById } from '../../../src/formats/formats.ts'
import { SseReader } from '../../../src/formats/sse.ts'
import { anyText } from '../../any-text.ts'
import { FakeGateway, type FakeBackend } from '../fake-gateway.ts'
import { settled } from '../manual-clock.ts'

const formats = ['openai-chat', 'openai-responses', 'anthropic-messages'] as const
type RescuedFormat = (typeof formats)[number]

const messages = [{ role: 'user', content: 'Why?' }]
const requests: Readonly<Record<RescuedFormat, JsonObject>> = {
  'openai-chat': { messages, stream_options: { include_usage: true } },
  'openai-responses': { input: 'Why?' },
  'anthropic-messages': { messages, max_tokens: 100 },
}
const note = '\n\n[The answer broke off here. It starts over below.]\n\n'

const say = (text: string): AnswerEvent => ({ type: 'text', text })
const stop: AnswerEvent = { type: 'finish', reason: 'stop' }
const usage: AnswerEvent = {
  type: 'usage',
  usage: { inputTokens: 7, outputTokens: 9, cachedTokens: 0, reasoningTokens: 0, source: 'counted' },
}

/** What a provider of this format streams for these events. */
function streamOf(format: RescuedFormat, events: readonly AnswerEvent[]): string {
  const { conversation, ...context } = {
    requestId: 'req_p',
    createdAt: 1,
    nowSeconds: () => 1,
    isStored: false,
    mintId: () => 'p',
    conversation: formatById(format).readRequest({ model: 'm', stream: true, ...requests[format] }),
  } satisfies AnswerContext
  const writer = formatById(format).writeAnswer({ ...context, conversation })
  const written = writer.writeEvents(events)
  return events.includes(stop) ? written + writer.writeEnd() : written
}

interface Seen {
  readonly text: string
  readonly events: readonly AnswerEvent[]
  /** Whether the stream ends as a complete answer, with an error event, or neither. */
  readonly end: 'whole' | 'error' | 'none'
  readonly rescues: unknown
}

/** What a client reads. */
function seenBy(format: ClientFormatId, stream: string): Seen {
  const reader = formatById(format).readAnswer()
  const events: AnswerEvent[] = []
  let end: Seen['end'] = 'none'
  let rescues: unknown
  for (const { data, event } of new SseReader().push(Buffer.from(stream))) {
    try {
      events.push(...reader.readEvent(data, event))
      const value = reader.lastData as { svc_router?: JsonObject; response?: { svc_router?: JsonObject } } | undefined
      rescues = (value?.svc_router ?? value?.response?.svc_router)?.['rescues'] ?? rescues
    } catch (error) {
      expect(error).toBeInstanceOf(UpstreamError)
      end = 'error'
      break
    }
  }
  if (end === 'none' && reader.finished) end = 'whole'
  const text = events.map((event) => (event.type === 'text' ? event.text : '')).join('')
  return { text, events, end, rescues }
}

interface Case {
  readonly client?: RescuedFormat
  readonly providers?: readonly RescuedFormat[]
  readonly routing?: RoutingPolicy
  readonly body?: JsonObject
}

/** A request to backends of these formats, which a test lets fail and answer. */
class RescueCase {
  readonly gateway: FakeGateway
  readonly client: RescuedFormat
  readonly providers: readonly RescuedFormat[]
  readonly #body: JsonObject
  timeoutMs: number | undefined

  constructor({ client = 'openai-chat', providers = ['openai-chat', 'openai-chat'], routing, body = {} }: Case = {}) {
    this.gateway = new FakeGateway(providers)
    this.gateway.profile.routing = routing ?? { rescue: 'verified' }
    this.client = client
    this.providers = providers
    this.#body = { ...requests[client], stream: true, ...body }
  }

  get backends(): readonly FakeBackend[] {
    return this.gateway.backends
  }

  get seen(): Seen {
    return seenBy(this.client, this.gateway.sink.text)
  }

  get outcome() {
    expect(this.gateway.settled.length).toBe(1)
    return this.gateway.settled[0]!.outcome
  }

  /** The attempts of the record. */
  get attempts(): unknown[] {
    return this.outcome.attempts.map(({ backend, outcome, rescued }) =>
      rescued === undefined ? [backend, outcome] : [backend, outcome, rescued],
    )
  }

  async start(): Promise<{ readonly end: Promise<unknown> }> {
    const end = this.gateway.answer(this.client, this.#body, this.timeoutMs).catch((error: unknown) => error)
    await settled()
    return { end }
  }

  /** One backend sends events, in one piece or in pieces of this many bytes. */
  async send(backend: number, events: readonly AnswerEvent[], pieces = Infinity): Promise<void> {
    await this.sendText(backend, streamOf(this.providers[backend]!, events), pieces)
  }

  async sendText(backend: number, text: string, pieces = Infinity): Promise<void> {
    const bytes = Buffer.from(text)
    for (let from = 0; from < bytes.length; from += pieces)
      this.backends[backend]!.listener.onData(bytes.subarray(from, Math.min(bytes.length, from + pieces)))
    await settled()
  }

  async cut(backend: number): Promise<void> {
    this.backends[backend]!.listener.onError(new UpstreamError('reset'))
    await settled()
  }

  /** The first backend sends a text and is cut. */
  async breakOff(text: string): Promise<{ readonly end: Promise<unknown> }> {
    const { end } = await this.start()
    this.backends[0]!.head()
    await this.send(0, [say(text)])
    await this.cut(0)
    return { end }
  }

  async answer(backend: number, events: readonly AnswerEvent[], pieces?: number): Promise<void> {
    this.backends[backend]!.head()
    await this.send(backend, events, pieces)
    this.backends[backend]!.end()
    await settled()
  }
}

const whole = 'One two three four.'

describe('a stream that breaks off is continued by another backend', () => {
  const failures: Readonly<Record<string, (one: RescueCase) => Promise<void>>> = {
    'a lost connection': (one) => one.cut(0),
    'a missing end': async ({ backends }) => {
      backends[0]!.end()
      await settled()
    },
    'a malformed event': (one) => one.sendText(0, 'data: {"choices": [{"delta"\n\n'),
    'an error event': (one) =>
      one.sendText(0, 'event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"x"}}\n\n'),
    silence: (one) => one.gateway.clock.advance(1_000_000),
  }
  for (const client of formats)
    for (const [what, fail] of Object.entries(failures))
      for (const [first, second] of [
        [client, client],
        [client, 'openai-chat'],
        ['anthropic-messages', client],
      ] as const)
        test(`${client} after ${what} of ${first}, by ${second}`, async () => {
          const one = new RescueCase({ client, providers: [first, second] })
          const { end } = await one.start()
          one.backends[0]!.head()
          await one.send(0, [say('One two ')])
          await fail(one)
          expect(one.seen).toMatchObject({ text: 'One two ', end: 'none' })
          await one.answer(1, [say('One tw'), say('o three'), say(' four.'), usage, stop])
          expect(await end).toBeUndefined()
          expect(one.seen).toMatchObject({ text: whole, end: 'whole' })
          expect(one.seen.rescues).toEqual([{ upstream: 'b1', seam: 'verified', after_characters: 8 }])
          expect(one.seen.events.filter(({ type }) => type === 'usage').at(-1)).toMatchObject(usage)
          expect(one.outcome).toMatchObject({ charged: 1, usage: { outputTokens: 9 } })
          expect(one.attempts).toEqual([
            ['b0', expect.stringMatching(/reset|broken|server_error|timeout/)],
            ['b1', 'answered', 'verified'],
          ])
          expect(one.gateway.line).toMatchObject({
            outcome: 'answered',
            rescued: 'verified',
            failed: ['b0'],
            attempts: 2,
          })
          expect(one.gateway.clock.waiting).toBe(0)
        })
})

test('wherever the first backend is cut, the client reads one complete answer without repetition', async () => {
  const words = anyText({ minLength: 1, maxLength: 6 })
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom(...formats),
      fc.constantFrom(...formats),
      fc.constantFrom(...formats),
      fc.array(words, { minLength: 1, maxLength: 6 }),
      fc.array(fc.nat(5), { maxLength: 6 }),
      fc.double({ min: 0, max: 1, noNaN: true }),
      fc.integer({ min: 1, max: 400 }),
      async (client, first, second, pieces, splits, at, size) => {
        const one = new RescueCase({ client, providers: [first, second] })
        const text = pieces.join('').toWellFormed()
        const { end } = await one.start()
        one.backends[0]!.head()
        const sent = Buffer.from(streamOf(first, [...pieces.map((piece) => say(piece.toWellFormed())), stop]))
        const part = sent.subarray(0, Math.floor(at * sent.length))
        for (let from = 0; from < part.length; from += size)
          one.backends[0]!.listener.onData(part.subarray(from, from + size))
        await settled()
        await one.cut(0)
        if (one.backends[1]!.requests.length > 0) {
          let from = 0
          const again = [...splits, text.length].map((length) => say(text.slice(from, (from += length))))
          await one.answer(1, [...again.filter((event) => 'text' in event && event.text !== ''), stop], size)
        }
        expect(await end).toBeUndefined()
        expect(one.seen).toMatchObject({ text: pieces.map((piece) => piece.toWellFormed()).join(''), end: 'whole' })
        expect(one.outcome.charged).toBe(1)
      },
    ),
    { numRuns: 60 },
  )
})

describe('the text of the other backend', () => {
  const differing = [
    ['differs from the first character', [say('1 2 3'), stop]],
    ['differs within an event', [say('One t'), say('hree'), stop]],
    ['ends too early', [say('One'), stop]],
    ['ends without text', [stop]],
    [
      'continues with a tool call',
      [say('One'), { type: 'call', index: 0, kind: 'function', id: 'c', name: 'f' }, stop],
    ],
    ['is a refusal', [{ type: 'refusal', text: 'I cannot help.' }, stop]],
  ] as const satisfies readonly (readonly [string, readonly AnswerEvent[]])[]

  for (const [index, client] of formats.entries())
    for (const [what, events] of differing)
      test(`that ${what} ends a verified ${client} stream as without a rescue`, async () => {
        const ends = []
        for (const rescue of ['never', 'verified'] as const) {
          const one = new RescueCase({ client, providers: ['openai-chat', 'openai-responses'], routing: { rescue } })
          const { end } = await one.breakOff('One two')
          // In pieces, so that it differs at once or later.
          if (rescue === 'verified') await one.answer(1, events, index === 0 ? Infinity : 60)
          expect(await end).toBeUndefined()
          expect(one.seen).toMatchObject({ text: 'One two', end: 'error' })
          expect(one.outcome).toMatchObject({ charged: 1, errorCode: 'upstream_broken' })
          ends.push(one.seen.events.filter(({ type }) => type === 'text' || type === 'call' || type === 'refusal'))
          if (rescue === 'verified') {
            expect(one.attempts).toEqual([
              ['b0', 'reset'],
              ['b1', 'cancelled'],
            ])
            expect(one.gateway.line).toMatchObject({ failed: ['b0'] })
          }
        }
        expect(ends[1]).toEqual(ends[0])
      })

  for (const client of formats)
    test(`follows a note in a marked ${client} stream if it differs`, async () => {
      const one = new RescueCase({ client, routing: { rescue: 'marked' } })
      const { end } = await one.breakOff('One twö')
      await one.answer(1, [say('One'), say(' three'), say(' five.'), stop])
      expect(await end).toBeUndefined()
      expect(one.seen).toMatchObject({ text: `One twö${note}One three five.`, end: 'whole' })
      expect(one.seen.rescues).toEqual([{ upstream: 'b1', seam: 'marked', after_characters: 7 }])
      expect(one.attempts).toEqual([
        ['b0', 'reset'],
        ['b1', 'answered', 'marked'],
      ])
      expect(one.outcome.charged).toBe(1)
    })

  test('after a note is what a third backend must repeat', async () => {
    const one = new RescueCase({
      providers: ['openai-chat', 'openai-chat', 'openai-chat'],
      routing: { rescue: 'marked' },
    })
    const { end } = await one.breakOff('One')
    one.backends[1]!.head()
    await one.send(1, [say('1 2')])
    await one.cut(1)
    await one.answer(2, [say('1 2 3'), stop])
    expect(await end).toBeUndefined()
    const begun = `One${note}1 2`
    expect(one.seen).toMatchObject({ text: `${begun} 3`, end: 'whole' })
    expect(one.seen.rescues).toEqual([
      { upstream: 'b1', seam: 'marked', after_characters: 3 },
      { upstream: 'b2', seam: 'verified', after_characters: begun.length },
    ])
    expect(one.attempts).toEqual([
      ['b0', 'reset'],
      ['b1', 'reset', 'marked'],
      ['b2', 'answered', 'verified'],
    ])
  })

  test('is verified by a marked rescue, too, and gets no note if it is the same', async () => {
    const one = new RescueCase({ routing: { rescue: 'marked' } })
    const { end } = await one.breakOff('One two')
    await one.answer(1, [say('One two three'), stop])
    await end
    expect(one.seen).toMatchObject({ text: 'One two three', end: 'whole' })
    expect(one.attempts.at(-1)).toEqual(['b1', 'answered', 'verified'])
  })

  test('gets no note in an answer that must be JSON', async () => {
    const body = { response_format: { type: 'json_object' } }
    const one = new RescueCase({ routing: { rescue: 'marked' }, body })
    const { end } = await one.breakOff('{"a":')
    await one.answer(1, [say('{"b":1}'), stop])
    await end
    expect(one.seen).toMatchObject({ text: '{"a":', end: 'error' })
  })

  test('may make tool calls after what the client has', async () => {
    for (const client of formats) {
      const one = new RescueCase({ client })
      const { end } = await one.breakOff('Let me look')
      const call: AnswerEvent = { type: 'call', index: 0, kind: 'function', id: 'call_1', name: 'f' }
      const rest: AnswerEvent[] = [call, { type: 'call_arguments', index: 0, text: '{}' }]
      await one.answer(1, [say('Let me look it up.'), ...rest, stop])
      await end
      expect(one.seen).toMatchObject({ text: 'Let me look it up.', end: 'whole' })
      expect(one.seen.events.filter(({ type }) => type === 'call').length).toBe(1)
    }
  })

  test('follows reasoning that the client already has', async () => {
    for (const client of formats) {
      const one = new RescueCase({ client })
      const { end } = await one.start()
      one.backends[0]!.head()
      await one.send(0, [{ type: 'reasoning', text: 'Hm.' }])
      await one.cut(0)
      await one.answer(1, [{ type: 'reasoning', text: 'Other thoughts.' }, say('Yes.'), stop])
      await end
      expect(one.seen).toMatchObject({ text: 'Yes.', end: 'whole' })
      const reasoning = one.seen.events.filter((event) => event.type === 'reasoning')
      expect(reasoning.map(({ text }) => text).join('')).toBe('Hm.')
    }
  })
})

describe('a stream is not rescued', () => {
  const call: AnswerEvent = { type: 'call', index: 0, kind: 'function', id: 'call_1', name: 'f' }
  const unrescued: readonly (readonly [string, Case & { readonly events?: readonly AnswerEvent[] }])[] = [
    ['without the option', { routing: {} }],
    ['if the request turns it off', { body: { routing: { rescue: 'never' } } }],
    ['after a tool call began', { events: [say('Well'), call] }],
    ['in the middle of its arguments', { events: [call, { type: 'call_arguments', index: 0, text: '{"a' }] }],
    ['after a whole tool call', { events: [call, { type: 'call_arguments', index: 0, text: '{}' }] }],
    ['after a refusal', { events: [{ type: 'refusal', text: 'I cannot' }] }],
    ['with several choices', { body: { n: 2 } }],
    ['with log probabilities', { body: { logprobs: true } }],
    ['with a field of one format', { body: { modalities: ['text', 'audio'] } }],
    [
      'with a tool of the provider',
      {
        client: 'openai-responses',
        providers: ['openai-responses', 'openai-responses'],
        body: { tools: [{ type: 'web_search' }] },
      },
    ],
    ['if its text is too long', { events: [say('x'.repeat(262_145))] }],
  ]
  for (const [what, { events = [say('Well')], ...given }] of unrescued)
    test(what, async () => {
      const one = new RescueCase(given)
      const { end } = await one.start()
      one.backends[0]!.head()
      await one.send(0, events)
      await one.cut(0)
      expect(await end).toBeUndefined()
      expect(one.backends[1]!.requests.length).toBe(0)
      expect(one.seen.end).toBe('error')
      expect(one.attempts).toEqual([['b0', 'answered']])
      expect(one.outcome).toMatchObject({ charged: 1, errorCode: 'upstream_broken' })
    })

  test('if the request is at fault', async () => {
    const one = new RescueCase()
    const { end } = await one.start()
    one.backends[0]!.head()
    await one.send(0, [say('Well')])
    await one.sendText(0, 'data: {"error":{"code":"context_length_exceeded","message":"too long"}}\n\n')
    await end
    expect(one.backends[1]!.requests.length).toBe(0)
    expect(one.seen.end).toBe('error')
  })

  test('if the client disconnects or stops reading', async () => {
    for (const leave of [
      async (one: RescueCase) => one.gateway.sink.disconnect(),
      async (one: RescueCase) => {
        one.gateway.sink.isReading = false
        await one.send(0, [say(' yes')])
        await one.gateway.clock.advance(70_000)
      },
    ]) {
      const one = new RescueCase()
      const { end } = await one.start()
      one.backends[0]!.head()
      await one.send(0, [say('Well')])
      await leave(one)
      await end
      expect(one.backends[1]!.requests.length).toBe(0)
      expect(one.outcome).toMatchObject({ charged: 1, errorCode: 'client_closed' })
    }
  })

  test('after a refusal of its content filter', async () => {
    const one = new RescueCase()
    const { end } = await one.start()
    one.backends[0]!.head()
    await one.send(0, [say('Well')])
    await one.sendText(0, 'data: {"error":{"code":"content_filter","message":"filtered"}}\n\n')
    await end
    expect(one.backends[1]!.requests.length).toBe(0)
    expect(one.outcome.errorCode).toBe('content_rejected')
  })

  test('if its text has no room in memory', async () => {
    const one = new RescueCase()
    const grown: number[] = []
    one.gateway.held = {
      grow: (bytes) => {
        if (grown.push(bytes) > 1) throw new ServiceError('server_busy', { retryAfterSeconds: 1 })
      },
    }
    const { end } = await one.start()
    one.backends[0]!.head()
    await one.send(0, [say('x'.repeat(4_096)), say('y')])
    await one.send(0, [say('z')])
    await one.cut(0)
    expect(await end).toBeUndefined()
    expect(grown).toEqual([8_192, 8_192])
    expect(one.seen).toMatchObject({ text: `${'x'.repeat(4_096)}yz`, end: 'error' })
    expect(one.backends[1]!.requests.length).toBe(0)
  })
})

describe('a rescue', () => {
  test('can be asked for in the request', async () => {
    const one = new RescueCase({ routing: {}, body: { routing: { rescue: 'verified' } } })
    const { end } = await one.breakOff('One')
    await one.answer(1, [say('One two'), stop])
    await end
    expect(one.seen).toMatchObject({ text: 'One two', end: 'whole' })
    expect(Buffer.from(one.backends[1]!.requests[0]!.body).toString()).not.toContain('rescue')
  })

  test('asks the backend after a failing one, and a third one if the second breaks off, too', async () => {
    for (const [text, ...third] of [
      ['One two three', 'One two thr', 'verified'],
      ['One', 'One two', 'verified'],
    ] as const) {
      const one = new RescueCase({ providers: ['openai-chat', 'anthropic-messages', 'openai-responses'] })
      const { end } = await one.breakOff('One two')
      one.backends[1]!.head()
      await one.send(1, [say(text)])
      await one.cut(1)
      await one.answer(2, [say(`${third[0]} and`), say(' four'), stop])
      await end
      if (text === 'One') expect(one.seen).toMatchObject({ text: 'One two and four', end: 'whole' })
      else expect(one.seen).toMatchObject({ text: 'One two three', end: 'error' })
      expect(one.attempts.slice(0, 1)).toEqual([['b0', 'reset']])
      expect(one.outcome.charged).toBe(1)
    }
  })

  test('asks at most three backends for one request', async () => {
    const chat = 'openai-chat'
    const one = new RescueCase({ providers: [chat, chat, chat, chat] })
    const { end } = await one.start()
    one.backends[0]!.head(503)
    one.backends[0]!.end()
    await settled()
    for (const backend of [1, 2]) {
      one.backends[backend]!.head()
      await one.send(backend, [say('One')])
      await one.cut(backend)
    }
    expect(await end).toBeUndefined()
    expect(one.backends.map(({ requests: sent }) => sent.length)).toEqual([1, 1, 1, 0])
    expect(one.seen).toMatchObject({ text: 'One', end: 'error' })
    expect(one.outcome).toMatchObject({ charged: 1, errorCode: 'upstream_broken' })
    // The last one is recorded as one that answered and broke off.
    expect(one.attempts).toEqual([
      ['b0', 'server_error'],
      ['b1', 'reset'],
      ['b2', 'answered', 'verified'],
    ])
    expect(one.gateway.line).toMatchObject({ failed: ['b0', 'b1', 'b2'] })
  })

  test('that no other backend answers has the usage of what the client got, and ends as without it', async () => {
    const one = new RescueCase()
    const { end } = await one.breakOff('One two three four five')
    one.backends[1]!.head(503)
    one.backends[1]!.end()
    expect(await end).toBeUndefined()
    expect(one.seen).toMatchObject({ text: 'One two three four five', end: 'error' })
    expect(one.outcome.usage!.outputTokens).toBeGreaterThan(4)
    expect(one.outcome).toMatchObject({ charged: 1, errorCode: 'upstream_broken' })
    expect(one.attempts).toEqual([
      ['b0', 'reset'],
      ['b1', 'server_error'],
    ])
  })

  test.each(['record_unavailable', 'auth_unavailable', 'content_rejected'] as const)(
    'that ends with %s ends the stream as without it, because what the client has is counted',
    async (code) => {
      for (const client of formats) {
        const one = new RescueCase({ client })
        const { end } = await one.start()
        one.backends[0]!.head()
        await one.send(0, [say('One two')])
        // The key and the budgets are checked before each call.
        if (code !== 'content_rejected')
          one.gateway.recheck = () => {
            throw new ServiceError(code, { retryAfterSeconds: 1 })
          }
        await one.cut(0)
        if (code === 'content_rejected') {
          one.backends[1]!.head(422, 'application/json')
          one.backends[1]!.send('{"error":{"message":"Bad."}}')
          one.backends[1]!.end()
        }
        expect(await end).toBeUndefined()
        expect(one.seen).toMatchObject({ text: 'One two', end: 'error' })
        expect(one.gateway.sink.text).toContain('upstream_broken')
        expect(one.outcome).toMatchObject({ charged: 1, errorCode: 'upstream_broken' })
        expect(one.gateway.clock.waiting).toBe(0)
      }
    },
  )

  test('goes to another failure domain first', async () => {
    const one = new RescueCase({ providers: ['openai-chat', 'openai-chat', 'openai-chat'] })
    Object.assign(one.backends[1]!, { failureDomain: 'b0' })
    const { end } = await one.breakOff('One')
    await one.answer(2, [say('One two'), stop])
    await end
    expect(one.seen).toMatchObject({ text: 'One two', end: 'whole' })
  })

  test('follows the faster one of two calls, too', async () => {
    const chat = 'openai-chat'
    const one = new RescueCase({ providers: [chat, chat, chat, chat], routing: { hedge: true, rescue: 'verified' } })
    for (let learned = 0; learned < 30; learned += 1) {
      const { end } = await one.start()
      await one.gateway.clock.advance(200)
      await one.answer(0, [say('Hi'), stop])
      await end
    }
    one.gateway.sink.text = ''
    one.gateway.settled.length = 0
    const { end } = await one.start()
    await one.gateway.clock.advance(900)
    expect(one.backends[1]!.requests.length).toBe(1)
    one.backends[1]!.head()
    await one.send(1, [say('One')])
    await one.cut(1)
    await one.answer(2, [say('One two'), stop])
    expect(await end).toBeUndefined()
    expect(one.seen).toMatchObject({ text: 'One two', end: 'whole' })
    expect(one.attempts).toEqual([
      ['b0', 'cancelled'],
      ['b1', 'reset'],
      ['b2', 'answered', 'verified'],
    ])
  })

  test('keeps the stream alive while it waits, and while it holds text back', async () => {
    for (const client of formats) {
      const one = new RescueCase({ client })
      const { clock, sink } = one.gateway
      const { end } = await one.breakOff('One two')
      const alive = async (): Promise<boolean> => {
        const { length } = sink.text
        await clock.advance(6_000)
        return sink.text.length > length
      }
      expect([await alive(), await alive(), await alive(), await alive()]).toEqual([false, true, false, true])
      one.backends[1]!.head()
      for (const piece of ['O', 'n', 'e']) {
        await one.send(1, [say(piece)])
        await clock.advance(6_000)
      }
      const { length } = sink.text
      await one.send(1, [say(' ')])
      await clock.advance(6_000)
      expect(sink.text.length).toBeGreaterThan(length)
      await one.answer(1, [say('two three'), stop])
      await end
      expect(one.seen).toMatchObject({ text: 'One two three', end: 'whole' })
    }
  })

  test('ends with the request when the client disconnects, and at the time limit', async () => {
    for (const [stopIt, errorCode] of [
      [(one: RescueCase) => one.gateway.sink.disconnect(), 'client_closed'],
      [(one: RescueCase) => one.gateway.clock.advance(60_000), 'upstream_timeout'],
    ] as const) {
      const one = new RescueCase()
      one.timeoutMs = 50_000
      const { end } = await one.breakOff('One')
      await stopIt(one)
      expect(await end).toBeUndefined()
      expect(one.outcome).toMatchObject({ charged: 1, errorCode })
      expect(one.gateway.clock.waiting).toBe(0)
    }
  })

  test('continues a stream that had to start before its first backend answered', async () => {
    for (const client of formats) {
      const one = new RescueCase({ client, providers: [client, client] })
      const { end } = await one.start()
      await one.gateway.clock.advance(11_000)
      one.backends[0]!.head()
      await one.send(0, [say('One')])
      await one.cut(0)
      await one.answer(1, [say('One two'), stop])
      await end
      expect(one.seen).toMatchObject({ text: 'One two', end: 'whole' })
    }
  })
})
