import Anthropic, { APIError } from '@anthropic-ai/sdk'
import { betaZodTool } from '@anthropic-ai/sdk/helpers/beta/zod'
import { zodOutputFormat } from '@anthropic-ai/sdk/helpers/zod'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { Service } from '../service.ts'
import { connectAnthropic, textOf } from './anthropic-clients.ts'
import { errorOf } from './error-of.ts'
import { collect, pixel, weatherIn, weatherParameters } from './openai-clients.ts'

const model = 'svc-router/frontier'
const max_tokens = 1024
const says = 'This is a simulated answer from alpha.'
const messages: Anthropic.MessageParam[] = [{ role: 'user', content: 'Say hello.' }]
const tools: Anthropic.Tool[] = [
  { name: 'get_weather', description: 'The weather of a city.', input_schema: weatherParameters },
]
const schema = z.object({ city: z.string(), degrees: z.number() })

const upstreamPaths = {
  'openai-chat': '/v1/chat/completions',
  'openai-responses': '/v1/responses',
  'anthropic-messages': '/v1/messages',
} as const

describe.each(['openai-chat', 'openai-responses', 'anthropic-messages'] as const)(
  '@anthropic-ai/sdk, with a backend of format %s',
  (format) => {
    let service: Service
    let client: Anthropic
    beforeAll(async () => {
      service = await Service.start({ formats: [format] })
      client = connectAnthropic(service).client
    })
    afterAll(() => service.stop())
    afterEach(() => {
      // What reached the provider must have its format: relayed in one case, translated in the others.
      expect(service.providers[0]!.captured().at(-1)!.path).toBe(upstreamPaths[format])
      service.providers[0]!.script([])
    })

    test('a non-streaming answer has the request ID and its usage', async () => {
      const { data, response, request_id } = await client.messages
        .create({ model, max_tokens, messages, system: 'Be kind.' })
        .withResponse()
      expect(data).toMatchObject({ type: 'message', role: 'assistant', model, stop_reason: 'end_turn' })
      expect(textOf(data)).toContain(says)
      expect(data.usage.input_tokens).toBeGreaterThan(0)
      expect(data.usage.output_tokens).toBeGreaterThan(0)
      expect(request_id).toMatch(/^req_/)
      expect(response.headers.get('x-request-id')).toBe(request_id)
      expect(response.headers.get('x-svc-router-upstream')).toBe('alpha')
      expect(response.headers.get('x-quota-remaining')).toMatch(/^\d+$/)
    })

    test('a stream arrives in order, from message_start to message_stop', async () => {
      const stream = await client.messages.create({ model, max_tokens, messages, stream: true })
      const events = await collect(stream)
      const [first] = events
      if (first?.type !== 'message_start') throw new Error(`it began with ${first?.type}`)
      expect(first.message).toMatchObject({ role: 'assistant', model, content: [] })
      expect(events.slice(-2).map(({ type }) => type)).toEqual(['message_delta', 'message_stop'])
      const pieces = events.flatMap((event) =>
        event.type === 'content_block_delta' && event.delta.type === 'text_delta' ? [event.delta.text] : [],
      )
      expect(pieces.join('')).toContain(says)
      expect(pieces.length).toBeGreaterThan(5)
      const end = events.at(-2)
      if (end?.type !== 'message_delta') throw new Error('it has no message_delta')
      expect(end.delta.stop_reason).toBe('end_turn')
      expect(end.usage.output_tokens).toBeGreaterThan(0)
    })

    test('the .stream() helper ends with the whole answer and has the request ID', async () => {
      const stream = client.messages.stream({ model, max_tokens, messages })
      let text = ''
      stream.on('text', (delta) => (text += delta))
      const final = await stream.finalMessage()
      expect(textOf(final)).toContain(says)
      expect(text).toBe(textOf(final))
      expect(stream.request_id).toMatch(/^req_/)
    })

    test('the beta endpoint, which adds ?beta=true, works, and its options reach the backend with the body', async () => {
      const { client: recording, traffic } = connectAnthropic(service)
      const betas = ['context-management-2025-06-27', 'effort-2025-11-24']
      const answer = await recording.beta.messages.create({ model, max_tokens, messages, betas })
      expect(traffic.sent).toHaveLength(1)
      const { headers } = service.providers[0]!.captured().at(-1)!
      expect(headers['anthropic-beta']).toBe(format === 'anthropic-messages' ? betas.join(',') : undefined)
      expect(Object.keys(headers).filter((name) => /^(x-stainless|x-api-key|anthropic-version)/.test(name))).toEqual([])
      expect(answer.content).toMatchObject([{ type: 'text', text: expect.stringContaining(says) as string }])
    })

    test.each([true, false])(
      'a tool loop of two steps with two parallel calls gets their results, streamed: %s',
      async (stream) => {
        const turns: Anthropic.MessageParam[] = [{ role: 'user', content: 'What is the weather in Oslo and Lima?' }]
        const ask = (): Promise<Anthropic.Message> => {
          const request = { model, max_tokens, tools, messages: turns }
          return stream ? client.messages.stream(request).finalMessage() : client.messages.create(request)
        }
        const first = await ask()
        expect(first.stop_reason).toBe('tool_use')
        const calls = first.content.filter((block) => block.type === 'tool_use')
        expect(calls.map(({ name, input }) => [name, input])).toEqual([
          ['get_weather', { city: 'Oslo' }],
          ['get_weather', { city: 'Lima' }],
        ])
        expect(new Set(calls.map(({ id }) => id)).size).toBe(2)
        const results = calls.map(({ id, input }) => ({
          type: 'tool_result' as const,
          tool_use_id: id,
          content: weatherIn((input as { city: string }).city),
        }))
        turns.push({ role: 'assistant', content: first.content }, { role: 'user', content: results })
        const second = await ask()
        expect(second.stop_reason).toBe('end_turn')
        expect(textOf(second)).toContain(weatherIn('Oslo'))
        expect(textOf(second)).toContain(weatherIn('Lima'))
      },
    )

    test('the tool runner finishes its loop by itself after the error that conversations are not stored', async () => {
      const { client: recording, traffic } = connectAnthropic(service)
      const cities: string[] = []
      const weather = betaZodTool({
        name: 'get_weather',
        description: 'The weather of a city.',
        inputSchema: z.object({ city: z.string() }),
        run({ city }) {
          cities.push(city)
          return weatherIn(city)
        },
      })
      const final = await recording.beta.messages.toolRunner({
        model,
        max_tokens,
        messages: [{ role: 'user', content: 'What is the weather in Oslo?' }],
        tools: [weather],
      })
      expect(cities).toEqual(['Oslo'])
      expect(traffic.answers.map(({ status }) => status)).toEqual([400, 200, 200])
      expect(JSON.stringify(final.content)).toContain(weatherIn('Oslo'))
    })

    test('messages.parse returns an object that matches the schema', async () => {
      const { parsed_output } = await client.messages.parse({
        model,
        max_tokens,
        messages,
        output_config: { format: zodOutputFormat(schema) },
      })
      expect(parsed_output).toEqual({ city: 'simulated by alpha', degrees: expect.any(Number) as number })
    })

    test('an image is read', async () => {
      const data = pixel.slice(pixel.indexOf(',') + 1)
      const content: Anthropic.ContentBlockParam[] = [
        { type: 'text', text: 'What is this?' },
        { type: 'image', source: { type: 'base64', media_type: 'image/png', data } },
      ]
      const answer = await client.messages.create({ model, max_tokens, messages: [{ role: 'user', content }] })
      expect(textOf(answer)).toContain('I received 1 image')
    })

    test('a conversation continues after an answer', async () => {
      const first = await client.messages.create({ model, max_tokens, messages })
      const turns: Anthropic.MessageParam[] = [
        ...messages,
        { role: 'assistant', content: first.content },
        { role: 'user', content: 'And again.' },
      ]
      const second = await client.messages.create({ model, max_tokens, messages: turns })
      expect(textOf(second)).toContain('And again.')
      expect(service.providers[0]!.captured().at(-1)!.body).toContain(says)
    })

    test.each([
      ['a closed connection', 'fin'],
      ['a reset', 'rst'],
      ['a well-formed end', 'end'],
    ] as const)('a stream that is aborted after the first words by %s never succeeds', async (_, by) => {
      const { client: once, traffic } = connectAnthropic(service, { maxRetries: 0 })
      service.providers[0]!.script([{ do: 'cut', afterEvents: 9, by, repeat: true }])
      let seen = ''
      let isComplete = false
      const reading = async (): Promise<void> => {
        for await (const event of await once.messages.create({ model, max_tokens, messages, stream: true })) {
          if (event.type === 'content_block_delta' && event.delta.type === 'text_delta') seen += event.delta.text
          isComplete ||= event.type === 'message_stop'
        }
      }
      const error = await errorOf(reading())
      expect(seen).toMatch(/^This is/)
      expect(isComplete).toBe(false)
      expectBroken(error, traffic.answers[0]!.headers)
      const helper = await errorOf(once.messages.stream({ model, max_tokens, messages }).finalMessage())
      expectBroken(helper, traffic.answers[1]!.headers)
      await expect(once.messages.create({ model, max_tokens, messages })).rejects.toBeInstanceOf(APIError)
      expect(traffic.answers[2]!.status).toBeGreaterThanOrEqual(500)
    })
  },
)

/** Asserts the error of a broken stream: our sentence, and the request ID. */
function expectBroken(error: unknown, headers: Headers): void {
  if (!(error instanceof APIError)) throw new Error('not an APIError', { cause: error })
  expect(error.apiMessage).toContain('The response ended before it was complete')
  expect(error.message).toContain('The response ended before it was complete')
  expect(error.type).toBe('api_error')
  expect(error.requestID).toBe(headers.get('x-request-id'))
}
