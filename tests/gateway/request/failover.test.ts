import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { ServiceError } from '../../../src/domain/errors.ts'
import { clientFormatIds, formatIds, type ClientFormatId, type FormatId } from '../../../src/domain/format-id.ts'
import type { Json, JsonObject } from '../../../src/domain/json.ts'
import { optionalFields } from '../../../src/formats/rejections/optional-fields.ts'
import type { Backend } from '../../../src/gateway/ports.ts'
import { FakeBackend, FakeGateway } from '../fake-gateway.ts'
import { settled } from '../manual-clock.ts'

const messages = [{ role: 'user', content: 'Hi' }]
const withPicture = [
  {
    role: 'user',
    content: [
      { type: 'text', text: 'What is this?' },
      { type: 'image_url', image_url: { url: 'data:image/png;base64,iVBORw0KGgo=' } },
    ],
  },
]
const answer = JSON.stringify({
  id: 'c',
  model: 'm',
  choices: [{ index: 0, message: { role: 'assistant', content: 'Hello' }, finish_reason: 'stop' }],
})
const noVision = { code: 500, message: 'image input is not supported - hint: provide the mmproj', type: 'server_error' }
const noThinking = { message: '"tiny" does not support thinking', type: 'invalid_request_error' }
const unsupported = (param: string): object => ({ message: 'x', param, code: 'unsupported_parameter' })
const tooLong = { message: "This model's maximum context length is 4096 tokens.", type: 'BadRequestError', code: 400 }

/** Answers every request of a fake gateway as its backends do, one after the other. */
class Course {
  readonly gateway: FakeGateway
  /** Which backend was asked, at which of its endpoints, with what. */
  readonly asked: { readonly id: string; readonly format: FormatId; readonly body: JsonObject }[] = []

  constructor(formats: readonly FormatId[], facts: readonly Partial<Backend>[] = []) {
    this.gateway = new FakeGateway(formats)
    for (const [place, given] of facts.entries()) Object.assign(this.gateway.backends[place]!, given)
  }

  /** `script` says how each attempt ends: a status and an error, or an answer. */
  async ask(
    body: JsonObject,
    script: readonly (readonly [number, object] | 'answers')[],
    format: ClientFormatId = 'openai-chat',
  ) {
    const end = this.gateway.answer(format, { messages, ...body }).then(
      () => undefined,
      (error: unknown) => error,
    )
    for (const step of script) {
      await settled()
      const backend = this.#current()
      if (step === 'answers') {
        backend.head(200, 'application/json')
        backend.say(answer)
      } else {
        backend.head(step[0], 'application/json')
        backend.say(JSON.stringify({ error: step[1] }))
      }
      backend.end()
    }
    const error = await end
    if (error !== undefined && !(error instanceof ServiceError)) throw error
    return error
  }

  /** The endpoint that has been asked since the last look. */
  #current(): FakeBackend {
    const all = this.gateway.backends.flatMap((backend) => [
      backend,
      ...(((backend as Backend).otherEndpoints ?? []) as readonly FakeBackend[]),
    ])
    const counted = this.asked.length
    if (all.reduce((sum, { requests }) => sum + requests.length, 0) !== counted + 1) throw new Error('nobody was asked')
    const backend = all.find((one) => one.requests.length > this.#seen(one))!
    const { body } = backend.requests.at(-1)!
    this.asked.push({
      id: backend.id,
      format: backend.format,
      body: JSON.parse(Buffer.from(body).toString()) as JsonObject,
    })
    return backend
  }

  #seen({ id, format }: FakeBackend): number {
    return this.asked.filter((one) => one.id === id && one.format === format).length
  }

  get ids(): string[] {
    return this.asked.map(({ id }) => id)
  }
}

