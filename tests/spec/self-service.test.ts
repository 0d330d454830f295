import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { setBudget } from '../../src/accounts/budgets.ts'
import { nanoPerUsd } from '../../src/domain/budgets.ts'
import { Service } from '../service.ts'

let service: Service
beforeAll(async () => {
  service = await Service.start({
    facts: {
      alpha: { usd_per_million: { input: 10, output: 100 } },
      beta: { usd_per_million: { input: 20, output: 200 } },
    },
    settings: {
      profiles: {
        'svc-router/frontier': { backends: ['alpha', 'beta'] },
        'with/cost': { backends: ['alpha'], reports_cost: true },
        'unknown/cost': { backends: ['gamma'], reports_cost: true },
      },
    },
  })
})
afterAll(() => service.stop())

interface RecordBody {
  readonly id: string
  readonly status: string
  readonly attempts: readonly { readonly backend: string; readonly outcome: string; readonly cost_usd?: string }[]
  readonly usage: { readonly input_tokens: number; readonly output_tokens: number }
  readonly cost: { readonly usd: string } | null
  readonly session: {
    readonly requests: number
    readonly requests_with_unknown_cost: number
    readonly cost_usd: string | null
  } | null
}
interface KeyBody {
  readonly quota: { readonly limit: number; readonly used: number; readonly remaining: number }
  readonly budgets: readonly { readonly scope: string }[]
}
interface ErrorBody {
  readonly error: { readonly code: string; readonly message: string }
}
interface Read<Body> {
  readonly status: number
  readonly headers: Headers
  readonly body: Body
}

async function read<Body = RecordBody>(path: string, key = service.key): Promise<Read<Body>> {
  const headers = { authorization: `Bearer ${key}`, 'user-agent': 'tests/1.0' }
  const answer = await fetch(`${service.baseUrl}${path}`, { headers })
  return { status: answer.status, headers: answer.headers, body: (await answer.json()) as Body }
}

