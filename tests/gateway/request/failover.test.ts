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

/** A fake gateway whose backends answer by a script, one after another. */
class ScriptedRun {
  readonly gateway: FakeGateway
  /** Each request to a backend: its ID, its endpoint's format, and the body. */
  readonly asked: { readonly id: string; readonly format: FormatId; readonly body: JsonObject }[] = []

  constructor(formats: readonly FormatId[], facts: readonly Partial<Backend>[] = []) {
    this.gateway = new FakeGateway(formats)
    for (const [index, given] of facts.entries()) Object.assign(this.gateway.backends[index]!, given)
  }

  /** `script` lists how each attempt ends: with a status and an error, or with an answer. */
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
        backend.send(answer)
      } else {
        backend.head(step[0], 'application/json')
        backend.send(JSON.stringify({ error: step[1] }))
      }
      backend.end()
    }
    const error = await end
    if (error !== undefined && !(error instanceof ServiceError)) throw error
    return error
  }

  /** The endpoint that was asked since the last call of this method. */
  #current(): FakeBackend {
    const all = this.gateway.backends.flatMap((backend) => [
      backend,
      ...(((backend as Backend).otherEndpoints ?? []) as readonly FakeBackend[]),
    ])
    const counted = this.asked.length
    if (all.reduce((sum, { requests }) => sum + requests.length, 0) !== counted + 1)
      throw new Error('no backend was asked')
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

