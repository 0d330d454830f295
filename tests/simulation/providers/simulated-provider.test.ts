import { readdirSync, readFileSync } from 'node:fs'
import OpenAI from 'openai'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import type { JsonObject } from '../../../src/domain/json.ts'
import { sampleOf } from '../../../src/simulation/providers/sample.ts'
import { readScript, stepKinds } from '../../../src/simulation/providers/script.ts'
import { startSimulatedProvider } from '../../../src/simulation/providers/simulated-provider.ts'
import { openBackend, openPools, record, run, simulate, sleep, until } from '../../providers/support.ts'

const weather = {
  type: 'object',
  properties: { location: { type: 'string' }, unit: { type: 'string', enum: ['celsius', 'fahrenheit'] } },
  required: ['location', 'unit'],
  additionalProperties: false,
}
const chatTool = { type: 'function' as const, function: { name: 'get_weather', parameters: weather } }
const responsesTool = { type: 'function' as const, name: 'get_weather', parameters: weather, strict: true }

async function client(): Promise<OpenAI> {
  const provider = await simulate()
  return new OpenAI({ apiKey: 'made-up', baseURL: provider.baseUrl, maxRetries: 0 })
}

describe('chat, with the openai package', () => {
  test('a non-streaming answer says that it is simulated, echoes part of the input, and has usage', async () => {
    const { data, response } = await (
      await client()
    ).chat.completions
      .create({ model: 'model-1', messages: [{ role: 'user', content: `Hello   there ${'x'.repeat(200)}` }] })
      .withResponse()
    expect(response.headers.get('x-simulated')).toBe('true')
    expect(data.choices[0]!.message.content).toBe(
      `This is a simulated answer from alpha. You said: "Hello there ${'x'.repeat(68)}…".`,
    )
    expect(data.choices[0]!.finish_reason).toBe('stop')
    expect(data.model).toBe('model-1')
    const usage = data.usage!
    expect(usage.completion_tokens).toBe(Math.ceil(data.choices[0]!.message.content!.length / 4))
    expect(usage.total_tokens).toBe(usage.prompt_tokens + usage.completion_tokens)
  })

  test('a stream arrives word by word with the same text, and has usage only if requested', async () => {
    const openai = await client()
    const messages = [{ role: 'user' as const, content: 'Hello' }]
    const whole = await openai.chat.completions.create({ model: 'm', messages })
    for (const asked of [true, false]) {
      const stream = await openai.chat.completions.create({
        model: 'm',
        messages,
        stream: true,
        ...(asked ? { stream_options: { include_usage: true } } : {}),
      })
      let text = ''
      let chunks = 0
      let usage: unknown
      for await (const chunk of stream) {
        chunks += 1
        text += chunk.choices[0]?.delta.content ?? ''
        usage = chunk.usage ?? usage
      }
      expect(text).toBe(whole.choices[0]!.message.content)
      expect(chunks).toBeGreaterThan(9)
      expect(usage).toEqual(asked ? whole.usage : undefined)
    }
  })

  test('runTools completes a tool round trip with two parallel calls', async () => {
    const openai = await client()
    const asked: string[] = []
    const runner = openai.chat.completions.runTools({
      model: 'm',
      messages: [{ role: 'user', content: 'What is the weather in Oslo and San Francisco?' }],
      tools: [
        {
          type: 'function',
          function: {
            name: 'get_weather',
            description: 'The weather now.',
            parameters: weather,
            function: (text: string) => {
              const { location, unit } = JSON.parse(text) as { location: string; unit: string }
              asked.push(`${location} ${unit}`)
              return `12 degrees in ${location}`
            },
          },
        },
      ],
    })
    expect(await runner.finalContent()).toBe(
      'This is a simulated answer from alpha. The tool answered: "12 degrees in Oslo". The tool answered: "12 degrees in San Francisco".',
    )
    expect(asked).toEqual(['Oslo celsius', 'San Francisco celsius'])
  })

  test('the pieces of a streamed tool call form the same call', async () => {
    const stream = (await client()).chat.completions.stream({
      model: 'm',
      messages: [{ role: 'user', content: 'weather for Oslo?' }],
      tools: [chatTool],
    })
    const { choices } = await stream.finalChatCompletion()
    expect(choices[0]!.finish_reason).toBe('tool_calls')
    expect(choices[0]!.message.tool_calls).toMatchObject([
      { type: 'function', function: { name: 'get_weather', arguments: '{"location":"Oslo","unit":"celsius"}' } },
    ])
  })

  test('tool_choice and parallel_tool_calls are obeyed', async () => {
    const openai = await client()
    const ask = async (more: object, content = 'What is the weather in Oslo and Rome?'): Promise<unknown[]> => {
      const other = {
        type: 'function' as const,
        function: { name: 'save', parameters: { type: 'object', properties: { n: { type: 'integer', minimum: 3 } } } },
      }
      const answer = await openai.chat.completions.create({
        model: 'm',
        messages: [{ role: 'user', content }],
        tools: [chatTool, other],
        ...more,
      })
      return (answer.choices[0]!.message.tool_calls ?? []).map((call) =>
        call.type === 'function' ? [call.function.name, call.function.arguments] : call,
      )
    }
    expect(await ask({})).toHaveLength(2)
    expect(await ask({ parallel_tool_calls: false })).toEqual([['get_weather', '{"location":"Oslo","unit":"celsius"}']])
    expect(await ask({ tool_choice: 'none' })).toEqual([])
    expect(await ask({}, 'Hello')).toEqual([])
    expect(await ask({ tool_choice: 'required' }, 'Hello')).toEqual([
      ['get_weather', '{"location":"Paris","unit":"celsius"}'],
    ])
    expect(await ask({ tool_choice: { type: 'function', function: { name: 'save' } } })).toEqual([['save', '{"n":3}']])
  })

  test('max_completion_tokens truncates with finish_reason length; n, logprobs, images, and reasoning are supported', async () => {
    const openai = await client()
    const answer = await openai.chat.completions.create({
      model: 'm',
      messages: [
        {
          role: 'user',
          content: [
            { type: 'text', text: 'Look' },
            { type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } },
          ],
        },
      ],
      n: 2,
      logprobs: true,
      reasoning_effort: 'high',
    })
    expect(answer.choices.map(({ index }) => index)).toEqual([0, 1])
    expect(answer.choices[1]!.message.content).toContain('I received 1 image.')
    expect(answer.choices[0]!.logprobs!.content!.map(({ token }) => token).join('')).toBe(
      answer.choices[0]!.message.content,
    )
    expect(answer.usage!.completion_tokens_details!.reasoning_tokens).toBeGreaterThan(0)
    expect(answer.choices[0]!.message).toHaveProperty('reasoning_content')
    const cut = await openai.chat.completions.create({
      model: 'm',
      messages: [{ role: 'user', content: 'Hi' }],
      max_completion_tokens: 3,
    })
    expect([cut.choices[0]!.message.content, cut.choices[0]!.finish_reason, cut.usage!.completion_tokens]).toEqual([
      'This is a si',
      'length',
      3,
    ])
  })
})