describe('an optional field that a backend refuses', () => {
  const effort = { reasoning_effort: 'high' }

  test.each([
    ['relayed', 'openai-chat', 'openai-chat', effort, 'reasoning_effort'],
    [
      'translated from messages',
      'anthropic-messages',
      'openai-chat',
      { max_tokens: 2_000, thinking: { type: 'enabled', budget_tokens: 1_024 } },
      'reasoning_effort',
    ],
    [
      'translated from responses',
      'openai-responses',
      'openai-chat',
      { input: 'Hi', reasoning: { effort: 'high' } },
      'reasoning_effort',
    ],
  ] as const)('is left out once, then at once (%s)', async (_, format, spoken, body, field) => {
    const course = new Course([spoken])
    expect(await course.ask(body, [[400, noThinking], 'answers'], format)).toBeUndefined()
    expect(course.asked.map((one) => field in one.body)).toEqual([true, false])
    expect(await course.ask(body, ['answers'], format)).toBeUndefined()
    expect(field in course.asked[2]!.body).toBe(false)
    const [first] = course.gateway.settled
    expect(first!.outcome.attempts.map(({ outcome }) => outcome)).toEqual(['rejected_content', 'answered'])
    expect(course.gateway.sink.head?.retryCount).toBe(0)
  })

  test('is asked for again when the lesson has ended', async () => {
    const course = new Course(['openai-chat'])
    await course.ask(effort, [[400, noThinking], 'answers'])
    await course.gateway.clock.advance(16 * 60_000)
    await course.ask(effort, ['answers'])
    expect('reasoning_effort' in course.asked[2]!.body).toBe(true)
  })

  test('teaches nothing where only its value was refused, or where it was not the reason', async () => {
    const course = new Course(['openai-chat'])
    const value = { message: 'x', param: 'temperature', code: 'unsupported_value', type: 'invalid_request_error' }
    await course.ask({ temperature: 0.5 }, [[400, value], 'answers'])
    await course.ask({ temperature: 1 }, ['answers'])
    expect(course.asked[2]!.body['temperature']).toBe(1)
    const refused = await course.ask(effort, [
      [400, noThinking],
      [400, { message: 'something else', type: 'invalid_request_error' }],
    ])
    expect(refused?.code).toBe('content_rejected')
    await course.ask(effort, ['answers'])
    expect('reasoning_effort' in course.asked.at(-1)!.body).toBe(true)
  })

  test('is left out together with the others that the same refusal names, with one retry', async () => {
    const course = new Course(['openai-chat'])
    const all = { temperature: 0.5, top_p: 0.5, seed: 1, user: 'u' }
    const message = "This server does not support parameters: ['temperature', 'top_p', 'seed']"
    expect(await course.ask(all, [[400, { message, type: 'invalid_request_error' }], 'answers'])).toBeUndefined()
    expect(await course.ask(all, ['answers'])).toBeUndefined()
    const left = course.asked.map(({ body }) => Object.keys(all).filter((field) => field in body))
    expect(left).toEqual([Object.keys(all), ['user'], ['user']])
  })

  test('is left out also where each refusal names one more, and all are learned', async () => {
    const course = new Course(['openai-chat'])
    const all = { temperature: 0.5, top_p: 0.5, seed: 1, user: 'u' }
    const script = ['temperature', 'top_p', 'seed'].map((param) => [400, unsupported(param)] as const)
    expect(await course.ask(all, [...script, 'answers'])).toBeUndefined()
    expect(await course.ask(all, ['answers'])).toBeUndefined()
    const left = course.asked.map(({ body }) => Object.keys(all).filter((field) => field in body).length)
    expect(left).toEqual([4, 3, 2, 1, 1])
  })

  test('is retried at most 3 times, and not for a field that is gone already; then nothing is learned', async () => {
    const course = new Course(['openai-chat'])
    const all = { temperature: 0.5, top_p: 0.5, seed: 1, user: 'u' }
    const script = Object.keys(all).map((param) => [400, unsupported(param)] as const)
    expect((await course.ask(all, script))?.code).toBe('content_rejected')
    const twice = [400, unsupported('temperature')] as const
    expect((await course.ask(all, [twice, twice]))?.code).toBe('content_rejected')
    await course.ask(all, ['answers'])
    expect(course.asked.at(-1)!.body).toMatchObject(all)
  })

  test.each([
    ['relayed', 'max_tokens', { max_tokens: 50 }, 'openai-chat'],
    ['relayed', 'max_completion_tokens', { max_completion_tokens: 50 }, 'openai-chat'],
    ['translated', 'max_tokens', { max_tokens: 50 }, 'anthropic-messages'],
    ['translated', 'max_tokens', { input: 'Hi', max_output_tokens: 50 }, 'openai-responses'],
  ] as const)('keeps the length limit under its other name (%s %s)', async (_, refused, body, format) => {
    const course = new Course(['openai-chat'])
    const other = refused === 'max_tokens' ? 'max_completion_tokens' : 'max_tokens'
    expect(await course.ask(body, [[400, unsupported(refused)], 'answers'], format)).toBeUndefined()
    expect(await course.ask(body, ['answers'], format)).toBeUndefined()
    const names = course.asked.map((one) => [one.body[refused], one.body[other]])
    expect(names).toEqual([
      [50, undefined],
      [undefined, 50],
      [undefined, 50],
    ])
    await course.gateway.clock.advance(16 * 60_000)
    await course.ask(body, ['answers'], format)
    expect(course.asked.at(-1)!.body[refused]).toBe(50)
  })

  test('never loses the length limit where both names are refused, and names no field that was not sent', async () => {
    const course = new Course(['openai-chat'])
    const script = ['max_tokens', 'max_completion_tokens'].map((param) => [400, unsupported(param)] as const)
    const error = await course.ask({ input: 'Hi', max_output_tokens: 50 }, script, 'openai-responses')
    expect(error?.code).toBe('content_rejected')
    expect(error?.facts.param).toBeUndefined()
    expect(course.asked.map(({ body }) => body['max_tokens'] ?? body['max_completion_tokens'])).toEqual([50, 50])
  })

  test('is never one that the answer depends on', async () => {
    const course = new Course(['openai-chat'])
    const body = { response_format: { type: 'json_object' }, stop: ['x'] }
    for (const param of [...Object.keys(body), 'messages', 'tools']) {
      expect(Object.hasOwn(optionalFields, param)).toBe(false)
      const error = { message: 'x', param, code: 'unsupported_parameter', type: 'invalid_request_error' }
      expect((await course.ask(body, [[400, error]]))?.code).toBe('content_rejected')
    }
  })
})

