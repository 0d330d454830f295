import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { errorOf, expectUsage } from '../refusals.ts'
import { Service } from '../service.ts'
import { readAnswer, type Answer } from '../wire.ts'

let service: Service
beforeAll(async () => {
  const facts = { context_window: 100_000, max_output_tokens: 8_000, reasoning: false, capabilities: { tools: true } }
  service = await Service.start({
    formats: ['openai-chat', 'openai-responses'],
    settings: {
      backends: {
        one: { provider: 'alpha', model: 'm', ...facts },
        two: { provider: 'beta', model: 'm', ...facts, context_window: 50_000 },
        vectors: { provider: 'beta', model: 'v', embeddings: 'v-1' },
      },
      profiles: {
        'my/private': {
          backends: ['one'],
          premium: true,
          quota_units: 2,
          price: { currency: 'USD', input_per_million: 1.25 },
        },
        vectors: { backends: ['vectors'] },
      },
    },
  })
})
afterAll(() => service.stop())

interface Entry {
  readonly id: string
  readonly [name: string]: unknown
}

async function get(path: string, key: string | undefined = service.key): Promise<Answer> {
  const headers = { 'user-agent': 'svc-router-tests/1.0', ...(key === '' ? {} : { authorization: `Bearer ${key}` }) }
  return readAnswer(await fetch(`${service.origin}${path}`, { headers }))
}

async function list(key?: string): Promise<readonly Entry[]> {
  return (JSON.parse((await get('/v1/models', key)).text) as { data: Entry[] }).data
}

describe('GET /v1/models', () => {
  test("each profile lists its backends' configured facts and nothing else", async () => {
    const [frontier, fusion, mine, vectors] = await list()
    expect(frontier).toMatchObject({
      id: 'svc-router/frontier',
      context_window: 50_000,
      max_output_tokens: 8_000,
      capabilities: { streaming: { supported: true }, tools: { supported: true }, reasoning: { supported: false } },
      plans: ['free', 'pro', 'max'],
      quota_units: 1,
    })
    expect(frontier!['capabilities']).not.toHaveProperty('image_input')
    expect(frontier).not.toHaveProperty('price')
    expect(fusion).toMatchObject({
      id: 'svc-router/fusion',
      context_window: 50_000,
      premium: true,
      plans: ['pro', 'max'],
    })
    expect(mine).toMatchObject({
      context_window: 100_000,
      premium: true,
      plans: ['pro', 'max'],
      quota_units: 2,
      entitled: true,
      price: { currency: 'USD', input_per_million: 1.25 },
    })
    expect(vectors).toMatchObject({ kind: 'embeddings', vectors: 'v-1', endpoints: ['/v1/embeddings'] })
  })

  test('each key sees what its own plan allows', async () => {
    const { key } = await service.addAccount('free', 'free')
    expect((await list(key)).map(({ id, entitled }) => [id, entitled])).toEqual([
      ['svc-router/frontier', true],
      ['svc-router/fusion', false],
      ['my/private', false],
      ['vectors', true],
    ])
  })

  test('the list is consistent with the public catalog', async () => {
    const { profiles } = JSON.parse((await get('/model-catalog', '')).text) as { profiles: Entry[] }
    const entries = await list()
    expect(profiles.map(({ id }) => id)).toEqual(entries.map(({ id }) => id))
    for (const [index, { streaming: _, ...shown }] of profiles.entries()) expect(entries[index]).toMatchObject(shown)
  })

  test("undeclared facts of an account's own upstream are omitted", async () => {
    const { account, key } = await service.addAccount('owner', 'max')
    await service.connectOwn('made-up-credential', account.id)
    const [frontier, fusion, mine] = await list(key)
    // The context window is still the smallest known one, but a capability is listed only if every backend declares it.
    expect(frontier).toMatchObject({ context_window: 50_000, capabilities: { reasoning: { supported: false } } })
    expect(frontier!['capabilities']).not.toHaveProperty('tools')
    // The account's own upstream serves this profile, too.
    expect(fusion!['capabilities']).not.toHaveProperty('tools')
    expect(mine!['capabilities']).toHaveProperty('tools')
  })
})

describe('GET /v1/models/{id}', () => {
  test.each(['svc-router/frontier', 'svc-router%2Ffrontier', 'svc%2Drouter%2Ffrontier', 'my/private', 'vectors'])(
    '%s is the entry of the list',
    async (name) => {
      const answer = await get(`/v1/models/${name}`)
      expect(answer.status).toBe(200)
      const id = decodeURIComponent(name)
      expect(JSON.parse(answer.text)).toEqual((await list()).find((entry) => entry.id === id))
      expect(answer.headers.get('cache-control')).toBe('no-store')
      expectUsage(answer.headers)
    },
  )

  test.each([
    ['svc-router/fronteir', 'Did you mean \\"svc-router/frontier\\"?'],
    ['svc-router%2Ffrontier/', 'no profile'],
    ['svc-router%252Ffrontier', 'no profile'],
    ['%zz', 'no profile'],
    ['%00', 'no profile'],
    ['__proto__', 'no profile'],
    ['sk-proj-madeupmadeupmadeup', 'with the name in \\"model\\"'],
  ])('%s gets 404 model_not_found', async (name, words) => {
    const answer = await get(`/v1/models/${name}`)
    expect(answer.status).toBe(404)
    expect(errorOf(answer)).toMatchObject({ code: 'model_not_found', param: 'model' })
    expect(answer.text).toContain(words)
    expect(answer.text).not.toContain('madeup')
  })

  test('the entry needs a key and counts no request', async () => {
    expect((await get('/v1/models/svc-router/frontier', '')).status).toBe(401)
    const { key } = await service.addAccount('reader', 'free')
    const answer = await get('/v1/models/svc-router/frontier', key)
    expect(expectUsage(answer.headers)).toMatchObject({ 'x-quota-used': 0, 'x-ratelimit-remaining': 20 })
  })

  test('the entry is read-only', async () => {
    const headers = { 'user-agent': 'svc-router-tests/1.0', authorization: `Bearer ${service.key}` }
    for (const method of ['POST', 'DELETE']) {
      const answer = await fetch(`${service.baseUrl}/models/svc-router/frontier`, { method, headers })
      expect(answer.status).toBe(405)
      expect(answer.headers.get('allow')).toBe('GET, HEAD, OPTIONS')
    }
  })
})
