import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { linksFor } from '../../src/domain/links.ts'
import type { ScriptStep } from '../../src/simulation/providers/script.ts'
import { Service } from '../service.ts'
import { judgeReply } from '../simulation/simulated-judge.ts'
import type { Traffic } from './counting-fetch.ts'
import { errorOf } from './error-of.ts'
import { clients, connected, type ClientRequests, type Client, type Way } from './fusion-clients.ts'
import { weatherIn } from './openai-clients.ts'

type How = 'whole' | 'streamed'

/** The ways to request a deliberation, the formats that support each, and the expected `x-svc-router-upstream`. */
const ways: readonly (Way & {
  readonly name: string
  readonly formats: readonly Client['format'][]
  readonly upstream: Readonly<Record<How, string>>
})[] = [
  {
    name: 'svc-router/fusion',
    model: 'svc-router/fusion',
    formats: ['openai-chat', 'openai-responses', 'anthropic-messages'],
    upstream: { whole: 'fusion', streamed: 'fusion' },
  },
  {
    name: 'svc-router:fusion',
    model: 'svc-router/frontier',
    tool: { type: 'svc-router:fusion', parameters: { mode: 'always' } },
    formats: ['openai-chat', 'openai-responses', 'anthropic-messages'],
    // The model with the tool answers, but a stream starts before that model is called.
    upstream: { whole: 'alpha', streamed: 'fusion' },
  },
]
const cells = ways.flatMap((way) =>
  clients
    .filter(({ format }) => way.formats.includes(format))
    .map((client) => ({ name: `${client.name}, ${way.name}`, client, way })),
)

const says = 'This is a simulated answer from alpha.'
/** Long enough for a progress message and a keep-alive. */
const panelMs = 270
const judged: ScriptStep = { do: 'answer', text: judgeReply({ scores: { A: 6, B: 6, C: 6 } }) }

// Otherwise it warns in every call that it does not know the model and limits the answer.
globalThis.AI_SDK_LOG_WARNINGS = false

let service: Service
let freeKey: string
beforeAll(async () => {
  const seeing = (name: string) => ({
    provider: name,
    model: `model-of-${name}`,
    capabilities: { image_input: true, tools: true, structured_outputs: true },
  })
  service = await Service.start({
    settings: {
      keep_alive: '100ms',
      backends: Object.fromEntries(['alpha', 'beta', 'gamma'].map((name) => [name, seeing(name)])),
    },
  })
  freeKey = (await service.addAccount('frugal', 'free')).key
})
afterAll(() => service.stop())
afterEach(() => {
  for (const provider of service.providers) provider.script([])
})

/**
 * Runs a request with a slow panel through a new client. Returns the result, the traffic, and the number of requests to
 * each member.
 */
async function ask<Seen>(
  client: Client,
  way: Way,
  run: (asks: ClientRequests) => Promise<Seen>,
): Promise<{ seen: Seen; traffic: Traffic; asked: readonly number[] }> {
  const slow: ScriptStep = { do: 'slow_headers', ms: panelMs }
  for (const [index, provider] of service.providers.entries()) provider.script(index === 0 ? [slow, judged] : [slow])
  const before = service.providers.map((provider) => provider.counts().requests)
  const { asks, traffic } = connected(client, service, way)
  const seen = await run(asks)
  const asked = service.providers.map((provider, index) => provider.counts().requests - before[index]!)
  return { seen, traffic, asked }
}

/** Expects one successful HTTP request for each turn, of which only the first was answered by a deliberation. */
function expectTurns({ answers }: Traffic, turns: number, { upstream }: (typeof ways)[number], how: How): void {
  expect(answers.map(({ status }) => status)).toEqual(Array.from({ length: turns }, () => 200))
  const upstreams = answers.map(({ headers }) => headers.get('x-svc-router-upstream'))
  expect(upstreams).toEqual([upstream[how], ...Array.from({ length: turns - 1 }, () => 'alpha')])
}

describe.each(cells)('$name', ({ client, way }) => {
  const { helped } = connected(client, { baseUrl: 'http://127.0.0.1:9/v1', key: '-' } as Service, way).asks
  const texts = [
    ['a whole answer', 'whole', ({ whole }: ClientRequests) => whole('Say hello.')],
    ['a stream', 'streamed', ({ streamed }: ClientRequests) => streamed('Say hello.')],
    ...(helped === undefined
      ? []
      : [['its helper for streams', 'streamed', (asks: ClientRequests) => asks.helped!('Say hello.')] as const]),
  ] as const

  test.each(texts)('%s (%s) is the writer’s text alone, after one request', async (_, how, run) => {
    const { seen, traffic, asked } = await ask(client, way, run)
    expect(seen).toMatch(new RegExp(`^${says}`))
    expect(seen).not.toContain('models were asked')
    expectTurns(traffic, 1, way, how)
    // Each member once, plus alpha as judge and as writer.
    expect(asked).toEqual([3, 1, 1])
  })

  test.each([false, true])(
    'a tool loop has one deliberation, and one request for each turn, streamed: %s',
    async (stream) => {
      const run = ({ loop }: ClientRequests): Promise<string> => loop('What is the weather in Oslo?', stream)
      const { seen, traffic, asked } = await ask(client, way, run)
      expect(seen).toContain(weatherIn('Oslo'))
      expectTurns(traffic, 2, way, stream ? 'streamed' : 'whole')
      expect(asked).toEqual([4, 1, 1])
    },
  )

  test('an object matches the schema, after one request', async () => {
    const { seen, traffic, asked } = await ask(client, way, ({ object }) => object())
    expect(seen).toEqual({
      city: expect.stringMatching(/^simulated/) as string,
      degrees: expect.any(Number) as number,
    })
    expectTurns(traffic, 1, way, 'whole')
    expect(asked.slice(1)).toEqual([1, 1])
  })

  test('an image is read, after one request', async () => {
    const { seen, traffic, asked } = await ask(client, way, ({ image }) => image('What is this?'))
    expect(seen).toContain('I received 1 image')
    expectTurns(traffic, 1, way, 'whole')
    expect(asked).toEqual([3, 1, 1])
  })

  test.each(['whole', 'streamed'] as const)(
    'a free plan gets an error with the upgrade link, %s, after one request that reaches no provider',
    async (how) => {
      const before = service.providers.map((provider) => provider.counts().requests)
      const { asks, traffic } = connected(client, service, way, freeKey)
      const error = await errorOf(asks[how]('Say hello.'))
      const { message } = error as Error
      expect(message).toContain('requires a premium plan')
      expect(message).toContain(linksFor(service.config.appUrl).upgradeUrl)
      expect(traffic.answers.map(({ status }) => status)).toEqual([403])
      expect(traffic.sent).toHaveLength(1)
      expect(service.providers.map((provider) => provider.counts().requests)).toEqual(before)
    },
  )
})
