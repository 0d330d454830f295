import type OpenAI from 'openai'
import type { RunnableToolFunctionWithoutParse } from 'openai/lib/RunnableFunction'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { Service } from '../service.ts'
import { errorOf } from './error-of.ts'
import { collect, connect, majors, pixel, weatherIn, weatherParameters } from './openai-clients.ts'

const model = 'svc-router/frontier'
const says = 'This is a simulated answer from alpha.'
const weatherTool = { name: 'get_weather', description: 'The weather of a city.', parameters: weatherParameters }
const chatTools: OpenAI.ChatCompletionTool[] = [{ type: 'function', function: weatherTool }]
const responseTools: OpenAI.Responses.Tool[] = [{ type: 'function', ...weatherTool, strict: true }]
const schema = z.object({ city: z.string(), degrees: z.number() })

const upstreamPaths = { 'openai-chat': '/v1/chat/completions', 'openai-responses': '/v1/responses' } as const

describe.each(['openai-chat', 'openai-responses'] as const)('a backend of format %s', (format) => {
  let service: Service
  beforeAll(async () => {
    service = await Service.start({ formats: [format] })
  })
  afterAll(() => service.stop())
  afterEach(() => {
    // What reached the provider must have its format: relayed in one case, translated in the other.
    expect(service.providers[0]!.captured().at(-1)!.path).toBe(upstreamPaths[format])
    service.providers[0]!.script([])
  })

  describe.each(majors)('$name', ({ OpenAI, zodResponseFormat, zodTextFormat }) => {
    let client: OpenAI
    beforeAll(() => {
      client = connect(OpenAI, service).client
    })

    describe('chat completions', () => {
      const messages: OpenAI.ChatCompletionMessageParam[] = [{ role: 'user', content: 'Say hello.' }]

      test('a non-streaming answer has the request ID and its usage', async () => {
        const { data, response, request_id } = await client.chat.completions.create({ model, messages }).withResponse()
        expect(data).toMatchObject({ object: 'chat.completion', model })
        expect(data.choices).toHaveLength(1)
        expect(data.choices[0]).toMatchObject({ finish_reason: 'stop', message: { role: 'assistant' } })
        expect(data.choices[0]!.message.content).toContain(says)
        expect(data.usage!.total_tokens).toBe(data.usage!.prompt_tokens + data.usage!.completion_tokens)
        expect(data.usage!.completion_tokens).toBeGreaterThan(0)
        expect(request_id).toMatch(/^req_/)
        expect(response.headers.get('x-svc-router-upstream')).toBe('alpha')
      })

      test('a stream arrives in pieces, with usage only if requested', async () => {
        for (const include_usage of [true, false]) {
          const stream = await client.chat.completions.create({
            model,
            messages,
            stream: true,
            ...(include_usage ? { stream_options: { include_usage } } : {}),
          })
          const chunks = await collect(stream)
          const text = chunks.map((chunk) => chunk.choices[0]?.delta.content ?? '').join('')
          expect(text).toContain(says)
          expect(chunks.length).toBeGreaterThan(5)
          expect(new Set(chunks.map(({ id }) => id)).size).toBe(1)
          expect(new Set(chunks.map((chunk) => chunk.model))).toEqual(new Set([model]))
          expect(chunks.map((chunk) => chunk.choices[0]?.finish_reason).filter(Boolean)).toEqual(['stop'])
          const counted = chunks.filter(({ usage }) => usage !== undefined && usage !== null)
          expect(counted).toHaveLength(include_usage ? 1 : 0)
          if (include_usage) expect(counted[0]!.usage!.completion_tokens).toBeGreaterThan(0)
        }
      })

      test('the .stream() helper ends with the whole answer', async () => {
        const stream = client.chat.completions.stream({ model, messages })
        let text = ''
        stream.on('content', (delta) => (text += delta))
        const final = await stream.finalChatCompletion()
        expect(final.choices[0]!.message.content).toContain(says)
        expect(text).toBe(final.choices[0]!.message.content)
      })

      test('a question about the weather causes a tool call, and its result an answer', async () => {
        const asked: OpenAI.ChatCompletionMessageParam[] = [{ role: 'user', content: 'What is the weather in Oslo?' }]
        const first = await client.chat.completions.create({ model, messages: asked, tools: chatTools })
        expect(first.choices[0]!.finish_reason).toBe('tool_calls')
        const { message } = first.choices[0]!
        const [call] = message.tool_calls ?? []
        if (call?.type !== 'function') throw new Error('no function was called')
        expect(JSON.parse(call.function.arguments)).toEqual({ city: 'Oslo' })
        const result = { role: 'tool', tool_call_id: call.id, content: weatherIn('Oslo') } as const
        const second = await client.chat.completions.create({
          model,
          messages: [...asked, message, result],
          tools: chatTools,
        })
        expect(second.choices[0]!.message.content).toContain(weatherIn('Oslo'))
      })

      test.each([true, false])('runTools finishes a loop with two parallel calls, streamed: %s', async (stream) => {
        const cities: string[] = []
        const weather: RunnableToolFunctionWithoutParse = {
          type: 'function',
          function: {
            ...weatherTool,
            function: (text) => {
              const { city } = JSON.parse(text) as { city: string }
              cities.push(city)
              return weatherIn(city)
            },
          },
        }
        const messages: OpenAI.ChatCompletionMessageParam[] = [
          { role: 'user', content: 'What is the weather in Oslo and Lima?' },
        ]
        const run = { model, messages, tools: [weather] }
        const runner = stream
          ? client.chat.completions.runTools({ ...run, stream: true })
          : client.chat.completions.runTools(run)
        const answer = await runner.finalContent()
        expect(cities).toEqual(['Oslo', 'Lima'])
        expect(answer).toContain(weatherIn('Oslo'))
        expect(answer).toContain(weatherIn('Lima'))
      })

      test('parallel calls in a stream keep their own IDs and arguments', async () => {
        const stream = client.chat.completions.stream({
          model,
          messages: [{ role: 'user', content: 'What is the weather in Oslo and Lima?' }],
          tools: chatTools,
        })
        const { tool_calls: calls = [] } = (await stream.finalChatCompletion()).choices[0]!.message
        expect(calls.map((call) => call.type === 'function' && call.function.arguments)).toEqual([
          '{"city":"Oslo"}',
          '{"city":"Lima"}',
        ])
        expect(new Set(calls.map(({ id }) => id)).size).toBe(2)
      })

      test('an image is read', async () => {
        const content: OpenAI.ChatCompletionContentPart[] = [
          { type: 'text', text: 'What is this?' },
          { type: 'image_url', image_url: { url: pixel } },
        ]
        const answer = await client.chat.completions.create({ model, messages: [{ role: 'user', content }] })
        expect(answer.choices[0]!.message.content).toContain('I received 1 image')
      })

      test('.parse returns an object that matches the schema', async () => {
        const response_format = zodResponseFormat(schema, 'weather')
        const answer = await client.chat.completions.parse({ model, messages, response_format })
        expect(answer.choices[0]!.message.parsed).toEqual({
          city: 'simulated by alpha',
          degrees: expect.any(Number) as number,
        })
      })

      test.each([
        ['a closed connection', 'fin'],
        ['a reset', 'rst'],
        ['a well-formed end', 'end'],
      ] as const)('a stream that is aborted after the first words by %s never succeeds', async (_, by) => {
        const { client: once, traffic } = connect(OpenAI, service, { maxRetries: 0 })
        service.providers[0]!.script([{ do: 'cut', afterEvents: 9, by, repeat: true }])
        let seen = ''
        const reading = async (): Promise<void> => {
          const stream = await once.chat.completions.create({ model, messages, stream: true })
          for await (const chunk of stream) seen += chunk.choices[0]?.delta.content ?? ''
        }
        const error = await errorOf(reading())
        expect(seen).toMatch(/^This is/)
        expectBroken(OpenAI, error, traffic.answers[0]!.headers)
        const helper = await errorOf(once.chat.completions.stream({ model, messages }).finalChatCompletion())
        expectBroken(OpenAI, helper, traffic.answers[1]!.headers)
        await expect(once.chat.completions.create({ model, messages })).rejects.toBeInstanceOf(OpenAI.APIError)
        expect(traffic.answers[2]!.status).toBeGreaterThanOrEqual(500)
      })
    })

    describe('responses', () => {
      const input = 'Say hello.'

      test('a non-streaming answer has the request ID and its usage', async () => {
        const { data, response, request_id } = await client.responses.create({ model, input }).withResponse()
        expect(data).toMatchObject({ object: 'response', status: 'completed', model, error: null })
        expect(data.output_text).toContain(says)
        expect(data.usage!.total_tokens).toBe(data.usage!.input_tokens + data.usage!.output_tokens)
        expect(data.usage!.output_tokens).toBeGreaterThan(0)
        expect(request_id).toMatch(/^req_/)
        expect(response.headers.get('x-svc-router-upstream')).toBe('alpha')
      })

      test('a stream arrives in order, from created to completed', async () => {
        const events = await collect(await client.responses.create({ model, input, stream: true }))
        expect(events.map((event) => event.sequence_number)).toEqual(events.map((_, index) => index))
        expect(events[0]!.type).toBe('response.created')
        const last = events.at(-1)!
        if (last.type !== 'response.completed') throw new Error(`it ended with ${last.type}`)
        const text = events.map((event) => (event.type === 'response.output_text.delta' ? event.delta : '')).join('')
        expect(text).toContain(says)
        expect(last.response.output).toMatchObject([{ type: 'message', content: [{ type: 'output_text', text }] }])
        expect(last.response.usage!.output_tokens).toBeGreaterThan(0)
        expect(last.response.model).toBe(model)
      })

      test('the .stream() helper ends with the whole answer', async () => {
        const stream = client.responses.stream({ model, input })
        let text = ''
        stream.on('response.output_text.delta', ({ delta }) => (text += delta))
        const final = await stream.finalResponse()
        expect(final.output_text).toContain(says)
        expect(text).toBe(final.output_text)
      })

      test.each([true, false])(
        'a tool round trip that sends every item back, with two parallel calls, streamed: %s',
        async (stream) => {
          const items: OpenAI.Responses.ResponseInput = [
            { role: 'user', content: 'What is the weather in Oslo and Lima?' },
          ]
          const ask = async (): Promise<OpenAI.Responses.Response> => {
            const request = { model, input: items, tools: responseTools, store: false }
            return stream ? client.responses.stream(request).finalResponse() : client.responses.create(request)
          }
          const first = await ask()
          const calls = first.output.filter((item) => item.type === 'function_call')
          expect(calls.map((call) => JSON.parse(call.arguments) as unknown)).toEqual([
            { city: 'Oslo' },
            { city: 'Lima' },
          ])
          expect(new Set(calls.map(({ call_id }) => call_id)).size).toBe(2)
          items.push(...(first.output as OpenAI.Responses.ResponseInput))
          for (const { call_id, arguments: text } of calls) {
            const { city } = JSON.parse(text) as { city: string }
            items.push({ type: 'function_call_output', call_id, output: weatherIn(city) })
          }
          const { output_text } = await ask()
          expect(output_text).toContain(weatherIn('Oslo'))
          expect(output_text).toContain(weatherIn('Lima'))
        },
      )

      test('an image is read', async () => {
        const content: OpenAI.Responses.ResponseInputMessageContentList = [
          { type: 'input_text', text: 'What is this?' },
          { type: 'input_image', image_url: pixel, detail: 'auto' },
        ]
        const { output_text } = await client.responses.create({ model, input: [{ role: 'user', content }] })
        expect(output_text).toContain('I received 1 image')
      })

      test('.parse returns an object that matches the schema', async () => {
        const text = { format: zodTextFormat(schema, 'weather') }
        const { output_parsed } = await client.responses.parse({ model, input, text })
        expect(output_parsed).toEqual({ city: 'simulated by alpha', degrees: expect.any(Number) as number })
      })

      test.each([
        ['a closed connection', 'fin'],
        ['a reset', 'rst'],
        ['a well-formed end', 'end'],
      ] as const)('a stream that is aborted after the first words by %s never succeeds', async (_, by) => {
        const { client: once, traffic } = connect(OpenAI, service, { maxRetries: 0 })
        service.providers[0]!.script([{ do: 'cut', afterEvents: 9, by, repeat: true }])
        let seen = ''
        let isComplete = false
        const reading = async (): Promise<void> => {
          for await (const event of await once.responses.create({ model, input, stream: true })) {
            if (event.type === 'response.output_text.delta') seen += event.delta
            isComplete ||= event.type === 'response.completed'
          }
        }
        const error = await errorOf(reading())
        expect(seen).toMatch(/^This is/)
        expect(isComplete).toBe(false)
        expectBroken(OpenAI, error, traffic.answers[0]!.headers)
        const helper = await errorOf(once.responses.stream({ model, input }).finalResponse())
        expectBroken(OpenAI, helper, traffic.answers[1]!.headers)
        await expect(once.responses.create({ model, input })).rejects.toBeInstanceOf(OpenAI.APIError)
        expect(traffic.answers[2]!.status).toBeGreaterThanOrEqual(500)
      })
    })
  })
})

/** Asserts the error of a broken stream: our sentence, and the request ID. */
function expectBroken(Class: typeof OpenAI, error: unknown, headers: Headers): void {
  if (!(error instanceof Class.APIError)) throw new Error('not an APIError', { cause: error })
  expect(error.message).toContain('The response ended before it was complete')
  expect(error.code).toBe('upstream_broken')
  expect(error.requestID).toBe(headers.get('x-request-id'))
}
