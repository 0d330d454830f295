import { createHmac } from 'node:crypto'
import { afterEach, describe, expect, test } from 'vitest'
import { SkippingClock } from '../../src/simulation/skipping-clock.ts'
import { serveHttp, serveTcp, until } from '../providers/support.ts'
import { errorOf, expectUsage } from '../refusals.ts'
import { Service, type ServiceOptions } from '../service.ts'
import { budgetOf, nanoPerUsd, pricedFacts, setTestBudget, usdPerMillion } from '../test-budgets.ts'
import { readAnswer } from '../wire.ts'

const messages = [{ role: 'user', content: 'Say hello.' }]

let service: Service
afterEach(() => service.stop())

async function start(options: ServiceOptions = {}): Promise<void> {
  service = await Service.start({ facts: pricedFacts, ...options })
}

const budget = (asked: Parameters<typeof setTestBudget>[1]): Promise<void> => setTestBudget(service, asked)
const state = () => budgetOf(service)
const sent = (at = 0) => JSON.parse(service.providers[at]!.captured().at(-1)!.body) as Record<string, unknown>
const asked = (): number => service.providers.reduce((sum, provider) => sum + provider.captured().length, 0)

describe('a budget of an account', () => {
  test('counts what answers cost, and refuses with 402 once it is used up, before any backend is asked', async () => {
    await start()
    await budget({ limit: 0.2 * nanoPerUsd })
    const first = await service.chat()
    const { usage } = (await first.json()) as { usage: { prompt_tokens: number; completion_tokens: number } }
    expect(first.status).toBe(200)
    const cost = usage.prompt_tokens * usdPerMillion.input + usage.completion_tokens * usdPerMillion.output
    await expect.poll(async () => (await state()).spent).toBe(cost * 1_000)
    expect(await state()).toMatchObject({ held: 0, left: 0.2 * nanoPerUsd - cost * 1_000 })
    await budget({ limit: 0.01 * nanoPerUsd })
    const before = asked()
    const refused = await readAnswer(await service.chat())
    expect(refused.status, refused.text).toBe(402)
    expect(refused.headers.get('x-should-retry')).toBe('false')
    expect(refused.headers.get('retry-after')).toBeNull()
    expect(expectUsage(refused.headers)).toMatchObject({ 'x-quota-used': 1 })
    const error = errorOf(refused) as unknown as Record<string, unknown>
    expect(error).toMatchObject({
      code: 'budget_exceeded',
      budget: {
        scope: 'account',
        unit: 'usd',
        window: 'month',
        rolling: false,
        set_by: 'account',
        limit: 0.01,
        held: 0,
      },
    })
    expect(error['resets_at']).toBe(Date.UTC(new Date().getUTCFullYear(), new Date().getUTCMonth() + 1) / 1000)
    expect(String(error['message']).match(/https?:\S+/g)).toEqual([`${service.config.appUrl}/account/budgets`])
    expect(asked()).toBe(before)
  })

  test('sends an output limit that it can pay for, lower when less is left', async () => {
    await start()
    await budget({ limit: 1 * nanoPerUsd })
    expect((await service.chat()).status).toBe(200)
    expect(sent()).toMatchObject({ max_tokens: 4_096 })
    await budget({ limit: 0.25 * nanoPerUsd })
    expect((await service.chat()).status).toBe(200)
    const lowered = Number(sent()['max_tokens'])
    expect(lowered).toBeGreaterThan(1_024)
    expect(lowered).toBeLessThan(2_500)
    const own = await service.chat({ max_tokens: 100 })
    expect([own.status, sent()['max_tokens']]).toEqual([200, 100])
    expect(own.headers.has('x-svc-router-max-output-tokens')).toBe(false)
    expect((await service.chat({ max_tokens: 3_000 })).status).toBe(402)
  })

  test.each([
    ['openai-chat', 'max_tokens'],
    ['openai-responses', 'max_output_tokens'],
    ['anthropic-messages', 'max_tokens'],
  ] as const)('limits the output of %s backends, relayed and translated', async (format, field) => {
    await start({ formats: [format] })
    await budget({ limit: 0.3 * nanoPerUsd })
    const path = { model: 'svc-router/frontier' }
    const bodies = [
      ['/chat/completions', { ...path, messages }],
      ['/responses', { ...path, input: 'Say hello.' }],
      ['/messages', { ...path, messages, max_tokens: 64_000 }],
      ['/chat/completions', { ...path, messages, stream: true }],
    ] as const
    for (const [to, body] of bodies) {
      const answer = await service.post(to, body)
      expect(answer.status, `${to} ${await answer.text()}`).toBe(200)
      const limit = Number(sent()[field])
      expect(answer.headers.get('x-svc-router-max-output-tokens'), to).toBe(String(limit))
      expect(limit, to).toBeGreaterThan(1_024)
      expect(limit, to).toBeLessThan(3_000)
    }
  })

  test('holds what running requests may cost, and says when to retry if that is all that is missing', async () => {
    await start()
    await budget({ limit: 0.5 * nanoPerUsd })
    service.providers[0]!.script([{ do: 'silence', repeat: true }])
    const leave = new AbortController()
    const running = service.post(
      '/chat/completions',
      { model: 'svc-router/frontier', messages, max_tokens: 4_000 },
      {},
      leave.signal,
    )
    await expect.poll(async () => (await state()).held).toBeGreaterThan(0.4 * nanoPerUsd)
    const refused = await readAnswer(await service.chat({ max_tokens: 4_000 }))
    expect([refused.status, errorOf(refused).code]).toEqual([429, 'budget_held'])
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0)
    leave.abort()
    await running.catch(() => {})
    // The provider may bill a request that it began.
    await expect.poll(async () => (await state()).held).toBe(0)
    expect((await state()).spent).toBeGreaterThan(0.4 * nanoPerUsd)
  })

  test('a failed attempt that costs nothing is not paid for, and its failover is', async () => {
    await start()
    await budget({ limit: 0.45 * nanoPerUsd })
    service.providers[0]!.script([{ do: 'status', status: 429, repeat: true }])
    const answer = await service.chat({ max_tokens: 4_000 })
    expect([answer.status, answer.headers.get('x-svc-router-upstream')]).toEqual([200, 'beta'])
    await expect.poll(async () => (await state()).held).toBe(0)
    expect((await state()).spent).toBeLessThan(0.05 * nanoPerUsd)
  })

  test.each([
    ['a TLS handshake', 'https', ''],
    ['the body of a rejection', 'http', 'HTTP/1.1 429 Too Many Requests\r\ncontent-length: 100\r\n\r\n'],
  ])('is not charged for a call whose client leaves during %s', async (_, protocol, answer) => {
    let heard = 0
    const { port } = await serveTcp((socket) => {
      socket.on('data', () => {
        heard += 1
        socket.write(answer)
      })
    })
    const baseUrl = `${protocol}://127.0.0.1:${port}`
    await start({
      facts: {},
      formats: [],
      settings: {
        providers: { stuck: { preset: 'custom', base_url: baseUrl, format: 'openai-chat' } },
        backends: { stuck: { provider: 'stuck', model: 'm', usd_per_million: usdPerMillion } },
        profiles: { stuck: { backends: ['stuck'] } },
      },
    })
    await budget({ limit: 1 * nanoPerUsd })
    const abort = new AbortController()
    const body = { model: 'stuck', messages, max_tokens: 1_000 }
    const left = service.post('/chat/completions', body, {}, abort.signal).catch(() => {})
    await until(() => heard > 0)
    await new Promise((resolve) => setTimeout(resolve, 100))
    abort.abort()
    await left
    await expect.poll(async () => (await state()).held).toBe(0)
    expect((await state()).spent).toBe(0)
  })

  test('no further attempt is made that the budget could not pay for', async () => {
    await start()
    await budget({ limit: 0.45 * nanoPerUsd })
    service.providers[0]!.script([{ do: 'cut', afterEvents: 0, repeat: true }])
    const answer = await readAnswer(await service.chat({ max_tokens: 4_000 }))
    expect([answer.status, errorOf(answer).code]).toEqual([402, 'budget_exceeded'])
    expect(answer.headers.get('x-should-retry')).toBe('false')
    expect(errorOf(answer)).toMatchObject({ budget: { limit: 0.45, held: 0 } })
    expect(answer.text).toContain('/account/budgets')
    expect(service.providers.map((provider) => provider.captured().length)).toEqual([1, 0, 0])
    await expect.poll(async () => (await state()).held).toBe(0)
    expect((await state()).spent).toBeGreaterThan(0.4 * nanoPerUsd)
    expect((await state()).spent).toBeLessThanOrEqual(0.45 * nanoPerUsd)
  })

  test('in US dollars refuses if no price is known; in tokens does not', async () => {
    await start({ facts: {} })
    await budget({ limit: 1_000_000, unit: 'tokens' })
    expect((await service.chat()).status).toBe(200)
    await expect.poll(async () => (await state()).spent).toBeGreaterThan(5)
    await budget({ limit: 1 * nanoPerUsd })
    const refused = await readAnswer(await service.chat())
    expect([refused.status, errorOf(refused).code]).toEqual([402, 'budget_price_unknown'])
  })
})

