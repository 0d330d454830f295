import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { SkippingClock } from '../../src/simulation/skipping-clock.ts'
import { errorOf, expectUsage } from '../refusals.ts'
import { Service } from '../service.ts'
import { readAnswer, type Answer } from '../wire.ts'

const clock = new SkippingClock()
let service: Service

beforeAll(async () => {
  service = await Service.start({ clock })
})
afterAll(() => service.stop())

describe('GET /v1/models', () => {
  test('the list has the compatible shape and the one that Codex reads', async () => {
    const answer = await get('/v1/models')
    expect(answer.status).toBe(200)
    const body = JSON.parse(answer.text) as {
      object: string
      data: Record<string, unknown>[]
      models: Record<string, unknown>[]
    }
    expect(body.object).toBe('list')
    expect(body.data).toMatchObject([
      { id: 'svc-router/frontier', object: 'model', created: expect.any(Number), owned_by: 'svc-router' },
      { id: 'svc-router/fusion', object: 'model', premium: true },
    ])
    expect(body.models.map(({ slug }) => slug)).toEqual(['svc-router/frontier', 'svc-router/fusion'])
    expect(answer.headers.get('cache-control')).toBe('no-store')
    expectUsage(answer.headers)
  })

  test("the list gives each profile's backends for this account, without asking any", async () => {
    expect((await get('/v1/models')).headers.get('x-svc-router-backends')).toBe(
      '"svc-router/frontier";connected=3;usable=3;rejected=0;simulated=0;failing=0, "svc-router/fusion";connected=3;usable=3;rejected=0;simulated=0;failing=0',
    )
  })

  test('a query string is ignored', async () => {
    expect((await get('/v1/models?limit=1')).status).toBe(200)
  })

  test('HEAD returns the headers without a body', async () => {
    const answer = await get('/v1/models', { method: 'HEAD' })
    expect(answer).toMatchObject({ status: 200, text: '' })
    expectUsage(answer.headers)
  })

  test('the list has its own limiter of 300 a minute per account, and counts no request', async () => {
    const { key } = await service.addAccount('lister', 'free')
    clock.startMinute()
    const answers = await Promise.all(Array.from({ length: 310 }, () => get('/v1/models', {}, key)))
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(300)
    const refused = answers.find(({ status }) => status === 429)
    expect(Number(refused?.headers.get('retry-after'))).toBeGreaterThanOrEqual(1)
    expect(expectUsage(refused!.headers)).toMatchObject({ 'x-quota-used': 0, 'x-ratelimit-remaining': 0 })
    expect((await get('/v1/models')).status).toBe(200)
  })
})

describe('HEAD /, with which agents check that the server is up', () => {
  test('HEAD / is answered with only an ID, without a key', async () => {
    const answer = await readAnswer(await fetch(service.origin, { method: 'HEAD', headers: { 'user-agent': '' } }))
    expect(answer).toMatchObject({ status: 200, text: '' })
    expect(answer.headers.get('x-request-id')).toMatch(/^req_/)
  })

  test.each(['GET', 'POST'])('%s / gets 404', async (method) => {
    const answer = await readAnswer(await fetch(service.origin, { method, headers: { 'user-agent': 'test/1.0' } }))
    expect(answer.status).toBe(404)
    expect(errorOf(answer).code).toBe('not_found')
  })
})

