import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { Service } from '../service.ts'

interface Route {
  readonly profile: string
  readonly format: string
  readonly sort: string | null
  readonly fusion: boolean
  readonly refusal: { readonly code: string; readonly message: string } | null
  readonly backends: readonly {
    readonly backend: string
    readonly share?: number
    readonly lane: string
    readonly doubts: readonly string[]
  }[]
  readonly left_out: readonly { readonly backend: string; readonly reason: string }[]
  readonly filters: Readonly<Record<string, number>>
}

let service: Service
beforeAll(async () => {
  service = await Service.start({
    formats: ['openai-chat', 'openai-chat', 'anthropic-messages'],
    settings: {
      profiles: {
        'team/even': { backends: ['alpha', 'beta', 'gamma'], routing: { sort: 'balanced' } },
        'team/eu': { backends: ['alpha', 'beta'], routing: { regions: ['eu'] } },
      },
    },
  })
})
afterAll(() => service.stop())

const messages = [{ role: 'user', content: 'Why?' }]

async function route(body: object, headers: Record<string, string> = {}): Promise<{ status: number; body: Route }> {
  const response = await fetch(`${service.baseUrl}/route`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${service.key}`,
      'content-type': 'application/json',
      'user-agent': 't/1',
      ...headers,
    },
    body: JSON.stringify({ model: 'svc-router/frontier', ...body }),
  })
  return { status: response.status, body: (await response.json()) as Route }
}

const ids = ({ backends }: Route): string[] => backends.map(({ backend }) => backend)

describe('POST /v1/route', () => {
  test('reads a body without messages as a Responses request, which needs no input', async () => {
    expect((await service.post('/responses', { model: 'svc-router/frontier' })).status).toBe(200)
    expect(await route({})).toMatchObject({ status: 200, body: { format: 'openai-responses', refusal: null } })
  })

  test('accepts a background request if /v1/responses does', async () => {
    const ask = { input: 'Why?', background: true }
    expect(await route(ask)).toEqual(await route({ input: 'Why?' }))
    const refused = await service.responses({ ...ask, store: false })
    const { error } = (await refused.json()) as { error: { message: string } }
    expect(refused.status).toBe(400)
    expect(await route({ ...ask, store: false })).toMatchObject({
      status: 400,
      body: { error: { param: 'background', message: error.message } },
    })
  })

  test('lists the backends that the same request gets, in every convention, and calls none', async () => {
    const calls = (): number => service.providers.reduce((sum, provider) => sum + provider.counts().requests, 0)
    const before = calls()
    const chat = await route({ messages })
    expect(chat).toMatchObject({
      status: 200,
      body: { format: 'openai-chat', sort: 'order', refusal: null, fusion: false },
    })
    expect(ids(chat.body)).toEqual(['alpha', 'beta', 'gamma'])
    expect(chat.body.backends.map(({ lane }) => lane)).toEqual(['relay', 'relay', 'translation'])
    expect((await route({ input: 'Why?' })).body.format).toBe('openai-responses')
    const anthropic = await route({ messages, max_tokens: 5 }, { 'anthropic-version': '2023-06-01' })
    expect(anthropic.body.format).toBe('anthropic-messages')
    expect(anthropic.body.backends.map(({ lane }) => lane)).toEqual(['translation', 'translation', 'relay'])
    expect(calls()).toBe(before)
  })

  test('shows what preferences change, with a count for each reason', async () => {
    const { body } = await route({ messages, routing: { ignore: ['alpha'], order: ['gamma'] } })
    expect(ids(body)).toEqual(['gamma', 'beta'])
    expect(body.left_out).toEqual([{ backend: 'alpha', reason: 'ignore', until: null }])
    expect(body.filters).toEqual({ ignore: 1 })
    const even = (await route({ model: 'team/even', messages })).body
    expect(even.sort).toBe('balanced')
    expect(even.backends.reduce((sum, { share = 0 }) => sum + share, 0)).toBeCloseTo(1, 2)
  })

  test('reports the refusal of requirements that no backend meets, and the backends that fail them', async () => {
    const { status, body } = await route({ model: 'team/eu', messages })
    expect(status).toBe(200)
    expect(body.refusal?.code).toBe('no_backend_matches')
    expect(body.refusal?.message).toContain('2 not in one of the required regions')
    expect(body).toMatchObject({ profile: 'team/eu', backends: [], filters: { regions: 2 } })
  })

  test('the list of models counts only backends that meet the requirements of the profile', async () => {
    const response = await fetch(`${service.baseUrl}/models/team%2Feu`, {
      headers: { authorization: `Bearer ${service.key}`, 'user-agent': 't/1' },
    })
    expect([response.status, response.headers.get('x-svc-router-backends')]).toEqual([
      200,
      expect.stringContaining('connected=0'),
    ])
  })

  test('rejects what a request would be rejected for', async () => {
    for (const [body, code] of [
      [{ messages: 'Why?' }, 'invalid_request'],
      [{ messages, routing: { zero: true } }, 'invalid_request'],
      [{ model: 'none', messages }, 'model_not_found'],
    ] as const) {
      const refused = (await route(body)) as unknown as { status: number; body: { error: { code: string } } }
      expect(refused.status).toBeGreaterThanOrEqual(400)
      expect(refused.body.error.code).toBe(code)
    }
    expect((await route({ messages }, { authorization: 'Bearer wrong' })).status).toBe(401)
  })

  test('takes nothing from the quota', async () => {
    const used = async (): Promise<string | null> => {
      const response = await fetch(`${service.baseUrl}/models`, {
        headers: { authorization: `Bearer ${service.key}`, 'user-agent': 't/1' },
      })
      return response.headers.get('x-quota-used')
    }
    const before = await used()
    await route({ messages })
    expect(await used()).toBe(before)
  })
})
