import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { linksFor } from '../../src/domain/links.ts'
import { expectRefusal, expectUsage } from '../refusals.ts'
import { Service } from '../service.ts'
import { readAnswer, type Answer } from '../wire.ts'

const fusionTool = { type: 'svc-router:fusion' }
const chat = { model: 'svc-router/frontier', messages: [{ role: 'user', content: 'Hello' }] }
const response = { model: 'svc-router/frontier', input: 'Hello' }

let service: Service

beforeAll(async () => {
  service = await Service.start({
    formats: ['openai-chat'],
    settings: { profiles: { 'team/best': { backends: ['alpha'], premium: true, description: 'The best' } } },
  })
})
afterAll(() => service.stop())

describe('premium profiles and the fusion tool need a plan that includes them (contract 5.4)', () => {
  const attempts = [
    ['the profile svc-router/fusion, on chat', '/chat/completions', { ...chat, model: 'svc-router/fusion' }],
    ['the profile svc-router/fusion, on responses', '/responses', { ...response, model: 'svc-router/fusion' }],
    ['the tool, on chat', '/chat/completions', { ...chat, tools: [fusionTool] }],
    [
      'the tool among others, streamed',
      '/chat/completions',
      { ...chat, stream: true, tools: [functionTool(), fusionTool] },
    ],
    ['the tool, on responses', '/responses', { ...response, tools: [fusionTool] }],
    ['a premium profile of the operator', '/chat/completions', { ...chat, model: 'team/best' }],
  ] as const

  test.each(attempts)(
    '%s gets 403 on Free, before any backend is asked and without a charge',
    async (_name, path, body) => {
      const { key } = await fresh('free')
      const before = service.providers[0]!.counts().requests
      const answer = await readAnswer(await service.post(path, body, { authorization: `Bearer ${key}` }))
      const links = linksFor(service.config.appUrl)
      expectRefusal(
        answer,
        {
          status: 403,
          type: 'permission_error',
          code: 'plan_required',
          source: 'client',
          retryable: false,
          signals: 'billing',
          link: links.upgradeUrl,
          usage: true,
        },
        links,
      )
      expect(service.providers[0]!.counts().requests).toBe(before)
      expect(expectUsage(answer.headers)).toMatchObject({ 'x-quota-used': 0, 'x-ratelimit-remaining': 20 })
    },
  )

  test.each(['pro', 'max'])('the tool and a premium profile are answered on %s', async (plan) => {
    const { key } = await fresh(plan)
    for (const body of [
      { ...chat, tools: [fusionTool] },
      { ...chat, model: 'team/best' },
    ]) {
      const answer = await service.post('/chat/completions', body, { authorization: `Bearer ${key}` })
      expect(answer.status).toBe(200)
    }
    // The tool is not sent to any provider.
    expect(service.providers[0]!.captured().every(({ body }) => !body.includes('svc-router:fusion'))).toBe(true)
  })

  test('a name that only resembles a premium profile is unknown, not forbidden', async () => {
    const { key } = await fresh('free')
    const answer = await service.post(
      '/chat/completions',
      { ...chat, model: 'svc-router/fusionx' },
      { authorization: `Bearer ${key}` },
    )
    expect(answer.status).toBe(404)
  })
})

describe('what /pricing says is enforced (contract 5.13)', () => {
  test.each(['free', 'pro', 'max'])('the limits of %s are enforced as listed', async (id) => {
    const pricing = (await (await fetch(`${service.origin}/pricing`, { headers: { 'user-agent': 't/1' } })).json()) as {
      plans: { id: string; requests_per_minute: number; requests_per_month: number }[]
    }
    const plan = pricing.plans.find((found) => found.id === id)
    const { key } = await fresh(id)
    const usage = expectUsage((await service.chat({}, { authorization: `Bearer ${key}` })).headers)
    expect(usage['x-ratelimit-limit']).toBe(plan?.requests_per_minute)
    expect(usage['x-quota-limit']).toBe(plan?.requests_per_month)
  })

  test('the minute of Free ends after exactly 20 requests, together or one by one', async () => {
    const { key } = await fresh('free')
    const answers = await Promise.all(
      Array.from({ length: 30 }, () => service.chat({}, { authorization: `Bearer ${key}` })),
    )
    const statuses = answers.map(({ status }) => status)
    expect(statuses.filter((status) => status === 200)).toHaveLength(20)
    expect(statuses.filter((status) => status === 429)).toHaveLength(10)
  })
})

describe('a changed plan', () => {
  test('new limits apply within a second, and earlier use still counts', async () => {
    const { key, account } = await fresh('free')
    const ask = async (): Promise<Answer> => readAnswer(await service.chat({}, { authorization: `Bearer ${key}` }))
    expect(expectUsage((await ask()).headers)['x-quota-limit']).toBe(500)
    await service.putOnPlan(account.id, 'pro')
    const models = async (): Promise<number> => {
      const headers = { authorization: `Bearer ${key}`, 'user-agent': 't/1' }
      return expectUsage((await fetch(`${service.baseUrl}/models`, { headers })).headers)['x-quota-limit']
    }
    await expect.poll(models, { timeout: 1_000, interval: 20 }).toBe(20_000)
    expect(expectUsage((await ask()).headers)).toMatchObject({ 'x-quota-used': 2, 'x-ratelimit-limit': 120 })
    await service.putOnPlan(account.id, 'free')
    await expect.poll(models, { timeout: 1_000, interval: 20 }).toBe(500)
  })

  test('keys of one account share its limits: another key adds none', async () => {
    const { key, account } = await fresh('free')
    const second = await service.addKey(account.id)
    await service.chat({}, { authorization: `Bearer ${key}` })
    const usage = expectUsage((await service.chat({}, { authorization: `Bearer ${second}` })).headers)
    expect(usage).toMatchObject({ 'x-quota-used': 2, 'x-ratelimit-remaining': 18 })
  })
})

let accounts = 0

/** Creates an account on that plan. */
function fresh(plan: string): ReturnType<Service['addAccount']> {
  accounts += 1
  return service.addAccount(`account ${accounts}`, plan)
}

function functionTool(): object {
  return { type: 'function', function: { name: 'get_weather', parameters: { type: 'object', properties: {} } } }
}