describe('responses, with the openai package', () => {
  test('a tool output without its call is rejected, as by a real provider', async () => {
    const input = [{ type: 'function_call_output' as const, call_id: 'call_none', output: 'sunny' }]
    await expect((await client()).responses.create({ model: 'model-1', input })).rejects.toMatchObject({ status: 400 })
  })

  test('non-streaming and streamed responses have the same content', async () => {
    const openai = await client()
    const whole = await openai.responses.create({ model: 'model-1', input: 'Hello' })
    expect(whole.output_text).toBe('This is a simulated answer from alpha. You said: "Hello".')
    expect([whole.status, whole.model, whole.usage!.total_tokens]).toEqual([
      'completed',
      'model-1',
      whole.usage!.input_tokens + whole.usage!.output_tokens,
    ])
    const streamed = await openai.responses
      .stream({ model: 'model-1', input: [{ role: 'user', content: 'Hello' }] })
      .finalResponse()
    expect(streamed.output_text).toBe(whole.output_text)
  })

  test('every event is numbered, and reasoning, text, and calls are in order', async () => {
    const openai = await client()
    const stream = await openai.responses.create({
      model: 'm',
      input: 'What is the weather in Oslo?',
      tools: [responsesTool],
      reasoning: { effort: 'low', summary: 'auto' },
      include: ['reasoning.encrypted_content'],
      stream: true,
    })
    const events = []
    for await (const event of stream) events.push(event)
    expect(events.map((event) => event.sequence_number)).toEqual(events.map((_, index) => index))
    const kinds = events.map((event) => event.type).filter((kind, index, all) => kind !== all[index - 1])
    expect(kinds).toEqual([
      'response.created',
      'response.in_progress',
      'response.output_item.added',
      'response.reasoning_summary_part.added',
      'response.reasoning_summary_text.delta',
      'response.reasoning_summary_text.done',
      'response.reasoning_summary_part.done',
      'response.output_item.done',
      'response.output_item.added',
      'response.function_call_arguments.delta',
      'response.function_call_arguments.done',
      'response.output_item.done',
      'response.completed',
    ])
    const last = events.at(-1)!
    if (last.type !== 'response.completed') return expect.unreachable()
    const [reasoning, call] = last.response.output
    expect(reasoning).toMatchObject({ type: 'reasoning', encrypted_content: expect.any(String) as string })
    expect(call).toMatchObject({
      type: 'function_call',
      name: 'get_weather',
      arguments: '{"location":"Oslo","unit":"celsius"}',
    })
  })

  test('a tool round trip ends in text, and custom and namespaced tools are called with their own types', async () => {
    const openai = await client()
    const tools = [
      responsesTool,
      { type: 'custom', name: 'apply_patch' },
      { type: 'namespace', name: 'inner', tools: [{ type: 'function', name: 'close', parameters: {} }] },
    ] as never
    const input = 'What is the weather in Oslo?'
    const asked = await openai.responses.create({ model: 'm', input, tools })
    const call = asked.output[0]!
    if (call.type !== 'function_call') return expect.unreachable()
    const answered = await openai.responses.create({
      model: 'm',
      tools,
      input: [
        { role: 'user', content: input },
        call,
        { type: 'function_call_output', call_id: call.call_id, output: 'Rain' },
      ],
    })
    expect(answered.output_text).toBe('This is a simulated answer from alpha. The tool answered: "Rain".')
    const custom = await openai.responses
      .stream({ model: 'm', input: 'Hi', tools, tool_choice: { type: 'custom', name: 'apply_patch' } })
      .finalResponse()
    expect(custom.output[0]).toMatchObject({ type: 'custom_tool_call', name: 'apply_patch', input: 'simulated input' })
    const inner = await openai.responses.create({
      model: 'm',
      input: 'Hi',
      tools,
      tool_choice: { type: 'function', name: 'close' },
    })
    expect(inner.output[0]).toMatchObject({ type: 'function_call', name: 'close', namespace: 'inner' })
  })

  test('max_output_tokens leaves the response incomplete', async () => {
    const answer = await (await client()).responses.create({ model: 'm', input: 'Hi', max_output_tokens: 4 })
    expect([answer.output_text, answer.status, answer.incomplete_details]).toEqual([
      'This is a simula',
      'incomplete',
      { reason: 'max_output_tokens' },
    ])
  })

  test('IDs of two providers differ, and so do IDs before and after a restart', async () => {
    const ids = new Set<string>()
    for (const name of ['alpha', 'beta', 'alpha']) {
      const provider = await startSimulatedProvider({ name })
      const openai = new OpenAI({ apiKey: 'made-up', baseURL: provider.baseUrl })
      ids.add((await openai.responses.create({ model: 'm', input: 'Hi' })).id)
      await provider.close()
      await sleep(2)
    }
    expect(ids.size).toBe(3)
  })
})