describe('an optional field that a backend rejects', () => {
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
  ] as const)(
    'it is removed and the request retried, and later requests omit it (%s)',
    async (_, format, backendFormat, body, field) => {
      const scripted = new ScriptedRun([backendFormat])
      expect(await scripted.ask(body, [[400, noThinking], 'answers'], format)).toBeUndefined()
      expect(scripted.asked.map((one) => field in one.body)).toEqual([true, false])
      expect(await scripted.ask(body, ['answers'], format)).toBeUndefined()
      expect(field in scripted.asked[2]!.body).toBe(false)
      const [first] = scripted.gateway.settled
      expect(first!.outcome.attempts.map(({ outcome }) => outcome)).toEqual(['rejected_content', 'answered'])
      expect(scripted.gateway.sink.head?.retryCount).toBe(0)
    },
  )

  const marked = (): ScriptedRun => {
    const scripted = new ScriptedRun(['openai-chat'], [{ model: 'gpt-5.6' }])
    const [backend] = scripted.gateway.backends
    Object.assign(backend!, { dialect: { ...backend!.dialect, cacheMarks: 'prompt_cache_breakpoint' } })
    return scripted
  }
  const later = [...messages, { role: 'assistant', content: 'Yes?' }, ...messages]
  const agent = {
    messages: [{ role: 'system', content: 'You are an agent.' }, ...later],
    tools: [{ type: 'function', function: { name: 'look', parameters: { type: 'object' } } }],
  }
  const marksIn = ({ asked }: ScriptedRun) => asked.map(({ body }) => JSON.stringify(body).includes('breakpoint'))

  test.each([
    ['relayed', 'openai-chat', agent],
    [
      'translated',
      'anthropic-messages',
      {
        system: 'You are an agent.',
        messages: later,
        max_tokens: 10,
        tools: [{ name: 'look', input_schema: { type: 'object' } }],
      },
    ],
  ] as const)('may be a mark inside the content: added ones are removed (%s)', async (_, format, body) => {
    const scripted = marked()
    const unknown = {
      message: "Unknown parameter: 'messages[0].content[0].prompt_cache_breakpoint'.",
      param: 'messages[0].content[0].prompt_cache_breakpoint',
      code: 'unknown_parameter',
    }
    expect(await scripted.ask(body, [[400, unknown], 'answers'], format)).toBeUndefined()
    expect(await scripted.ask(body, ['answers'], format)).toBeUndefined()
    expect(marksIn(scripted)).toEqual([true, false, false])
  })

  test('may be a mark in the wrong place: the request is retried without added ones, and later ones have them', async () => {
    const scripted = marked()
    const misplaced = { message: 'prompt_cache_breakpoint cannot be set here.', type: 'invalid_request_error' }
    expect(await scripted.ask(agent, [[400, misplaced], 'answers'])).toBeUndefined()
    expect(await scripted.ask(agent, ['answers'])).toBeUndefined()
    expect(marksIn(scripted)).toEqual([true, false, true])
  })

  test('it is sent again after the learned limit expires', async () => {
    const scripted = new ScriptedRun(['openai-chat'])
    await scripted.ask(effort, [[400, noThinking], 'answers'])
    await scripted.gateway.clock.advance(16 * 60_000)
    await scripted.ask(effort, ['answers'])
    expect('reasoning_effort' in scripted.asked[2]!.body).toBe(true)
  })

  test('nothing is learned if only its value was rejected, or if the retry fails too', async () => {
    const scripted = new ScriptedRun(['openai-chat'])
    const value = { message: 'x', param: 'temperature', code: 'unsupported_value', type: 'invalid_request_error' }
    await scripted.ask({ temperature: 0.5 }, [[400, value], 'answers'])
    await scripted.ask({ temperature: 1 }, ['answers'])
    expect(scripted.asked[2]!.body['temperature']).toBe(1)
    const refused = await scripted.ask(effort, [
      [400, noThinking],
      [400, { message: 'something else', type: 'invalid_request_error' }],
    ])
    expect(refused?.code).toBe('content_rejected')
    await scripted.ask(effort, ['answers'])
    expect('reasoning_effort' in scripted.asked.at(-1)!.body).toBe(true)
  })

  test('all fields that one rejection names are removed in one retry', async () => {
    const scripted = new ScriptedRun(['openai-chat'])
    const all = { temperature: 0.5, top_p: 0.5, seed: 1, user: 'u' }
    const message = "This server does not support parameters: ['temperature', 'top_p', 'seed']"
    expect(await scripted.ask(all, [[400, { message, type: 'invalid_request_error' }], 'answers'])).toBeUndefined()
    expect(await scripted.ask(all, ['answers'])).toBeUndefined()
    const left = scripted.asked.map(({ body }) => Object.keys(all).filter((field) => field in body))
    expect(left).toEqual([Object.keys(all), ['user'], ['user']])
  })

  test('if each rejection names another field, all are removed and learned', async () => {
    const scripted = new ScriptedRun(['openai-chat'])
    const all = { temperature: 0.5, top_p: 0.5, seed: 1, user: 'u' }
    const script = ['temperature', 'top_p', 'seed'].map((param) => [400, unsupported(param)] as const)
    expect(await scripted.ask(all, [...script, 'answers'])).toBeUndefined()
    expect(await scripted.ask(all, ['answers'])).toBeUndefined()
    const left = scripted.asked.map(({ body }) => Object.keys(all).filter((field) => field in body).length)
    expect(left).toEqual([4, 3, 2, 1, 1])
  })

  test('there are at most 3 retries, and none for a field that was already removed; then nothing is learned', async () => {
    const scripted = new ScriptedRun(['openai-chat'])
    const all = { temperature: 0.5, top_p: 0.5, seed: 1, user: 'u' }
    const script = Object.keys(all).map((param) => [400, unsupported(param)] as const)
    expect((await scripted.ask(all, script))?.code).toBe('content_rejected')
    const twice = [400, unsupported('temperature')] as const
    expect((await scripted.ask(all, [twice, twice]))?.code).toBe('content_rejected')
    await scripted.ask(all, ['answers'])
    expect(scripted.asked.at(-1)!.body).toMatchObject(all)
  })

  test.each([
    ['relayed', 'max_tokens', { max_tokens: 50 }, 'openai-chat'],
    ['relayed', 'max_completion_tokens', { max_completion_tokens: 50 }, 'openai-chat'],
    ['translated', 'max_tokens', { max_tokens: 50 }, 'anthropic-messages'],
    ['translated', 'max_tokens', { input: 'Hi', max_output_tokens: 50 }, 'openai-responses'],
  ] as const)('the length limit is sent under its other name (%s %s)', async (_, refused, body, format) => {
    const scripted = new ScriptedRun(['openai-chat'])
    const other = refused === 'max_tokens' ? 'max_completion_tokens' : 'max_tokens'
    expect(await scripted.ask(body, [[400, unsupported(refused)], 'answers'], format)).toBeUndefined()
    expect(await scripted.ask(body, ['answers'], format)).toBeUndefined()
    const names = scripted.asked.map((one) => [one.body[refused], one.body[other]])
    expect(names).toEqual([
      [50, undefined],
      [undefined, 50],
      [undefined, 50],
    ])
    await scripted.gateway.clock.advance(16 * 60_000)
    await scripted.ask(body, ['answers'], format)
    expect(scripted.asked.at(-1)!.body[refused]).toBe(50)
  })

  test('the length limit is never dropped, even if both names are rejected, and the error names no field that was not sent', async () => {
    const scripted = new ScriptedRun(['openai-chat'])
    const script = ['max_tokens', 'max_completion_tokens'].map((param) => [400, unsupported(param)] as const)
    const error = await scripted.ask({ input: 'Hi', max_output_tokens: 50 }, script, 'openai-responses')
    expect(error?.code).toBe('content_rejected')
    expect(error?.facts.param).toBeUndefined()
    expect(scripted.asked.map(({ body }) => body['max_tokens'] ?? body['max_completion_tokens'])).toEqual([50, 50])
  })

  test('a field that the answer depends on is never removed', async () => {
    const scripted = new ScriptedRun(['openai-chat'])
    const body = { response_format: { type: 'json_object' }, stop: ['x'] }
    for (const param of [...Object.keys(body), 'messages', 'tools']) {
      expect(Object.hasOwn(optionalFields, param)).toBe(false)
      const error = { message: 'x', param, code: 'unsupported_parameter', type: 'invalid_request_error' }
      expect((await scripted.ask(body, [[400, error]]))?.code).toBe('content_rejected')
    }
  })
})

