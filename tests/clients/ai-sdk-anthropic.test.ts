import type { APICallError as CallError, LanguageModel, ModelMessage } from 'ai'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { linksFor } from '../../src/domain/links.ts'
import { Service } from '../service.ts'
import { majors } from './ai-clients.ts'
import { collect, pixel, weatherIn } from './openai-clients.ts'
import { withoutSleeping } from './without-sleeping.ts'

const frontier = 'svc-router/frontier'
const says = 'This is a simulated answer from alpha.'
const schema = z.object({ city: z.string(), degrees: z.number() })
/** Used for answers and for arguments of calls: the simulated model fills both in the same way. */
const sample = { city: expect.stringContaining('simulated') as string, degrees: expect.any(Number) as number }

// Otherwise it warns in every call that it does not know the model and limits the answer.
globalThis.AI_SDK_LOG_WARNINGS = false

describe.each(majors)('$name', ({ ai, createAnthropic }) => {
  const { APICallError, generateText, isStepCount, Output, RetryError, streamText, tool } = ai

  const tools = {
    get_weather: tool({
      description: 'The weather of a city.',
      inputSchema: z.object({ city: z.string() }),
      execute: ({ city }) => weatherIn(city),
    }),
  }

  describe.each(['openai-chat', 'openai-responses', 'anthropic-messages'] as const)(
    '@ai-sdk/anthropic, with a backend of format %s',
    (format) => {
      let service: Service
      let model: LanguageModel
      beforeAll(async () => {
        service = await Service.start({ formats: [format] })
        model = createAnthropic({ baseURL: service.baseUrl, apiKey: service.key })(frontier)
      })
      afterAll(() => service.stop())
      afterEach(() => service.providers[0]!.script([]))

      test('generateText returns the text and its usage, with every signal in the headers', async () => {
        const { text, finishReason, usage, response } = await generateText({ model, prompt: 'Say hello.' })
        expect(text).toContain(says)
        expect(finishReason).toBe('stop')
        expect(usage.inputTokens).toBeGreaterThan(0)
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

      test.each([true, false])('a tool loop of two steps ends with both results, streamed: %s', async (stream) => {
        const loop = { model, tools, prompt: 'What is the weather in Oslo and Lima?', stopWhen: isStepCount(3) }
        const result = stream ? streamText(loop) : await generateText(loop)
        const answer = await result.text
        const steps = await result.steps
        expect(steps).toHaveLength(2)
        expect(steps[0]!.toolCalls.map(({ input }) => input)).toEqual([{ city: 'Oslo' }, { city: 'Lima' }])
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

      test.each(['auto', 'jsonTool', 'outputFormat'] as const)(
        'an output object matches the schema, in the mode %s',
        async (structuredOutputMode) => {
          const { output } = await generateText({
            model,
            output: Output.object({ schema }),
            prompt: 'The weather?',
            providerOptions: { anthropic: { structuredOutputMode } },
          })
          expect(output).toEqual(sample)
        },
      )

      test('an image is read', async () => {
        const content = [
          { type: 'text' as const, text: 'What is this?' },
          { type: 'file' as const, data: new URL(pixel), mediaType: 'image/png' },
        ]
        const { text } = await generateText({ model, messages: [{ role: 'user', content }] })
        expect(text).toContain('I received 1 image')
      })

      test.each(['fin', 'rst', 'end'] as const)(
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
    },
  )

  describe('rejections, as users of @ai-sdk/anthropic see them', () => {
    const plans = {
      max: { name: 'Max', requests_per_minute: 600, requests_per_month: 100_000, premium: true },
      tiny: { name: 'Tiny', requests_per_minute: 100, requests_per_month: 1 },
      slow: { name: 'Slow', requests_per_minute: 1, requests_per_month: 500 },
    }
    let service: Service
    let links: ReturnType<typeof linksFor>
    let sent = 0
    beforeAll(async () => {
      service = await Service.start({ formats: ['anthropic-messages'], settings: { plans } })
      links = linksFor(service.config.appUrl)
    })
    afterAll(() => service.stop())

    function connect(apiKey: string, profile = frontier): LanguageModel {
      sent = 0
      const counting: typeof fetch = (input, init) => {
        sent += 1
        return fetch(input, init)
      }
      return createAnthropic({ baseURL: service.baseUrl, apiKey, fetch: counting })(profile)
    }

    async function exhausted(plan: string): Promise<LanguageModel> {
      const { key } = await service.addAccount(`${plan}-${Math.random()}`, plan)
      const model = connect(key)
      await generateText({ model, prompt: 'Hello' })
      sent = 0
      return model
    }

    test('a bad key gets a 401 after one request', async () => {
      const error = await rejectionOf(connect('sk_svc_mistyped'), 401)
      expect(error.message.endsWith(links.accountUrl)).toBe(true)
      expect(sent).toBe(1)
    })

    test('an exhausted month gets a 402 after one request', async () => {
      const error = await rejectionOf(await exhausted('tiny'), 402)
      expect(error.message.endsWith(links.upgradeUrl)).toBe(true)
      expect(sent).toBe(1)
    })

    test('a premium profile on a plan without it gets a 403 after one request', async () => {
      const { key } = await service.addAccount('plain', 'tiny')
      const error = await rejectionOf(connect(key, 'svc-router/fusion'), 403)
      expect(error.message.endsWith(links.upgradeUrl)).toBe(true)
      expect(sent).toBe(1)
    })

    test('a mistyped profile gets a 404 after one request', async () => {
      const error = await rejectionOf(connect(service.key, 'svc-router/fronteir'), 404)
      expect(error.message).toContain('Did you mean "svc-router/frontier"?')
      expect(sent).toBe(1)
    })

    test('an exhausted minute gets a 429 after three requests, each after the wait in the error', async () => {
      const model = await exhausted('slow')
      const slept = await withoutSleeping(/delay .*provider-utils\//, async () => {
        const error: unknown = await generateText({ model, prompt: 'Hello' }).catch((reason: unknown) => reason)
        if (!RetryError.isInstance(error)) throw new Error('not rejected', { cause: error })
        expect(error.message).toMatch(/Please try again in \d+s\.$/)
      })
      expect(sent).toBe(3)
      expect(slept.filter((ms) => ms >= 1_000)).toHaveLength(2)
    })
  })

  async function rejectionOf(model: LanguageModel, status: number): Promise<CallError> {
    const error = await generateText({ model, prompt: 'Hello' }).then(
      () => undefined,
      (reason: unknown) => reason,
    )
    // A retried call would end with a RetryError.
    if (!APICallError.isInstance(error)) throw new Error('not rejected at once', { cause: error })
    expect(error.statusCode).toBe(status)
    expect(error.message.length).toBeLessThanOrEqual(240)
    return error
  }
})

/** The text of an error part: an `Error`, or what the provider sent. */
function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : JSON.stringify(error)
}