describe('structured output', () => {
  const person = z.object({
    name: z.string().min(12),
    age: z.int().min(18).max(99),
    email: z.email(),
    tags: z.array(z.enum(['a', 'b'])).min(2),
    home: z.object({ city: z.string().max(5), zip: z.string().nullable() }),
    kind: z.literal('person'),
    score: z.number().gt(0).lt(1),
    more: z.union([z.object({ x: z.boolean() }), z.null()]),
  })

  test('a chat completion and a response match the schema', async () => {
    const openai = await client()
    const schema = z.toJSONSchema(person) as Record<string, unknown>
    const chat = await openai.chat.completions.create({
      model: 'm',
      messages: [{ role: 'user', content: 'Who?' }],
      response_format: { type: 'json_schema', json_schema: { name: 'person', schema, strict: true } },
    })
    person.parse(JSON.parse(chat.choices[0]!.message.content!))
    const response = await openai.responses.create({
      model: 'm',
      input: 'Who?',
      text: { format: { type: 'json_schema', name: 'person', schema, strict: true } },
    })
    person.parse(JSON.parse(response.output_text))
    const loose = await openai.chat.completions.create({
      model: 'm',
      messages: [{ role: 'user', content: 'Who?' }],
      response_format: { type: 'json_object' },
    })
    expect(JSON.parse(loose.choices[0]!.message.content!)).toMatchObject({ simulated: true })
  })

  test('references, recursion, and hostile schemas terminate', () => {
    const tree: JsonObject = {
      $ref: '#/$defs/node',
      $defs: {
        node: {
          type: 'object',
          properties: { value: { type: 'integer' }, next: { anyOf: [{ $ref: '#/$defs/node' }, { type: 'null' }] } },
          required: ['value', 'next'],
        },
      },
    }
    const node: z.ZodType = z.object({
      value: z.int(),
      get next() {
        return z.union([node, z.null()])
      },
    })
    expect(node.safeParse(sampleOf(tree)).success).toBe(true)
    for (const schema of [
      { $ref: '#' },
      { $ref: '#/a', a: { $ref: '#/a' } },
      { type: 'array', minItems: 1e9 },
      { type: 'string', minLength: 1e9 },
      { allOf: [{ $ref: '#' }] },
      { allOf: Array.from({ length: 20 }, () => ({ $ref: '#' })) },
      {
        type: 'object',
        properties: Object.fromEntries(Array.from({ length: 30 }, (_, index) => [`p${index}`, { $ref: '#' }])),
        required: Array.from({ length: 30 }, (_, index) => `p${index}`),
      },
      { type: 'object', properties: { __proto__: { type: 'string' } } },
      {},
    ] as JsonObject[]) {
      expect(JSON.stringify(sampleOf(schema)).length).toBeLessThan(1_000_000)
    }
    expect(
      sampleOf({
        allOf: [{ properties: { a: { const: 1 } } }, { type: 'object', properties: { b: { enum: ['x'] } } }],
      }),
    ).toEqual({ a: 1, b: 'x' })
  })
})

