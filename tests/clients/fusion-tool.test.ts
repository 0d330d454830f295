import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import type { ScriptStep } from '../../src/simulation/providers/script.ts'
import { Service } from '../service.ts'
import { counted, entrances } from './ai-clients.ts'
import { connectAnthropic, textOf } from './anthropic-clients.ts'
import { connect, majors } from './openai-clients.ts'

/** Clients accept fused answers: each needs one request and causes no error. */
const frontier = 'svc-router/frontier'
const attached = { type: 'svc-router:fusion' }
/** Headers that attach the tool to every request of a client. */
const headers = { 'X-Svc-Router-Tools': 'svc-router:fusion' }
const question = 'Please consult other models: how many?'
const said = 'The tool answered'
const shapes = ['auto', 'reasoning', 'none'] as const

let service: Service
beforeAll(async () => {
  service = await Service.start()
})
afterAll(() => service.stop())
afterEach(() => {
  for (const provider of service.providers) provider.script([])
})

describe.each(majors)('$name', ({ OpenAI }) => {
  test('chat works, non-streaming and streamed', async () => {
    const { client, traffic } = connect(OpenAI, service)
    const tools = [attached] as never[]
    const messages = [{ role: 'user' as const, content: question }]
    const whole = await client.chat.completions.create({ model: frontier, messages, tools })
    expect(whole.choices[0]!.message).toMatchObject({ content: expect.stringContaining(said) as string })
    expect(whole.choices[0]!.message.tool_calls).toBeUndefined()
    const stream = client.chat.completions.stream({ model: frontier, messages, tools })
    const final = await stream.finalChatCompletion()
    expect(final.choices[0]!.message.content).toContain(said)
    expect(final).toMatchObject({ svc_router: { fusion: { ran: true } } })
    expect(traffic.answers.map(({ status }) => status)).toEqual([200, 200])
  })

  test.each(shapes)(
    'responses with result_item %s work, non-streaming and streamed, and can be continued in both ways',
    async (shape) => {
      const { client, traffic } = connect(OpenAI, service)
      const tools = [{ ...attached, parameters: { result_item: shape } }] as never[]
      const whole = await client.responses.create({ model: frontier, input: question, tools })
      expect(whole.output_text).toContain(said)
      expect(whole.output.filter(({ type }) => type === 'mcp_call')).toHaveLength(shape === 'auto' ? 1 : 0)
      const final = await client.responses.stream({ model: frontier, input: question, tools }).finalResponse()
      expect(final.output_text).toContain(said)
      const next = await client.responses.create({
        model: frontier,
        input: [
          { role: 'user', content: question },
          ...(final.output as never[]),
          { role: 'user', content: 'And now?' },
        ],
      })
      expect(next.output_text).toContain('And now?')
      const last = await client.responses.create({ model: frontier, input: 'So?', previous_response_id: final.id })
      expect(last.output_text).toContain('So?')
      expect(traffic.answers.map(({ status }) => status)).toEqual([200, 200, 200, 200])
    },
  )

  test('the client’s headers attach the tool on chat and responses, non-streaming and streamed', async () => {
    const { client, traffic } = connect(OpenAI, service, { defaultHeaders: headers })
    const messages = [{ role: 'user' as const, content: question }]
    const whole = await client.chat.completions.create({ model: frontier, messages })
    expect(whole.choices[0]!.message.content).toContain(said)
    const stream = client.chat.completions.stream({ model: frontier, messages })
    expect(await stream.finalContent()).toContain(said)
    const response = await client.responses.create({ model: frontier, input: question })
    expect(response.output_text).toContain(said)
    const final = await client.responses.stream({ model: frontier, input: question }).finalResponse()
    expect(final.output_text).toContain(said)
    expect((await client.models.list()).data.map(({ id }) => id)).toContain(frontier)
    expect(traffic.answers.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200])
  })

  test('the caller’s own tool next to ours goes through the usual loop', async () => {
    const { client } = connect(OpenAI, service)
    const made = [
      { name: 'svc_router_fusion', arguments: { question: 'Is it cold?' } },
      { name: 'get_weather', arguments: { city: 'Oslo' } },
    ]
    const step: ScriptStep = { do: 'answer', calls: JSON.stringify(made) }
    service.providers[0]!.script([step])
    const runner = client.chat.completions.runTools({
      model: frontier,
      messages: [{ role: 'user', content: 'How is it?' }],
      stream: true,
      tools: [
        {
          type: 'function',
          function: {
            name: 'get_weather',
            description: 'The weather of a city.',
            parameters: { type: 'object', properties: { city: { type: 'string' } } },
            parse: JSON.parse,
            function: () => 'It is -7.',
          },
        },
        attached as never,
      ],
    })
    expect(await runner.finalContent()).toContain('It is -7.')
  })
})

describe.each(entrances)('$name', ({ ai, model: open }) => {
  const { generateText, streamText } = ai
  /** The SDK declares only tools that it knows, so ours is added to the request on its way. */
  const attaching: typeof fetch = (url, init) => {
    const body = JSON.parse(init!.body as string) as { tools?: unknown[] }
    return fetch(url, { ...init!, body: JSON.stringify({ ...body, tools: [...(body.tools ?? []), attached] }) })
  }

  test('generateText and streamText return the reply', async () => {
    const model = open({ baseURL: service.baseUrl, apiKey: service.key, fetch: attaching }, frontier)
    const whole = await generateText({ model, prompt: question })
    expect(whole.text).toContain(said)
    expect(whole.finishReason).toBe('stop')
    const stream = streamText({ model, prompt: question })
    expect(await stream.text).toContain(said)
    expect((await stream.usage).outputTokens).toBeGreaterThan(0)
  })

  test('the provider’s headers attach the tool, too', async () => {
    const model = open({ ...counted(service).settings, headers }, frontier)
    expect((await generateText({ model, prompt: question })).text).toContain(said)
    expect(await streamText({ model, prompt: question }).text).toContain(said)
  })
})

test('@anthropic-ai/sdk attaches the tool with its client’s headers, non-streaming and streamed', async () => {
  const { client, traffic } = connectAnthropic(service, { defaultHeaders: headers })
  const request = { model: frontier, max_tokens: 1024, messages: [{ role: 'user' as const, content: question }] }
  expect(textOf(await client.messages.create(request))).toContain(said)
  expect(textOf(await client.messages.stream(request).finalMessage())).toContain(said)
  expect(traffic.answers.map(({ status }) => status)).toEqual([200, 200])
})