describe('the public endpoints (contract 2.15, 2.16)', () => {
  test('GET /model-catalog lists the profiles and says that using them needs a key', async () => {
    const answer = await get('/model-catalog', {}, undefined)
    const body = JSON.parse(answer.text) as { note: string; base_url: string; profiles: Record<string, unknown>[] }
    expect(body.note).toContain('need an active API key')
    expect(body.base_url).toBe(service.baseUrl)
    expect(body.profiles[0]).toMatchObject({
      id: 'svc-router/frontier',
      premium: false,
      quota_units: 1,
      plans: ['free', 'pro', 'max'],
    })
  })

  test('GET /pricing gives plans, limits, the base URL, the checkout path, and the launch boundary', async () => {
    const body = JSON.parse((await get('/pricing', {}, undefined)).text) as Record<string, unknown>
    expect(body).toMatchObject({
      base_url: service.baseUrl,
      checkout_path: '/billing/upgrade',
      plans: [
        { id: 'free', requests_per_minute: 20, requests_per_month: 500, premium: false },
        { id: 'pro', requests_per_minute: 120, requests_per_month: 20_000, premium: true },
        { id: 'max', requests_per_minute: 600, requests_per_month: 100_000, premium: true },
      ],
      quota: { period: 'month' },
      launch_boundary: { managed_access: 'disabled' },
    })
  })

  test.each(['/model-catalog', '/pricing'])(
    '%s is the same for everyone, and is not sent again to a client that has it',
    async (path) => {
      const anonymous = await get(path, {}, undefined)
      const known = await get(path)
      expect(known.text).toBe(anonymous.text)
      expect(anonymous.headers.get('cache-control')).toBe('public, max-age=300')
      expect(known.headers.has('x-quota-used')).toBe(false)
      const etag = anonymous.headers.get('etag') ?? ''
      // A proxy that compresses the answer makes its ETag weak.
      for (const names of [etag, `W/${etag}`, `"other", ${etag}`, '*']) {
        const again = await get(path, { headers: { 'if-none-match': names } }, undefined)
        expect(again, names).toMatchObject({ status: 304, text: '' })
      }
    },
  )

  test("GET /health and GET /ready report the service's state", async () => {
    expect(JSON.parse((await get('/health', {}, undefined)).text)).toEqual({ status: 'ok' })
    expect(JSON.parse((await get('/ready', {}, undefined)).text)).toEqual({ ready: true, reasons: [] })
  })
})

describe('GET /health?stream', () => {
  test('the test stream sends three events 100 ms apart with the headers of a real stream', async () => {
    const response = await fetch(`${service.origin}/health?stream`)
    expect(response.headers.get('content-type')).toBe('text/event-stream; charset=utf-8')
    expect(response.headers.get('x-accel-buffering')).toBe('no')
    expect(response.headers.get('x-request-id')).toMatch(/^req_/)
    const events: string[] = []
    const timesMs: number[] = []
    for await (const piece of response.body!.pipeThrough(new TextDecoderStream())) {
      events.push(piece)
      timesMs.push(performance.now())
    }
    expect(events.join('').match(/^event: probe$/gm)).toHaveLength(3)
    expect(events.join('')).toMatch(/data: \{"number":3,"of":3\}\n\n$/)
    expect(timesMs.at(-1)! - timesMs[0]!).toBeGreaterThan(50)
  })
})

describe('the model endpoints answer in the shape of their convention', () => {
  test('POST /v1/chat/completions, not streaming', async () => {
    const body = (await (await service.chat()).json()) as Record<string, unknown>
    expect(body).toMatchObject({
      id: expect.any(String),
      object: 'chat.completion',
      created: expect.any(Number),
      model: 'svc-router/frontier',
      choices: [{ index: 0, message: { role: 'assistant', content: expect.any(String) }, finish_reason: 'stop' }],
      usage: { total_tokens: expect.any(Number) },
    })
  })

  test('POST /v1/chat/completions, streaming', async () => {
    const response = await service.chat({ stream: true })
    expect(response.headers.get('content-type')).toBe('text/event-stream; charset=utf-8')
    const text = await response.text()
    expect(text.startsWith('data: {')).toBe(true)
    expect(text.endsWith('data: [DONE]\n\n')).toBe(true)
  })

  test('POST /v1/responses, not streaming', async () => {
    const body = (await (await service.responses()).json()) as Record<string, unknown>
    expect(body).toMatchObject({
      id: expect.stringMatching(/^resp_/),
      object: 'response',
      status: 'completed',
      model: 'svc-router/frontier',
      output: [{ type: 'message', role: 'assistant' }],
    })
  })

  test('POST /v1/responses, streaming', async () => {
    const text = await (await service.responses({ stream: true })).text()
    expect(text.startsWith('event: response.created\n')).toBe(true)
    expect(text).toContain('event: response.completed\n')
  })

  test('the body decides on streaming, never Accept (contract 2.24)', async () => {
    const response = await service.chat({}, { accept: 'text/event-stream' })
    expect(response.headers.get('content-type')).toBe('application/json; charset=utf-8')
    await response.text()
  })
})