/** The record of a request, once it has ended. */
async function recordOf(answer: Response): Promise<RecordBody> {
  const id = answer.headers.get('x-request-id')!
  for (let tries = 0; tries < 200; tries++) {
    const { body } = await read(`/requests/${id}`)
    if (body.status === 'done') return body
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  throw new Error(`request ${id} has not ended`)
}

/** Exact dollars of so many tokens, at dollars per million. */
const dollars = (...parts: readonly (readonly [tokens: number, perMillion: number])[]): string =>
  String(parts.reduce((sum, [tokens, price]) => sum + tokens * price, 0) / 1e6)

describe('GET /v1/requests/{id}', () => {
  test('shows what a request did, used, and cost, and no text', async () => {
    const answer = await service.chat()
    const { usage } = (await answer.json()) as { usage: { prompt_tokens: number; completion_tokens: number } }
    const record = await recordOf(answer)
    expect(record).toMatchObject({
      object: 'request',
      id: answer.headers.get('x-request-id'),
      profile: 'svc-router/frontier',
      format: 'openai-chat',
      stream: false,
      error: null,
      backend: 'alpha',
      model: 'model-of-alpha',
      attempts: [{ backend: 'alpha', model: 'model-of-alpha', outcome: 'answered' }],
      usage: { input_tokens: usage.prompt_tokens, output_tokens: usage.completion_tokens, estimated: false },
      cost: {
        usd: dollars([usage.prompt_tokens, 10], [usage.completion_tokens, 100]),
        cache_saved_usd: '0',
        estimated: false,
        prices: expect.stringMatching(/^\d{4}-\d\d-\d\d\+[0-9a-f]{8}$/),
      },
      quota_units: 1,
    })
    expect(JSON.stringify(record)).not.toContain('Say hello')
  })

  test('a stream that breaks off is paid for by what it delivered, beside the answer that follows', async () => {
    service.providers[0]!.script([{ do: 'status', status: 503 }])
    const failedOver = await recordOf(await service.chat())
    expect(failedOver.attempts.map(({ backend, outcome }) => [backend, outcome])).toEqual([
      ['alpha', 'server_error'],
      ['beta', 'answered'],
    ])
    // A provider charges nothing for an error.
    expect(failedOver.attempts[0]).not.toHaveProperty('cost_usd')
    const { input_tokens: input, output_tokens: output } = failedOver.usage
    expect(failedOver.attempts[1]!.cost_usd).toBe(dollars([input, 20], [output, 200]))
    expect(failedOver.cost?.usd).toBe(failedOver.attempts[1]!.cost_usd)
  })

  test('shows what its session cost so far: the same session in all profiles, and of one account only', async () => {
    const messages = [{ role: 'user', content: 'Tell me a long story. '.repeat(200) }]
    const named = { 'x-session-id': 'my session' }
    const costs = []
    for (const model of ['svc-router/frontier', 'with/cost', 'unknown/cost']) {
      const { session, cost } = await recordOf(await service.chat({ model, messages }, named))
      costs.push(Number(cost?.usd ?? 0))
      expect(session).toMatchObject({ id: expect.stringMatching(/^ses_[\w-]{22}$/), requests: costs.length })
      expect(Number(session?.cost_usd)).toBeCloseTo(
        costs.reduce((sum, one) => sum + one),
        9,
      )
      expect(session?.requests_with_unknown_cost).toBe(model === 'unknown/cost' ? 1 : 0)
    }
    const other = await service.addAccount('neighbor', 'max')
    const answer = await service.chat({ messages }, { ...named, authorization: `Bearer ${other.key}` })
    const id = answer.headers.get('x-request-id')!
    await vi.waitFor(async () => expect((await service.store.findRequest(id))?.state).toBe('done'))
    expect((await read(`/requests/${id}`, other.key)).body.session).toMatchObject({ requests: 1 })
    expect((await recordOf(await service.chat())).session, 'a short request').toBeNull()
  })

  test('other accounts, unknown IDs, and malformed ones give the same 404', async () => {
    const { id } = await recordOf(await service.chat())
    const { key } = await service.addAccount('stranger', 'max')
    const answers = await Promise.all([
      read<ErrorBody>(`/requests/${id}`, key),
      read<ErrorBody>('/requests/req_0123456789ABCDEFGHIJKLMN'),
      read<ErrorBody>('/requests/%00'),
      read<ErrorBody>('/requests/key_1'),
    ])
    const shown = answers.map(({ status, body }) => [status, body.error.code, body.error.message])
    expect(new Set(shown.map((one) => JSON.stringify(one))).size).toBe(1)
    expect(shown[0]!.slice(0, 2)).toEqual([404, 'request_not_found'])
    expect((await read(`/requests/${id}`, 'nobody')).status).toBe(401)
    expect((await read(`/requests/${id}`, await service.addKey(service.account.id))).status).toBe(200)
  })

  test('takes nothing from the plan, and is not cached', async () => {
    const { id } = await recordOf(await service.chat())
    const before = (await read<KeyBody>('/key')).body.quota.used
    const { headers } = await read(`/requests/${id}`)
    expect(headers.get('cache-control')).toBe('no-store')
    expect(headers.get('x-quota-used')).toBe(String(before))
    expect((await read<KeyBody>('/key')).body.quota.used).toBe(before)
  })
})

describe('GET /v1/key', () => {
  test('shows the plan, the limits of the key, and what is left', async () => {
    const { key, stored } = await service.addLimitedKey({ profiles: ['svc-router/frontier'], perMinute: 7 })
    const { body } = await read<KeyBody>('/key', key.reveal())
    expect(body).toMatchObject({
      object: 'key',
      id: stored.id,
      name: 'limited',
      account: service.account.id,
      expires_at: null,
      limits: { profiles: ['svc-router/frontier'], requests_per_minute: 7, addresses: null },
      plan: { id: 'max', premium: true },
      requests_per_minute: { limit: 7, remaining: 7 },
      quota: { period: 'month' },
    })
    expect(body.quota.limit - body.quota.used).toBe(body.quota.remaining)
    expect(JSON.stringify(body)).not.toContain(key.reveal())
  })

  test('shows the budgets that count the key, and none of another key', async () => {
    const { account, key, stored } = await service.addAccount('with budgets', 'max')
    const other = await service.addKey(account.id)
    const deps = { ...service.accountsDeps, store: service.store }
    const kind = { unit: 'usd', window: 'month', rolling: false } as const
    await setBudget(deps, account.id, { ...kind, scope: 'account', subject: '', limit: 5 * nanoPerUsd }, 'account', [])
    await setBudget(deps, account.id, { ...kind, scope: 'key', subject: stored.id, limit: nanoPerUsd }, 'account', [])
    const scopes = async (of: string) => (await read<KeyBody>('/key', of)).body.budgets.map(({ scope }) => scope)
    // Both may be set in the same millisecond.
    expect((await scopes(key)).toSorted()).toEqual(['account', 'key'])
    expect(await scopes(other)).toEqual(['account'])
    const { budgets } = (await read<KeyBody>('/key', key)).body
    expect(budgets.find(({ scope }) => scope === 'account')).toMatchObject({
      unit: 'usd',
      limit: 5,
      spent: 0,
      left: 5,
    })
  })
})

describe('X-Svc-Router-Cost', () => {
  test('has the exact cost of an answer that is not streamed, in profiles that report it', async () => {
    const answer = await service.chat({ model: 'with/cost' })
    const { usage } = (await answer.json()) as { usage: { prompt_tokens: number; completion_tokens: number } }
    expect(answer.headers.get('x-svc-router-cost')).toBe(
      dollars([usage.prompt_tokens, 10], [usage.completion_tokens, 100]),
    )
    expect((await service.chat()).headers.has('x-svc-router-cost')).toBe(false)
  })

  test.each([{ stream_options: { include_usage: true } }, {}])(
    'is a comment after the last event of a stream, whether or not the client asks for usage: %j',
    async (more) => {
      const stream = await service.chat({ model: 'with/cost', stream: true, ...more })
      expect(stream.headers.has('x-svc-router-cost')).toBe(false)
      const text = await stream.text()
      const { cost } = await recordOf(stream)
      expect(cost).not.toBeNull()
      expect(text.endsWith(`data: [DONE]\n\n: X-Svc-Router-Cost: ${cost!.usd}\n\n`)).toBe(true)
      const silent = await service.chat({ stream: true, ...more })
      expect(await silent.text()).toMatch(/data: \[DONE\]\n\n$/)
    },
  )

  test('is not in a stream that breaks off, or whose cost is unknown', async () => {
    const unknown = await service.chat({ model: 'unknown/cost', stream: true })
    expect(await unknown.text()).toMatch(/data: \[DONE\]\n\n$/)
    service.providers[0]!.script([{ do: 'cut', afterEvents: 6, text: 'one two three four five six' }])
    const broken = await service.chat({ model: 'with/cost', stream: true })
    expect(await broken.text()).not.toContain('X-Svc-Router-Cost')
  })

  test('is absent if the cost is unknown', async () => {
    const answer = await service.chat({ model: 'unknown/cost' })
    expect(answer.headers.has('x-svc-router-cost')).toBe(false)
    expect((await recordOf(answer)).cost).toBeNull()
  })
})