describe('what a backend cannot do', () => {
  test('is asked of the next one, and never held against it', async () => {
    const course = new Course(['openai-chat', 'openai-chat'])
    for (let round = 0; round < 8; round += 1) {
      const script = round === 0 ? ([[500, noVision], 'answers'] as const) : (['answers'] as const)
      expect(await course.ask({ messages: withPicture }, script)).toBeUndefined()
    }
    // Text still goes to the first.
    await course.ask({}, ['answers'])
    expect(course.ids).toEqual(['b0', ...Array.from({ length: 8 }, () => 'b1'), 'b0'])
  })

  test('is refused with its name where no backend can, and asked again next time', async () => {
    const course = new Course(['openai-chat'])
    for (let round = 0; round < 8; round += 1) {
      const error = await course.ask({ messages: withPicture }, [[500, noVision]])
      expect(error).toMatchObject({ code: 'unsupported_parameter', facts: { param: 'messages' } })
      expect(error!.facts.words?.['problem']).toContain('reads images')
    }
    expect(await course.ask({}, ['answers'])).toBeUndefined()
  })

  test('is not refused for good while a backend that may be able is in trouble', async () => {
    const course = new Course(['openai-chat', 'openai-chat'])
    const error = await course.ask({ messages: withPicture }, [
      [503, { message: 'x' }],
      [500, noVision],
    ])
    expect(error?.code).toBe('server_is_overloaded')
  })

  test('is believed only of a request that needs it', async () => {
    const course = new Course(['openai-chat', 'openai-chat'])
    expect((await course.ask({}, [[400, { message: 'text does not support image' }]]))?.code).toBe('content_rejected')
    await course.ask({ messages: withPicture }, ['answers'])
    expect(course.ids).toEqual(['b0', 'b0'])
  })

  test('if it is declared, is never asked', async () => {
    const blind = { capabilities: { image_input: false } }
    const course = new Course(['openai-chat', 'openai-chat'], [blind])
    await course.ask({ messages: withPicture }, ['answers'])
    await course.ask({}, ['answers'])
    expect(course.ids).toEqual(['b1', 'b0'])
    const both = new Course(['openai-chat', 'openai-chat'], [blind, blind])
    expect((await both.ask({ messages: withPicture }, []))?.code).toBe('unsupported_parameter')
    expect(both.asked).toEqual([])
    expect(both.gateway.admitted).toBe(0)
  })
})