describe('requests of real clients', () => {
  const folder = new URL('../../fixtures/client-requests/', import.meta.url)
  const recorded = readdirSync(folder)
    .map((file) => ({
      file,
      ...(JSON.parse(readFileSync(new URL(file, folder), 'utf8')) as {
        method: string
        path: string
        body?: JsonObject
      }),
    }))
    .filter(({ method, path }) => method === 'POST' && /\/(chat\/completions|responses)$/.test(path))

  /** Their reasoning was encrypted by another provider, so this one rejects it like a real one. */
  const sealedElsewhere = recorded.filter(({ body }) => JSON.stringify(body ?? {}).includes('"encrypted_content":"'))

  test('reasoning that another provider encrypted is rejected', async () => {
    const provider = await simulate()
    expect(sealedElsewhere).toHaveLength(4)
    for (const { body } of sealedElsewhere) {
      const response = await fetch(`${provider.baseUrl}/responses`, { method: 'POST', body: JSON.stringify(body) })
      expect(response.status).toBe(400)
      expect(await response.json()).toMatchObject({ error: { code: 'invalid_encrypted_content' } })
    }
  })

  test('every other recorded client request is answered in its own format', async () => {
    const provider = await simulate()
    expect(recorded.length).toBeGreaterThan(30)
    for (const { file, path, body } of recorded.filter((one) => !sealedElsewhere.includes(one))) {
      const response = await fetch(provider.baseUrl + path.slice(path.indexOf('/v1') + 3), {
        method: 'POST',
        body: JSON.stringify(body ?? {}),
      })
      const text = await response.text()
      expect([file, response.status, text.length > 100]).toEqual([file, 200, true])
      expect([file, body?.stream === true]).toEqual([file, text.endsWith('data: [DONE]\n\n')])
    }
  })

  test('a Codex request with tools and 40 KB of instructions gets plain text', async () => {
    const openai = await client()
    const codex = recorded.find(({ file }) => file === 'codex-turn1.json')!.body!
    const input = [{ role: 'developer', content: 'x'.repeat(40_000) }, ...(codex.input as unknown as object[])]
    const stream = await openai.responses.create({ ...codex, input } as never)
    let text = ''
    for await (const event of stream as unknown as AsyncIterable<{ type: string; delta?: string }>) {
      if (event.type === 'response.output_text.delta') text += event.delta
    }
    expect(text).toBe('This is a simulated answer from alpha. You said: "say hi".')
  })
})

