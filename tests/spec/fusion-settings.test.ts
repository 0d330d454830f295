import { afterEach, expect, test } from 'vitest'
import type { ScriptStep } from '../../src/simulation/providers/script.ts'
import { Service } from '../service.ts'
import { judgeReply } from '../simulation/simulated-judge.ts'
import { answer, recordOf, saidIn, until } from './fused-answers.ts'

const model = 'svc-router/fusion'
const judged = judgeReply({ scores: { A: 6, B: 6, C: 6 } })
const silence: readonly ScriptStep[] = [{ do: 'silence', repeat: true }]

let service: Service | undefined
afterEach(async () => {
  await service?.stop()
  service = undefined
})

/** Starts a service with three backends, with settings for each and for the profile. */
async function start(
  facts: readonly object[],
  fusion: object,
  scripts: readonly (readonly ScriptStep[])[] = [],
  more: object = {},
): Promise<Service> {
  const named = ['alpha', 'beta', 'gamma'] as const
  service = await Service.start({
    facts: Object.fromEntries(named.map((name, index) => [name, facts[index] ?? {}])),
    settings: { profiles: { [model]: { fusion } }, ...more },
  })
  for (const [index, steps] of scripts.entries()) service.providers[index]!.script(steps)
  return service
}

test("the best models are asked and much weaker ones are not; costs are estimated from providers' prices", async () => {
  const price = { input: 1_000, output: 2_000 }
  await start(
    [{ quality: 60 }, { quality: 90, usd_per_million: price }, { quality: 86, usd_per_million: price }],
    { preset: 'fast' },
    [[], [answer('Beta says forty.'), answer(judged), answer('Written.')], [answer('Gamma says fifty.')]],
  )
  const response = await service!.chat({ model })
  expect(saidIn(await response.text())).toBe('Written.')
  expect(service!.providers.map((provider) => provider.counts().requests)).toEqual([0, 3, 1])
  const { fusions, usage } = await recordOf(service!, response.headers.get('x-request-id'))
  expect(fusions![0]).toMatchObject({ preset: 'fast', asked: 2 })
  expect(fusions![0]!.costUsd).toBeCloseTo((usage!.inputTokens * 1_000 + usage!.outputTokens * 2_000) / 1e6, 9)
})

test('the operator chooses members and judge, and decides whether usage names them', async () => {
  await start(
    [],
    { models: ['alpha', 'model-of-beta', 'nobody'], judge: 'gamma', names_models: true },
    [[answer('Alpha says forty.')], [answer('Beta says fifty.')], [answer(judged)]],
    { models: { nobody: { quality: 1 } } },
  )
  const response = await service!.chat({ model })
  const body = (await response.json()) as { usage: { svc_router: { breakdown: { role: string; model: string }[] } } }
  const { breakdown } = body.usage.svc_router
  expect(
    breakdown
      .filter(({ role }) => role === 'panel')
      .map(({ model: name }) => name)
      .toSorted(),
  ).toEqual(['model-of-alpha', 'model-of-beta'])
  expect(breakdown.find(({ role }) => role === 'judge')!.model).toBe('model-of-gamma')
  expect(await recordOf(service!, response.headers.get('x-request-id'))).toMatchObject({ fusions: [{ asked: 2 }] })
})

test('a configured model that is unavailable is left out, and only an unknown name is rejected', async () => {
  const rejected: ScriptStep = { do: 'status', status: 401, repeat: true }
  await start([], { models: ['alpha', 'beta'], judge: 'beta' }, [[], [rejected]])
  await (await service!.chat({ model })).text()
  const response = await service!.chat({ model })
  expect(response.status).toBe(200)
  const requestsBefore = service!.providers[1]!.counts().requests
  await response.text()
  expect(service!.providers[1]!.counts().requests).toBe(requestsBefore)
  const { fusions } = await recordOf(service!, response.headers.get('x-request-id'))
  expect(fusions![0]).toMatchObject({ asked: 1, degraded: ['member_lost'] })
  const tool = (name: string) => ({ type: 'svc-router:fusion', parameters: { analysis_models: ['alpha', name] } })
  expect((await service!.chat({ model, tools: [tool('beta')] })).status).toBe(200)
  expect((await service!.chat({ model, tools: [tool('nobody')] })).status).toBe(400)
  for (const provider of service!.providers) provider.script([rejected])
  for (let round = 0; round < 3; round += 1) await (await service!.chat({ model })).text()
  const last = await service!.chat({ model })
  expect([last.status, ((await last.json()) as { error: { code: string } }).error.code]).toEqual([
    502,
    'upstream_credentials_rejected',
  ])
})

test("model facts also apply to an account's own provider", async () => {
  await start([{ quality: 60 }, { quality: 60 }, { quality: 60 }], {}, [], { models: { own: { quality: 90 } } })
  await service!.connectOwn('made-up-own-credential')
  const response = await service!.chat({ model })
  await response.text()
  const { fusions } = await recordOf(service!, response.headers.get('x-request-id'))
  expect(fusions![0]!.isSelfPanel).toBe(true)
  const panel = fusions![0]!.calls.filter(({ role }) => role === 'panel').map(({ member }) => member)
  expect(panel).toHaveLength(3)
  expect(new Set(panel).size).toBe(1)
  expect(panel[0]).toMatch(/^ups_/)
})

test('an account runs as many fusions as its plan allows; one more is rejected free of charge, and others are unaffected', async () => {
  const plans = {
    max: { name: 'Max', requests_per_minute: 600, requests_per_month: 1000, premium: true, fusions_at_once: 2 },
  }
  await start([], {}, [silence, silence, silence], { plans })
  const leave = new AbortController()
  const running = [1, 2].map(() => service!.post('/responses', { model, input: 'Hi', stream: true }, {}, leave.signal))
  for (const response of await Promise.all(running)) expect(response.status).toBe(200)
  const third = await service!.chat({ model })
  expect(third.status).toBe(429)
  expect(third.headers.get('retry-after')).toBe('10')
  expect(third.headers.get('x-should-retry')).toBe('true')
  // The running fusions have taken their slots.
  expect(third.headers.get('x-quota-used')).toBe('2')
  expect(((await third.json()) as { error: object }).error).toMatchObject({
    code: 'too_many_fusions',
    type: 'rate_limit_error',
    retryable: true,
  })
  for (const provider of service!.providers) provider.script([])
  expect((await service!.chat()).status).toBe(200)
  const other = await service!.addAccount('other', 'max')
  expect((await service!.chat({ model }, { authorization: `Bearer ${other.key}` })).status).toBe(200)
  leave.abort()
  await until(() => service!.events.filter(({ event }) => event === 'request').length === 4)
  expect((await service!.chat({ model })).status).toBe(200)
})

test('a fusion that is rejected later releases its slot', async () => {
  const plans = {
    max: { name: 'Max', requests_per_minute: 2, requests_per_month: 1000, premium: true, fusions_at_once: 1 },
  }
  await start([], {}, [], { plans })
  const statuses: number[] = []
  for (let index = 0; index < 4; index++) {
    const response = await service!.chat({ model })
    await response.text()
    statuses.push(response.status)
    if (index > 1) expect(response.headers.get('retry-after')).not.toBe('10')
  }
  expect(statuses).toEqual([200, 200, 429, 429])
})
