import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { Service } from '../service.ts'
import { clients, connected, type ClientRequests } from './fusion-clients.ts'
import { weatherIn } from './openai-clients.ts'

const says = /^This is a simulated answer from alpha\. You said: "Say hello\."\.$/
const way = { model: 'svc-router/frontier' }
/** Longer than the keep-alive interval, so that there is a keep-alive between any two events. */
const tokenDelayMs = 140
const settings = { keep_alive: '100ms' }

// Otherwise it warns in every call that it does not know the model and limits the answer.
globalThis.AI_SDK_LOG_WARNINGS = false

const asked: Readonly<
  Record<string, { readonly ask: (asks: ClientRequests) => Promise<string> | undefined; readonly says: RegExp }>
> = {
  streaming: { ask: ({ streamed }) => streamed('Say hello.'), says },
  'streaming with its helper': { ask: ({ helped }) => helped?.('Say hello.'), says },
  'a tool loop': { ask: ({ loop }) => loop('What is the weather in Oslo?', true), says: new RegExp(weatherIn('Oslo')) },
}

describe.concurrent.each(['openai-chat', 'openai-responses', 'anthropic-messages'] as const)(
  'a backend of format %s and pauses before every event, each pause with a keep-alive',
  (format) => {
    // After 1 event, the service starts the stream itself. After 5, the stream is relayed if possible.
    describe.each([1, 5])('the pauses start after event %i', (delayAfterEvents) => {
      let service: Service
      beforeAll(async () => {
        service = await Service.start({ formats: [format], settings })
        service.providers[0]!.script([{ do: 'answer', tokenDelayMs, delayAfterEvents, repeat: true }])
      })
      afterAll(() => service.stop())

      test.each(Object.entries(asked))('no client fails: %s', async (_, { ask, says: expected }) => {
        const run = async (client: (typeof clients)[number]): Promise<readonly [string, string | undefined]> => {
          const { asks } = connected(client, service, way)
          return [client.name, await ask(asks)?.catch((error: unknown) => `failed: ${String(error)}`)]
        }
        for (const [name, text] of await Promise.all(clients.map(run)))
          if (text !== undefined) expect(text, name).toMatch(expected)
      })
    })
  },
)