describe('the script', () => {
  const formats = ['openai-chat', 'openai-responses', 'anthropic-messages'] as const
  const streamed = JSON.stringify({
    model: 'm',
    stream: true,
    messages: [{ role: 'user', content: 'Hi' }],
    input: 'Hi',
  })
  const whole = JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'Hi' }], input: 'Hi' })

  async function ask(step: object, format: (typeof formats)[number], body: string) {
    const provider = await simulate()
    provider.script(readScript([step]))
    const recording = await run(openBackend(openPools(), provider.baseUrl, { format }), body)
    const events = recording.text.split('\n\n').filter((event) => event !== '')
    return { provider, recording, events, status: recording.head?.status, outcome: recording.error?.outcome }
  }

  describe.each(formats)('on %s', (format) => {
    test.each([400, 401, 403, 408, 413, 422, 429, 500, 502, 503, 504, 529])(
      'a step can answer with status %d and Retry-After',
      async (status) => {
        const { recording } = await ask({ do: 'status', status, retryAfter: '3' }, format, streamed)
        expect([recording.head?.status, recording.head?.retryAfterMs]).toEqual([status, 3000])
        expect(JSON.parse(recording.text)).toHaveProperty('error.message', `This is a simulated ${status}.`)
      },
    )

    test('context_length_exceeded is a 400 in the format’s shape', async () => {
      const { recording } = await ask({ do: 'context_length_exceeded' }, format, whole)
      expect([recording.head?.status, JSON.parse(recording.text)]).toMatchObject([
        400,
        format === 'anthropic-messages'
          ? { type: 'error', error: { type: 'invalid_request_error', message: expect.stringContaining('too long') } }
          : { error: { code: 'context_length_exceeded' } },
      ])
    })

    test('reset closes the connection without an answer', async () => {
      expect(await ask({ do: 'reset' }, format, streamed)).toMatchObject({ status: undefined, outcome: 'reset' })
    })

    test('broken_first_event sends an error event or garbage first', async () => {
      const failed = await ask({ do: 'broken_first_event' }, format, streamed)
      expect(failed.events[0]).toContain('This is a simulated failure.')
      const garbage = await ask({ do: 'broken_first_event', with: 'garbage' }, format, streamed)
      expect(garbage.events).toEqual(['data: {"id":"chatcmpl-'])
      expect((await ask({ do: 'broken_first_event', with: 'garbage' }, format, whole)).recording.text).toBe(
        '{"id":"chatcmpl-',
      )
    })

    test('empty sends no content, and html sends a page', async () => {
      expect((await ask({ do: 'empty' }, format, streamed)).recording).toMatchObject({
        steps: ['head', 'end'],
        head: { status: 200, contentType: 'text/event-stream; charset=utf-8' },
      })
      expect(JSON.parse((await ask({ do: 'empty' }, format, whole)).recording.text)).toMatchObject({
        choices: [],
        output: [],
      })
      expect((await ask({ do: 'html' }, format, streamed)).recording.head).toMatchObject({
        status: 200,
        contentType: 'text/html; charset=utf-8',
      })
    })

    test.each([
      ['end', undefined],
      ['fin', 'reset'],
      ['rst', 'reset'],
    ])('cut ends the stream after 4 events by %s', async (by, outcome) => {
      const cut = await ask({ do: 'cut', afterEvents: 4, by }, format, streamed)
      expect([cut.events.length, cut.outcome, cut.provider.counts().aborted]).toEqual([4, outcome, 0])
      const half = await ask({ do: 'cut', by }, format, whole)
      expect([half.status, half.outcome]).toEqual([200, outcome])
      expect(half.recording.bytes).toBeGreaterThan(100)
    })

    test('error_event, no_done, and huge_line change the stream as documented', async () => {
      const failed = await ask({ do: 'error_event', afterEvents: 4 }, format, streamed)
      expect(failed.events[4]).toContain('This is a simulated failure.')
      expect(failed.events.at(-1) === 'data: [DONE]').toBe(format !== 'anthropic-messages')
      const open = await ask({ do: 'no_done' }, format, streamed)
      expect([open.recording.steps.at(-1), open.recording.text.includes('[DONE]')]).toEqual(['end', false])
      const huge = await ask({ do: 'huge_line', bytes: 300_000 }, format, streamed)
      expect(huge.events[0]!.length).toBeGreaterThan(300_000)
      const last =
        format === 'anthropic-messages' ? 'event: message_stop\ndata: {"type":"message_stop"}' : 'data: [DONE]'
      expect(huge.events.at(-1)).toBe(last)
    })

    test('an answer can have a given length or number of words', async () => {
      expect((await ask({ do: 'answer', length: 1_000_003 }, format, whole)).recording.bytes).toBeGreaterThan(1_000_003)
      const words = await ask({ do: 'answer', words: 500 }, format, streamed)
      expect(words.events.filter((event) => event.includes('simulated')).length).toBeGreaterThanOrEqual(500)
    })
  })

  test('silence, stall, slow_first, and slow_headers take the configured time', async () => {
    const provider = await simulate()
    const backend = openBackend(openPools(), provider.baseUrl)
    provider.script([{ do: 'silence' }, { do: 'stall', afterEvents: 2 }])
    const silent = record(backend, streamed, true)
    await until(() => provider.counts().requests === 1)
    const stalled = record(backend, streamed, true)
    await stalled.firstData()
    await sleep(60)
    expect([silent.steps, stalled.steps, stalled.text.split('\n\n').length]).toEqual([[], ['head', 'data'], 3])
    silent.call.abort()
    stalled.call.abort()
    await until(() => provider.counts().aborted === 2)
    for (const kind of ['slow_first', 'slow_headers'] as const) {
      provider.script([{ do: kind, ms: 120 }])
      const startedAtMs = performance.now()
      const slow = record(backend, streamed, true)
      await sleep(60)
      expect(slow.steps).toEqual(kind === 'slow_first' ? ['head'] : [])
      await slow.ended
      expect(performance.now() - startedAtMs).toBeGreaterThan(110)
      expect(slow.steps).toEqual(['head', 'data', 'end'])
    }
  })

  test('each request takes one step, the last step may repeat, and later requests succeed', async () => {
    const provider = await simulate()
    const backend = openBackend(openPools(), provider.baseUrl)
    const statuses = async (count: number): Promise<unknown[]> => {
      const seen = []
      for (let index = 0; index < count; index++) seen.push((await run(backend, whole)).head?.status)
      return seen
    }
    provider.script([
      { do: 'status', status: 401 },
      { do: 'status', status: 503 },
    ])
    await fetch(`${provider.baseUrl}/models`)
    expect(await statuses(3)).toEqual([401, 503, 200])
    provider.script([
      { do: 'status', status: 429 },
      { do: 'status', status: 500, repeat: true },
    ])
    expect(await statuses(3)).toEqual([429, 500, 500])
  })

  test('without control, the script and the counts are not available over HTTP', async () => {
    const provider = await simulate()
    const root = provider.baseUrl.replace('/v1', '')
    const put = await fetch(`${root}/script`, { method: 'PUT', body: '[{"do":"reset"}]' })
    expect([put.status, (await fetch(`${root}/counts`)).status, provider.counts().stepsLeft]).toEqual([404, 404, 0])
  })

  test('PUT /script and GET /counts work over HTTP, and an invalid script gets an error that names the problem', async () => {
    const provider = await simulate({ control: true })
    const root = provider.baseUrl.replace('/v1', '')
    const put = (body: string): Promise<Response> => fetch(`${root}/script`, { method: 'PUT', body })
    expect((await put('[{"do":"status","status":418},{"do":"answer"}]')).status).toBe(204)
    const backend = openBackend(openPools(), provider.baseUrl)
    expect((await run(backend, whole)).head?.status).toBe(418)
    expect(await (await fetch(`${root}/counts`)).json()).toMatchObject({
      requests: 1,
      open: 0,
      aborted: 0,
      stepsLeft: 1,
    })
    for (const [body, problem] of [
      ['{', 'The script is not valid JSON.'],
      ['{}', 'A script is a list of steps.'],
      ['[1]', 'Step 0: it is not an object.'],
      ['[{"do":"answer"},{"do":"explode"}]', `Step 1: "do" must be one of ${stepKinds.join(', ')}.`],
      ['[{"do":"cut","by":"axe"}]', 'Step 0: "by" must be end or fin or rst.'],
      ['[{"do":"cut","afterEvents":-1}]', 'Step 0: "afterEvents" must be a whole number from 0 to 67108864.'],
      ['[{"do":"status","status":99}]', 'Step 0: "status" must be from 200 to 599.'],
      ['[{"do":"answer","constructor":1}]', 'Step 0: the field "constructor" is unknown.'],
    ] as const) {
      const response = await put(body)
      expect([response.status, await response.json()]).toEqual([400, { problem }])
    }
  })

  test('other paths get a 404, bodies that are not objects a 400, and models are listed', async () => {
    const provider = await simulate()
    const statuses = await Promise.all([
      fetch(`${provider.baseUrl}/nothing`),
      fetch(`${provider.baseUrl}/chat/completions`, { method: 'POST', body: '[' }),
      fetch(`${provider.baseUrl}/responses`, { method: 'POST', body: '[]' }),
    ])
    expect(statuses.map(({ status }) => status)).toEqual([404, 400, 400])
    const models = await (await client()).models.list()
    expect(models.data).toMatchObject([{ id: 'simulated-alpha', owned_by: 'simulated' }])
  })

  test('close aborts open answers and frees the port', async () => {
    const provider = await startSimulatedProvider({ name: 'alpha' })
    provider.script([{ do: 'silence' }])
    const recording = record(openBackend(openPools(), provider.baseUrl), whole)
    await until(() => provider.counts().open === 1)
    await provider.close()
    await recording.ended
    expect(recording.error?.outcome).toBe('reset')
    const again = await startSimulatedProvider({ name: 'alpha', port: provider.port })
    expect(again.port).toBe(provider.port)
    await expect(startSimulatedProvider({ name: 'alpha', port: provider.port })).rejects.toMatchObject({
      code: 'EADDRINUSE',
    })
    await again.close()
  })
})