describe('a missing capability of a backend', () => {
  test('the next backend is asked, and the breaker does not count it', async () => {
    const scripted = new ScriptedRun(['openai-chat', 'openai-chat'])
    for (let round = 0; round < 8; round += 1) {
      const script = round === 0 ? ([[500, noVision], 'answers'] as const) : (['answers'] as const)
      expect(await scripted.ask({ messages: withPicture }, script)).toBeUndefined()
    }
    // Text still goes to the first backend.
    await scripted.ask({}, ['answers'])
    expect(scripted.ids).toEqual(['b0', ...Array.from({ length: 8 }, () => 'b1'), 'b0'])
  })

  test('if no backend has it, the error names it, and the next request tries again', async () => {
    const scripted = new ScriptedRun(['openai-chat'])
    for (let round = 0; round < 8; round += 1) {
      const error = await scripted.ask({ messages: withPicture }, [[500, noVision]])
      expect(error).toMatchObject({ code: 'unsupported_parameter', facts: { param: 'messages' } })
      expect(error!.facts.words?.['problem']).toContain('accepts images')
    }
    expect(await scripted.ask({}, ['answers'])).toBeUndefined()
  })

  test('the request is not rejected while a backend that may have it is failing', async () => {
    const scripted = new ScriptedRun(['openai-chat', 'openai-chat'])
    const error = await scripted.ask({ messages: withPicture }, [
      [503, { message: 'x' }],
      [500, noVision],
    ])
    expect(error?.code).toBe('server_is_overloaded')
  })

  test('it is learned only from a request that needs it', async () => {
    const scripted = new ScriptedRun(['openai-chat', 'openai-chat'])
    expect((await scripted.ask({}, [[400, { message: 'text does not support image' }]]))?.code).toBe('content_rejected')
    await scripted.ask({ messages: withPicture }, ['answers'])
    expect(scripted.ids).toEqual(['b0', 'b0'])
  })

  test('a backend that declares it missing is not asked', async () => {
    const blind = { capabilities: { image_input: false } }
    const scripted = new ScriptedRun(['openai-chat', 'openai-chat'], [blind])
    await scripted.ask({ messages: withPicture }, ['answers'])
    await scripted.ask({}, ['answers'])
    expect(scripted.ids).toEqual(['b1', 'b0'])
    const both = new ScriptedRun(['openai-chat', 'openai-chat'], [blind, blind])
    expect((await both.ask({ messages: withPicture }, []))?.code).toBe('unsupported_parameter')
    expect(both.asked).toEqual([])
    expect(both.gateway.admitted).toBe(0)
  })
})