describe('unknown paths', () => {
  test.each(['/v1', '/v1/', '/v1/models/', '/v1/model', '/v1/v1/models', '/v1/__proto__', '/v1/constructor'])(
    '%s gets a 404 that names the base URL, with a key',
    async (path) => {
      const answer = await get(path)
      expect(answer.status).toBe(404)
      expect(errorOf(answer)).toMatchObject({ code: 'not_found' })
      expect(errorOf(answer).message).toContain(service.baseUrl)
    },
  )

  test.each(['/v1/', '/v1/models/', '/v1/v1/models', '/v1/anything'])(
    '%s gets 401 without a key (contract 2.20)',
    async (path) => {
      const answer = await get(path, {}, undefined)
      expect(answer.status).toBe(401)
      expect(errorOf(answer).code).toBe('key_missing')
    },
  )

  test.each(['/', '/favicon.ico', '/pricing/', '/PRICING', '/__proto__', '/toString'])(
    '%s gets 404 for everyone',
    async (path) => {
      expect((await get(path, {}, undefined)).status).toBe(404)
    },
  )

  test.each([
    ['/v1/models', 'POST', 'GET', 'GET, HEAD, OPTIONS'],
    ['/v1/models', 'DELETE', 'GET', 'GET, HEAD, OPTIONS'],
    ['/v1/chat/completions', 'GET', 'POST', 'POST, OPTIONS'],
    ['/v1/responses', 'PATCH', 'POST', 'POST, OPTIONS'],
    ['/pricing', 'POST', 'GET', 'GET, HEAD, OPTIONS'],
    ['/health', 'PUT', 'GET', 'GET, HEAD, OPTIONS'],
  ])('%s with %s gets a 405 that names %s and allows what OPTIONS lists', async (path, method, named, allow) => {
    const answer = await get(path, { method })
    expect(answer.status).toBe(405)
    expect(answer.headers.get('allow')).toBe(allow)
    expect((await get(path, { method: 'OPTIONS' }, undefined)).headers.get('allow')).toBe(allow)
    expect(errorOf(answer).message).toBe(`${method} is not allowed here. Use ${named}.`)
    expect(errorOf(answer).code).toBe('method_not_allowed')
  })

  test('only the public endpoints answer without a key', async () => {
    const paths = [
      '/v1/models',
      '/v1/chat/completions',
      '/v1/responses',
      '/v1/',
      '/v1/files',
      '/v1/../v1/models',
      '/v1/%6dodels',
      '//v1/models',
    ]
    for (const path of paths) {
      for (const method of ['GET', 'POST', 'PUT', 'DELETE', 'HEAD', 'PATCH']) {
        const { status } = await get(path, { method }, undefined)
        expect([401, 404], `${method} ${path}`).toContain(status)
      }
    }
  })
})

async function get(path: string, init: RequestInit = {}, ...keys: [key?: string | undefined]): Promise<Answer> {
  const key = keys.length === 0 ? service.key : keys[0]
  const headers = {
    'user-agent': 'svc-router-tests/1.0',
    ...(key === undefined ? {} : { authorization: `Bearer ${key}` }),
  }
  return readAnswer(
    await fetch(`${service.origin}${path}`, {
      ...init,
      headers: { ...headers, ...(init.headers as Record<string, string>) },
    }),
  )
}
