import type { LanguageModel, ModelMessage } from 'ai'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { Service } from '../service.ts'
import { counted, entrances } from './ai-clients.ts'
import { collect, pixel, weatherIn } from './openai-clients.ts'

const frontier = 'svc-router/frontier'
const says = 'This is a simulated answer from alpha.'
const schema = z.object({ city: z.string(), degrees: z.number() })
const sample = { city: 'simulated by alpha', degrees: expect.any(Number) as number }

describe.each(['openai-chat', 'openai-responses'] as const)('a backend of format %s', (format) => {
  let service: Service
  beforeAll(async () => {
    service = await Service.start({ formats: [format] })
  })
  afterAll(() => service.stop())
  afterEach(() => service.providers[0]!.script([]))

  describe.each(entrances)('$name', ({ ai, model: open, name }) => {
    const { generateText, generateObject, streamText, isStepCount, Output } = ai
    const tools = {
      get_weather: ai.tool({
        description: 'The weather of a city.',
        inputSchema: z.object({ city: z.string() }),
        execute: ({ city }) => weatherIn(city),
      }),
    }
    let model: LanguageModel
    beforeAll(() => {
      model = open(counted(service).settings, frontier)
    })

    test('generateText returns the text and its usage, with every signal in the headers', async () => {
      const { text, finishReason, usage, response } = await generateText({ model, prompt: 'Say hello.' })
      expect(text).toContain(says)
      expect(finishReason).toBe('stop')
      expect(usage.outputTokens).toBeGreaterThan(0)
      expect(response.modelId).toBe(frontier)
      expect(response.headers).toMatchObject({
        'x-svc-router-upstream': 'alpha',
        'x-svc-router-retry-count': '0',
        'x-quota-remaining': expect.stringMatching(/^\d+$/) as string,
      })
    })

    test('streamText returns the text in pieces and its usage', async () => {
      const { textStream, finishReason, usage } = streamText({ model, prompt: 'Say hello.' })
      const pieces = await collect(textStream)
      expect(pieces.join('')).toContain(says)
      expect(pieces.length).toBeGreaterThan(5)
      expect(await finishReason).toBe('stop')
      expect((await usage).outputTokens).toBeGreaterThan(0)
    })

    test('a non-streaming tool loop of two steps ends with both results', async () => {
      const { steps, text } = await generateText({
        model,
        tools,
        prompt: 'What is the weather in Oslo and Lima?',
        stopWhen: isStepCount(3),
      })
      expect(steps).toHaveLength(2)
      expect(steps[0]!.toolCalls.map(({ input }) => input)).toEqual([{ city: 'Oslo' }, { city: 'Lima' }])
      expect(text).toContain(weatherIn('Oslo'))
      expect(text).toContain(weatherIn('Lima'))
    })

    test('a streamed tool loop of two steps ends with both results', async () => {
      const { steps, text } = streamText({
        model,
        tools,
        prompt: 'What is the weather in Oslo and Lima?',
        stopWhen: isStepCount(3),
      })
      const answer = await text
      expect(await steps).toHaveLength(2)
      expect(answer).toContain(weatherIn('Oslo'))
      expect(answer).toContain(weatherIn('Lima'))
    })

    test('a conversation continues after an answer', async () => {
      const asked: ModelMessage = { role: 'user', content: 'Say hello.' }
      const first = await generateText({ model, messages: [asked] })
      const messages: ModelMessage[] = [asked, ...first.response.messages, { role: 'user', content: 'And again.' }]
      const second = await generateText({ model, messages })
      expect(second.text).toContain('And again.')
      expect(service.providers[0]!.captured().at(-1)!.body).toContain(says)
    })

    test('generateObject and an output object match the schema', async () => {
      expect((await generateObject({ model, schema, prompt: 'The weather?' })).object).toEqual(sample)
      const { output } = await generateText({ model, output: Output.object({ schema }), prompt: 'The weather?' })
      expect(output).toEqual(sample)
    })

    test('an image is read', async () => {
      const content = [
        { type: 'text' as const, text: 'What is this?' },
        { type: 'file' as const, data: new URL(pixel), mediaType: 'image/png' },
      ]
      const { text } = await generateText({ model, messages: [{ role: 'user', content }] })
      expect(text).toContain('I received 1 image')
    })

    test.each(['fin', 'rst'] as const)(
      'a stream that is aborted by %s after the first words is an error, never a finished text',
      async (by) => {
        service.providers[0]!.script([{ do: 'cut', afterEvents: 9, by, repeat: true }])
        const errors: unknown[] = []
        const { stream } = streamText({
          model,
          prompt: 'Say hello.',
          maxRetries: 0,
          onError: ({ error }) => void errors.push(error),
        })
        let seen = ''
        let finish: string | undefined
        for await (const part of stream) {
          if (part.type === 'text-delta') seen += part.text
          if (part.type === 'finish') finish = part.finishReason
        }
        expect(seen).toMatch(/^This is/)
        expect(errors).not.toEqual([])
        expect(messageOf(errors[0])).toContain('The response ended before it was complete')
        expect(finish).not.toBe('stop')
      },
    )

    if (!name.endsWith('(responses)')) return

    const asked: ModelMessage = { role: 'user', content: 'Say hello.' }

    /** The model in the SDK's default setup, which refers to earlier items by their IDs. */
    function recordingModel(sent: string[], apiKey = service.key): LanguageModel {
      const { settings } = counted(service)
      const recording: typeof fetch = (input, init) => {
        sent.push(init?.body as string)
        return settings.fetch(input, init)
      }
      return open({ ...settings, apiKey, fetch: recording }, frontier)
    }

    test('three turns work, each of which refers to the texts before it', async () => {
      const sent: string[] = []
      const recorded = recordingModel(sent)
      const messages: ModelMessage[] = [asked]
      for (const more of ['And again.', 'And once more.']) {
        const { response } = await generateText({ model: recorded, messages })
        messages.push(...response.messages, { role: 'user', content: more })
      }
      const { text } = await generateText({ model: recorded, messages })
      expect(text).toContain('And once more.')
      expect(sent.map((body) => body.split('"item_reference"').length - 1)).toEqual([0, 1, 2])
      const reached = service.providers[0]!.captured().at(-1)!.body
      expect(reached).not.toContain('item_reference')
      expect(reached.split(says).length - 1).toBe(2)
    })

    test('a tool loop continues after a text that is only referenced, non-streaming and streamed', async () => {
      const sent: string[] = []
      const recorded = recordingModel(sent)
      const first = await generateText({ model: recorded, messages: [asked] })
      const question: ModelMessage = { role: 'user', content: 'What is the weather in Oslo?' }
      const messages = [asked, ...first.response.messages, question]
      const whole = await generateText({ model: recorded, tools, messages, stopWhen: isStepCount(3) })
      expect(whole.text).toContain(weatherIn('Oslo'))
      const streamed = streamText({ model: recorded, tools, messages, stopWhen: isStepCount(3) })
      expect(await streamed.text).toContain(weatherIn('Oslo'))
      expect(sent).toHaveLength(5)
      for (const body of sent.slice(1)) expect(body).toContain('"item_reference"')
    })

    test('another account’s items are not found', async () => {
      const stranger = await service.addAccount(`stranger of ${format} with ${name}`, 'max')
      const first = await generateText({ model: recordingModel([]), messages: [asked] })
      const messages: ModelMessage[] = [asked, ...first.response.messages, { role: 'user', content: 'And again.' }]
      const error = await generateText({ model: recordingModel([], stranger.key), messages }).then(
        () => undefined,
        (reason: unknown) => reason,
      )
      if (!ai.APICallError.isInstance(error)) throw new Error('not rejected', { cause: error })
      expect(error.statusCode).toBe(404)
      expect(JSON.parse(error.responseBody ?? '')).toMatchObject({ error: { code: 'item_not_found', param: 'input' } })
      expect(error.message).toMatch(/^Item with id '\w+' not found\./)
      expect(error.isRetryable).toBe(false)
    })
  })
})

/** The text of an error part: an `Error`, or what the provider sent. */
function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : JSON.stringify(error)
}