describe('a context that is too long', () => {
  test('is asked of backends whose window is larger or unknown', async () => {
    const course = new Course(['openai-chat', 'openai-chat', 'openai-chat'], [{}, { contextWindow: 4_096 }, {}])
    expect(await course.ask({}, [[400, tooLong], 'answers'])).toBeUndefined()
    expect(course.ids).toEqual(['b0', 'b2'])
  })

  test('goes first to a window that is large enough', async () => {
    const course = new Course(['openai-chat', 'openai-chat'], [{ contextWindow: 50 }])
    const long = [{ role: 'user', content: 'word '.repeat(500) }]
    await course.ask({ messages: long }, ['answers'])
    await course.ask({}, ['answers'])
    expect(course.ids).toEqual(['b1', 'b0'])
  })

  test('is said where all refused it', async () => {
    const course = new Course(['openai-chat', 'openai-chat'])
    const error = await course.ask({}, [
      [400, tooLong],
      [400, tooLong],
    ])
    expect(error?.code).toBe('context_length_exceeded')
  })
})

test('a model that nobody knows is the configuration’s fault: others are asked, and the operator is told', async () => {
  const course = new Course(['openai-chat', 'openai-chat'])
  const unknown = { message: 'Invalid model name passed in model=x', type: 'invalid_request_error', code: '400' }
  expect(await course.ask({}, [[400, unknown], 'answers'])).toBeUndefined()
  expect(course.gateway.events).toContainEqual({ event: 'upstream_not_found', requestId: 'req_1', backend: 'b0' })
  const alone = new Course(['openai-chat'])
  expect((await alone.ask({}, [[400, unknown]]))?.code).toBe('upstream_misconfigured')
})

describe('a backend with several endpoints', () => {
  const open = () => {
    const course = new Course(['openai-responses'])
    Object.assign(course.gateway.backends[0]!, { otherEndpoints: [new FakeBackend('b0', 'openai-chat')] })
    return course
  }

  test.each<[string, JsonObject]>([
    ['stop', { stop: ['END'] }],
    ['n', { n: 2 }],
    ['functions', { functions: [{ name: 'f', parameters: {} }] }],
    ['audio', { modalities: ['text', 'audio'], audio: { voice: 'alloy', format: 'wav' } }],
    ['nothing special', {}],
  ])('is asked in the caller’s own format: %s', async (_, body) => {
    const course = open()
    expect(await course.ask(body, ['answers'])).toBeUndefined()
    expect(course.asked).toMatchObject([{ id: 'b0', format: 'openai-chat', body }])
  })

  test('uses the endpoint that can say what the preferred one cannot', async () => {
    const course = open()
    await course.ask({ max_tokens: 10, stop_sequences: ['END'] }, ['answers'], 'anthropic-messages')
    expect(course.asked).toMatchObject([{ format: 'openai-chat', body: { stop: ['END'] } }])
  })

  test('uses the other one where one is not there, and remembers that', async () => {
    const course = new Course(['openai-chat'])
    Object.assign(course.gateway.backends[0]!, { otherEndpoints: [new FakeBackend('b0', 'openai-responses')] })
    const body = { input: 'Hi' }
    await course.ask(body, [[404, {}], 'answers'], 'openai-responses')
    await course.ask(body, ['answers'], 'openai-responses')
    expect(course.asked.map(({ format }) => format)).toEqual(['openai-responses', 'openai-chat', 'openai-chat'])
  })
})