describe('budgets of keys and profiles', () => {
  test('count only their own requests', async () => {
    await start()
    const { key, stored } = await service.addNamedKey('other')
    await budget({ limit: 0.01 * nanoPerUsd, scope: 'key', subject: stored.id, window: '5h', rolling: true })
    expect((await service.chat()).status).toBe(200)
    const bearer = { authorization: `Bearer ${key.reveal()}` }
    const refused = await readAnswer(await service.chat({}, bearer))
    expect(refused.status).toBe(402)
    expect(refused.text).toMatch(
      /The sliding 5-hour budget for this key has [\d.]+ of 0.01 USD left\. This request needs [\d.]+ USD. Send a shorter request, or raise the budget: http/,
    )
    expect(refused.text).toContain(`"key":"${stored.id}"`)
    await budget({
      limit: 0.01 * nanoPerUsd,
      scope: 'profile',
      subject: 'svc-router/frontier',
      window: 'day',
      setBy: 'operator',
    })
    const other = await readAnswer(await service.chat())
    expect(other.text).toContain('The operator’s daily budget for svc-router/frontier has ')
  })

  test('a key’s budget goes to the key that replaces it, and still counts the old one', async () => {
    await start()
    const { key, stored } = await service.addNamedKey('other')
    await budget({ limit: 0.01 * nanoPerUsd, scope: 'key', subject: stored.id })
    await service.rotateLater(stored.id)
    await new Promise((resolve) => setTimeout(resolve, 600))
    expect((await service.chat({}, { authorization: `Bearer ${key.reveal()}` })).status).toBe(402)
    const { budget: moved } = await state()
    expect(moved.subject).not.toBe(stored.id)
  })
})