test('a request that only a failing backend can express is not rejected as unsupported', async () => {
  const formats = ['openai-chat', 'openai-responses'] as const
  for (const order of [formats, formats.toReversed()]) {
    const scripted = new ScriptedRun(order)
    // The Responses format has no stop sequences.
    const error = await scripted.ask({ stop: ['END'] }, [[503, { message: 'x' }]])
    expect([order, error?.code]).toEqual([order, 'server_is_overloaded'])
  }
})

describe('a request that exceeds the context window', () => {
  test('backends with a larger or unknown window are asked next', async () => {
    const scripted = new ScriptedRun(['openai-chat', 'openai-chat', 'openai-chat'], [{}, { contextWindow: 4_096 }, {}])
    expect(await scripted.ask({}, [[400, tooLong], 'answers'])).toBeUndefined()
    expect(scripted.ids).toEqual(['b0', 'b2'])
  })

  test('a backend with a large enough window is asked first', async () => {
    const scripted = new ScriptedRun(['openai-chat', 'openai-chat'], [{ contextWindow: 50 }])
    const long = [{ role: 'user', content: 'word '.repeat(500) }]
    await scripted.ask({ messages: long }, ['answers'])
    await scripted.ask({}, ['answers'])
    expect(scripted.ids).toEqual(['b1', 'b0'])
  })

  test('if all reject it, the error is context_length_exceeded', async () => {
    const scripted = new ScriptedRun(['openai-chat', 'openai-chat'])
    const error = await scripted.ask({}, [
      [400, tooLong],
      [400, tooLong],
    ])
    expect(error?.code).toBe('context_length_exceeded')
  })
})

test('an unknown model is a configuration error: the next backend is asked, and the operator gets a log event', async () => {
  const scripted = new ScriptedRun(['openai-chat', 'openai-chat'])
  const unknown = { message: 'Invalid model name passed in model=x', type: 'invalid_request_error', code: '400' }
  expect(await scripted.ask({}, [[400, unknown], 'answers'])).toBeUndefined()
  expect(scripted.gateway.events).toContainEqual({ event: 'upstream_not_found', requestId: 'req_1', backend: 'b0' })
  const alone = new ScriptedRun(['openai-chat'])
  expect((await alone.ask({}, [[400, unknown]]))?.code).toBe('upstream_misconfigured')
})