const facts = fc.record({
  image_input: fc.constantFrom(undefined, true, false),
  tools: fc.constantFrom(undefined, true, false),
  structured_outputs: fc.constantFrom(undefined, false),
})

test('nobody is asked for what it is declared not to do, and everybody else before the caller is refused', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.record({ capabilities: facts, format: fc.constantFrom(...formatIds) }), {
        minLength: 1,
        maxLength: 3,
      }),
      fc.record({ images: fc.boolean(), tools: fc.boolean(), schema: fc.boolean() }),
      fc.constantFrom(...clientFormatIds.slice(0, 1)),
      async (given, needs, format) => {
        const course = new Course(
          given.map((one) => one.format),
          given.map(({ capabilities }) => ({ capabilities }) as Partial<Backend>),
        )
        const body: Record<string, Json> = { messages: needs.images ? withPicture : messages }
        if (needs.tools) body['tools'] = [{ type: 'function', function: { name: 'f', parameters: {} } }]
        if (needs.schema)
          body['response_format'] = { type: 'json_schema', json_schema: { name: 's', schema: { type: 'object' } } }
        const able = given.flatMap(({ capabilities }, place) => {
          const lacks =
            (needs.images && capabilities.image_input === false) ||
            (needs.tools && capabilities.tools === false) ||
            (needs.schema && capabilities.structured_outputs === false)
          return lacks ? [] : [`b${place}`]
        })
        const trouble = able.map(() => [503, { message: 'x' }] as const)
        const error = await course.ask(body, trouble, format)
        expect(course.ids).toEqual(able)
        expect(error?.code).toBe(able.length === 0 ? 'unsupported_parameter' : 'server_is_overloaded')
      },
    ),
    { numRuns: 150 },
  )
})

test('the output of a tool without its call is refused by every backend that the vendor’s rule holds for', async () => {
  const course = new Course(['openai-responses'])
  const body = { messages: [...messages, { role: 'tool', tool_call_id: 'x', content: 'y' }] }
  const error = await course.ask(body, [])
  expect(error).toMatchObject({ code: 'invalid_request', facts: { param: 'messages' } })
})

describe('a plain 500', () => {
  const ask = (gateway: FakeGateway): Promise<void> =>
    gateway.answer('openai-chat', { messages: [{ role: 'user', content: 'Hi' }] })

  test('of a backend that answered well is asked once more, and then the next backend', async () => {
    const gateway = new FakeGateway(['openai-chat', 'openai-chat'])
    const answered = ask(gateway)
    for (const [index, asked] of [
      [0, [1, 0]],
      [0, [2, 0]],
      [1, [2, 1]],
    ] as const) {
      await settled()
      expect(gateway.backends.map(({ requests }) => requests.length)).toEqual(asked)
      gateway.backends[index]!.head(index === 0 ? 500 : 200, 'application/json')
      if (index === 1)
        gateway.backends[1]!.say('{"choices":[{"index":0,"message":{"content":"Hello"},"finish_reason":"stop"}]}')
      gateway.backends[index]!.end()
    }
    await answered
    // The backend has failed twice in a row: it is not asked twice again.
    const next = ask(gateway)
    await settled()
    gateway.backends[0]!.head(500)
    gateway.backends[0]!.end()
    await settled()
    expect(gateway.backends.map(({ requests }) => requests.length)).toEqual([3, 2])
    gateway.backends[1]!.head(503)
    gateway.backends[1]!.end()
    await expect(next).rejects.toMatchObject({ code: 'server_is_overloaded' })
  })
})
