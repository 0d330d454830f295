import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { linksFor } from '../../src/domain/links.ts'
import type { ScriptStep } from '../../src/simulation/providers/script.ts'
import { Service } from '../service.ts'
import { judgeReply } from '../simulation/simulated-judge.ts'
import type { Traffic } from './counting-fetch.ts'
import { errorOf } from './error-of.ts'
import { clients, connected, type Asks, type Client, type Way } from './fusion-clients.ts'
import { weatherIn } from './openai-clients.ts'

type How = 'whole' | 'streamed'

/** The ways to a deliberation, who speaks a format that has them, and what the head of its answer names. */
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
    // The model that has the tool answers; a stream is begun before it is asked.
    upstream: { whole: 'alpha', streamed: 'fusion' },
  },
]
const cells = ways.flatMap((way) =>
  clients
    .filter(({ format }) => way.formats.includes(format))
    .map((client) => ({ name: `${client.name}, ${way.name}`, client, way })),
)

const says = 'This is a simulated answer from alpha.'
/** Long enough for progress to be told and a keep-alive to fall due. */
const panelMs = 270
const judged: ScriptStep = { do: 'answer', text: judgeReply({ scores: { A: 6, B: 6, C: 6 } }) }

// It warns in every call that it does not know the model and limits the answer.
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
 * One deliberation whose panel takes a while; each asks through a client of its own. Gives what was seen, and how often
 * each member was asked.
 */
async function ask<Seen>(
  client: Client,
  way: Way,
  run: (asks: Asks) => Promise<Seen>,
): Promise<{ seen: Seen; traffic: Traffic; asked: readonly number[] }> {
  const slow: ScriptStep = { do: 'slow_headers', ms: panelMs }
  for (const [index, provider] of service.providers.entries()) provider.script(index === 0 ? [slow, judged] : [slow])
  const before = service.providers.map((provider) => provider.counts().requests)
  const { asks, traffic } = connected(client, service, way)
  const seen = await run(asks)
  const asked = service.providers.map((provider, index) => provider.counts().requests - before[index]!)
  return { seen, traffic, asked }
}

/** One HTTP request for each turn, each answered, the first one by a deliberation. */
function expectTurns({ answers }: Traffic, turns: number, { upstream }: (typeof ways)[number], how: How): void {
  expect(answers.map(({ status }) => status)).toEqual(Array.from({ length: turns }, () => 200))
  const upstreams = answers.map(({ headers }) => headers.get('x-svc-router-upstream'))
  expect(upstreams).toEqual([upstream[how], ...Array.from({ length: turns - 1 }, () => 'alpha')])
}

describe.each(cells)('$name', ({ client, way }) => {
  const { helped } = connected(client, { baseUrl: 'http://127.0.0.1:9/v1', key: '-' } as Service, way).asks
  const texts = [
    ['a whole answer', 'whole', ({ whole }: Asks) => whole('Say hello.')],
    ['a stream', 'streamed', ({ streamed }: Asks) => streamed('Say hello.')],
    ...(helped === undefined
      ? []
      : [['its helper for streams', 'streamed', (asks: Asks) => asks.helped!('Say hello.')] as const]),
  ] as const

  test.each(texts)('%s (%s) is the writer’s text alone, after one request', async (_, how, run) => {
    const { seen, traffic, asked } = await ask(client, way, run)
    expect(seen).toMatch(new RegExp(`^${says}`))
    expect(seen).not.toContain('models were asked')
    expectTurns(traffic, 1, way, how)
    // The panel, and for alpha the judge's and the writer's part besides.
    expect(asked).toEqual([3, 1, 1])
  })

  test.each([false, true])('a tool loop has one deliberation and one request a turn, streamed: %s', async (stream) => {
    const run = ({ loop }: Asks): Promise<string> => loop('What is the weather in Oslo?', stream)
    const { seen, traffic, asked } = await ask(client, way, run)
    expect(seen).toContain(weatherIn('Oslo'))
    expectTurns(traffic, 2, way, stream ? 'streamed' : 'whole')
    expect(asked).toEqual([4, 1, 1])
  })

  test('an object fits the schema, after one request', async () => {
    const { seen, traffic, asked } = await ask(client, way, ({ object }) => object())
    expect(seen).toEqual({
      city: expect.stringMatching(/^simulated/) as string,
      degrees: expect.any(Number) as number,
    })
    expectTurns(traffic, 1, way, 'whole')
    expect(asked.slice(1)).toEqual([1, 1])
  })

  test('an image is seen, after one request', async () => {
    const { seen, traffic, asked } = await ask(client, way, ({ image }) => image('What is this?'))
    expect(seen).toContain('I received 1 image')
    expectTurns(traffic, 1, way, 'whole')
    expect(asked).toEqual([3, 1, 1])
  })

  test.each(['whole', 'streamed'] as const)(
    'a free plan is told at once what to do, %s: one request, and nobody is asked',
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
