import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { Service } from '../service.ts'
import { clients, connected } from './fusion-clients.ts'
import { weatherIn } from './openai-clients.ts'

const says = /^This is a simulated answer from alpha\. You said: "Say hello\."\.$/
const way = { model: 'svc-router/frontier' }
const bodies = {
  '/chat/completions': { messages: [{ role: 'user', content: 'Hi' }] },
  '/responses': { input: 'Hi' },
  '/messages': { max_tokens: 100, messages: [{ role: 'user', content: 'Hi' }] },
} as const

// Otherwise it warns in every call that it does not know the model and limits the answer.
globalThis.AI_SDK_LOG_WARNINGS = false

describe.each(['openai-chat', 'openai-responses', 'anthropic-messages'] as const)(
  'a stream that ends with its cost, from a backend of format %s',
  (format) => {
    let service: Service
    beforeAll(async () => {
      const facts = { alpha: { usd_per_million: { input: 10, output: 100 } } }
      const profiles = { 'svc-router/frontier': { backends: ['alpha'], reports_cost: true } }
      service = await Service.start({ formats: [format], facts, settings: { profiles } })
    })
    afterAll(() => service.stop())

    test.each(Object.entries(bodies))('has it in a comment after the last event of %s', async (path, body) => {
      const answer = await service.post(path, { ...way, stream: true, ...body })
      expect(await answer.text()).toMatch(/\ndata: [^\n]*\n\n: X-Svc-Router-Cost: 0\.\d+\n\n$/)
    })

    test('is read by every client as usual, also in a tool loop', async () => {
      for (const client of clients) {
        const { asks } = connected(client, service, way)
        const answers = [await asks.streamed('Say hello.'), await asks.helped?.('Say hello.')]
        for (const text of answers) if (text !== undefined) expect(text, client.name).toMatch(says)
        const looped = await asks.loop('What is the weather in Oslo?', true)
        if (looped !== undefined) expect(looped, client.name).toMatch(new RegExp(weatherIn('Oslo')))
      }
    })
  },
)