describe('a backend with several endpoints', () => {
  const open = () => {
    const scripted = new ScriptedRun(['openai-responses'])
    Object.assign(scripted.gateway.backends[0]!, { otherEndpoints: [new FakeBackend('b0', 'openai-chat')] })
    return scripted
  }

  test.each<[string, JsonObject]>([
    ['stop', { stop: ['END'] }],
    ['n', { n: 2 }],
    ['functions', { functions: [{ name: 'f', parameters: {} }] }],
    ['audio', { modalities: ['text', 'audio'], audio: { voice: 'alloy', format: 'wav' } }],
    ['nothing special', {}],
  ])('the endpoint in the caller’s own format is used: %s', async (_, body) => {
    const scripted = open()
    expect(await scripted.ask(body, ['answers'])).toBeUndefined()
    expect(scripted.asked).toMatchObject([{ id: 'b0', format: 'openai-chat', body }])
  })

  test('the endpoint that can express the request is used if the preferred one cannot', async () => {
    const scripted = open()
    await scripted.ask({ max_tokens: 10, stop_sequences: ['END'] }, ['answers'], 'anthropic-messages')
    expect(scripted.asked).toMatchObject([{ format: 'openai-chat', body: { stop: ['END'] } }])
  })

  test('if one endpoint does not exist, the other is used from then on', async () => {
    const scripted = new ScriptedRun(['openai-chat'])
    Object.assign(scripted.gateway.backends[0]!, { otherEndpoints: [new FakeBackend('b0', 'openai-responses')] })
    const body = { input: 'Hi' }
    await scripted.ask(body, [[404, {}], 'answers'], 'openai-responses')
    await scripted.ask(body, ['answers'], 'openai-responses')
    expect(scripted.asked.map(({ format }) => format)).toEqual(['openai-responses', 'openai-chat', 'openai-chat'])
  })
})

const facts = fc.record({
  image_input: fc.constantFrom(undefined, true, false),
  tools: fc.constantFrom(undefined, true, false),
  structured_outputs: fc.constantFrom(undefined, false),
})

test('a backend is never asked for what it declares unsupported, and all others are asked before the request fails', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.record({ capabilities: facts, format: fc.constantFrom(...formatIds) }), {
        minLength: 1,
        maxLength: 3,
      }),
      fc.record({ images: fc.boolean(), tools: fc.boolean(), schema: fc.boolean() }),
      fc.constantFrom(...clientFormatIds.slice(0, 1)),
      async (given, needs, format) => {
        const scripted = new ScriptedRun(
          given.map((one) => one.format),
          given.map(({ capabilities }) => ({ capabilities }) as Partial<Backend>),
        )
        const body: Record<string, Json> = { messages: needs.images ? withPicture : messages }
        if (needs.tools) body['tools'] = [{ type: 'function', function: { name: 'f', parameters: {} } }]
        if (needs.schema)
          body['response_format'] = { type: 'json_schema', json_schema: { name: 's', schema: { type: 'object' } } }
        const able = given.flatMap(({ capabilities }, index) => {
          const lacks =
            (needs.images && capabilities.image_input === false) ||
            (needs.tools && capabilities.tools === false) ||
            (needs.schema && capabilities.structured_outputs === false)
          return lacks ? [] : [`b${index}`]
        })
        const trouble = able.map(() => [503, { message: 'x' }] as const)
        const error = await scripted.ask(body, trouble, format)
        expect(scripted.ids).toEqual(able)
        expect(error?.code).toBe(able.length === 0 ? 'unsupported_parameter' : 'server_is_overloaded')
      },
    ),
    { numRuns: 150 },
  )
})

test('a tool output without its call is rejected without asking a backend whose format forbids it', async () => {
  const scripted = new ScriptedRun(['openai-responses'])
  const body = { messages: [...messages, { role: 'tool', tool_call_id: 'x', content: 'y' }] }
  const error = await scripted.ask(body, [])
  expect(error).toMatchObject({ code: 'invalid_request', facts: { param: 'messages' } })
})

describe('a plain 500', () => {
  const ask = (gateway: FakeGateway): Promise<void> =>
    gateway.answer('openai-chat', { messages: [{ role: 'user', content: 'Hi' }] })

  test('a backend that has answered before is asked once more, then the next backend', async () => {
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
        gateway.backends[1]!.send('{"choices":[{"index":0,"message":{"content":"Hello"},"finish_reason":"stop"}]}')
      gateway.backends[index]!.end()
    }
    await answered
    // The backend has failed twice in a row, so it is not asked a second time.
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