describe('a fusion', () => {
  test('holds all of its calls, and spends what they cost', async () => {
    await start()
    await budget({ limit: 20 * nanoPerUsd })
    const answer = await service.chat({ model: 'svc-router/fusion' })
    expect(answer.status, await answer.text()).toBe(200)
    expect(Number(answer.headers.get('x-svc-router-max-output-tokens'))).toBeGreaterThan(1_000)
    await expect.poll(async () => (await state()).held).toBe(0)
    expect((await state()).spent).toBeGreaterThan(0)
    await budget({ limit: 0.3 * nanoPerUsd })
    expect((await service.chat({ model: 'svc-router/fusion' })).status).toBe(402)
    expect((await service.chat()).status).toBe(200)
  })
})

test('a large budget does not change the output limits of a fusion, although its judge needs more than the answer', async () => {
  await start()
  const limits = async () => {
    const before = service.providers.map((provider) => provider.captured().length)
    const answer = await readAnswer(await service.chat({ model: 'svc-router/fusion', max_tokens: 100 }))
    const bodies = service.providers.flatMap((provider, at) => provider.captured().slice(before[at]))
    const sentLimits = bodies.map(({ body }) => (JSON.parse(body) as { max_tokens?: number }).max_tokens)
    return { header: answer.headers.get('x-svc-router-max-output-tokens'), limits: new Set(sentLimits) }
  }
  const without = await limits()
  expect([...without.limits].some((limit) => limit! > 1_000)).toBe(true)
  await budget({ limit: 1_000 * nanoPerUsd })
  expect(await limits()).toEqual(without)
  await budget({ limit: 0.5 * nanoPerUsd })
  const lowered = await limits()
  expect(Math.max(...([...lowered.limits] as number[]))).toBe(Number(lowered.header))
})

test('no call of an answer with the fusion tool may write more than is held for it', async () => {
  await start()
  await budget({ limit: 1_000 * nanoPerUsd })
  const tools = { 'x-svc-router-tools': 'svc-router:fusion' }
  const answer = await service.chat({ model: 'svc-router/frontier' }, tools)
  expect(answer.status, await answer.text()).toBe(200)
  const limit = Number(answer.headers.get('x-svc-router-max-output-tokens'))
  expect(limit).toBeGreaterThan(0)
  const bodies = service.providers.flatMap((provider) => provider.captured())
  expect(bodies.length).toBeGreaterThan(0)
  for (const { body } of bodies)
    expect((JSON.parse(body) as { max_tokens?: number }).max_tokens).toBeLessThanOrEqual(limit)
})

test('the operator gets a signed alert of a budget by webhook', async () => {
  const got: { readonly signature: string; readonly body: string }[] = []
  const { baseUrl } = await serveHttp((request, response) => {
    let body = ''
    request.on('data', (chunk: Buffer) => (body += chunk.toString()))
    request.on('end', () => {
      got.push({ signature: String(request.headers['x-svc-router-signature']), body })
      response.writeHead(204).end()
    })
  })
  const clock = new SkippingClock()
  const secret = 'made-up-secret-of-the-webhook'
  await start({
    clock,
    settings: { budget_alerts: { webhook_url: baseUrl } },
    env: { SVC_ROUTER_WEBHOOK_SECRET: secret },
  })
  await budget({ limit: 1 * nanoPerUsd })
  const answer = await service.chat({ messages: [{ role: 'user', content: 'Say hello. '.repeat(2_000) }] })
  expect(answer.status).toBe(200)
  await expect.poll(async () => (await state()).held).toBe(0)
  const { spent, budget: known } = await state()
  await budget({ limit: Math.ceil(spent / 0.6) })
  await clock.skip(30_001)
  await until(() => got.length > 0)
  const { signature, body } = got[0]!
  const [, time, mac] = /^t=(\d+),v1=([0-9a-f]{64})$/.exec(signature) ?? []
  expect(mac).toBe(createHmac('sha256', secret).update(`${time}.${body}`).digest('hex'))
  expect(Math.abs(Number(time) - clock.nowMs() / 1000)).toBeLessThan(5)
  expect(JSON.parse(body)).toMatchObject({
    type: 'budget.alert',
    threshold_percent: 50,
    budget: { id: known.id, account: service.account.id, spent: spent / nanoPerUsd },
  })
  await clock.skip(30_001)
  expect(got).toHaveLength(1)
})
