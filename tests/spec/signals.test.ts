import { setTimeout as sleep } from 'node:timers/promises'
import { beforeEach, describe, expect, test } from 'vitest'
import type { ScriptStep } from '../../src/simulation/providers/script.ts'
import { changeDatabase } from '../change-database.ts'
import { expectUsage } from '../refusals.ts'
import type { Service } from '../service.ts'
import { shareService } from '../shared-service.ts'

const plans = {
  max: { name: 'Max', requests_per_minute: 600, requests_per_month: 100_000, premium: true },
  plain: { name: 'Plain', requests_per_minute: 600, requests_per_month: 1_000 },
  slow: { name: 'Slow', requests_per_minute: 1, requests_per_month: 100 },
  small: { name: 'Small', requests_per_minute: 100, requests_per_month: 1 },
}

const share = shareService({
  formats: ['openai-chat', 'openai-chat'],
  timeouts: { first_content: '500ms', whole_answer: '500ms', idle: '500ms' },
  settings: { plans, profiles: { 'team/expensive': { backends: ['alpha'], quota_units: 3 } } },
})
let service: Service

beforeEach(async () => {
  service = await share()
})

describe('every answer to a known account has the quota and rate signals (contract 5.5, 5.6)', () => {
  test.each([
    ['a whole answer', () => service.chat()],
    ['a streamed answer', () => service.chat({ stream: true })],
    ['a whole response', () => service.responses()],
    ['a streamed response', () => service.responses({ stream: true })],
    ['the list of models', () => models()],
    ['a refusal', () => service.chat({ messages: 'no list' })],
  ] as const)('%s', async (name, ask) => {
    const response = await ask()
    await response.text()
    const usage = expectUsage(response.headers)
    expect(usage['x-ratelimit-limit']).toBe(600)
    expect(usage['x-quota-limit']).toBe(100_000)
    const answered = name.startsWith('a whole') || name.startsWith('a streamed')
    expect(usage['x-quota-used']).toBe(answered ? 1 : 0)
    expect(usage['x-ratelimit-remaining']).toBe(answered ? 599 : 600)
    expect(response.headers.get('x-request-id')).toMatch(/^req_/)
    if (name !== 'the list of models') expect(response.headers.get('x-svc-router-retry-count')).toBe('0')
    if (answered) expect(response.headers.get('x-svc-router-upstream')).toBe('alpha')
  })

  test('resets are Unix seconds: when the minute allows another request, and the end of the month in UTC', async () => {
    const startSeconds = Math.floor(Date.now() / 1000)
    const usage = expectUsage((await service.chat()).headers)
    expect(usage['x-ratelimit-reset']).toBeGreaterThanOrEqual(startSeconds)
    expect(usage['x-ratelimit-reset']).toBeLessThanOrEqual(Math.ceil(Date.now() / 1000) + 60)
    const now = new Date()
    expect(usage['x-quota-reset']).toBe(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + 1, 1) / 1000)
  })

  test('when the minute is used up, its reset and Retry-After give the same moment', async () => {
    const { key } = await service.addAccount('slow', 'slow')
    await service.chat({}, bearer(key))
    const refused = await service.chat({}, bearer(key))
    expect(refused.status).toBe(429)
    const usage = expectUsage(refused.headers)
    expect(usage['x-ratelimit-remaining']).toBe(0)
    const inSeconds = usage['x-ratelimit-reset'] - Date.now() / 1000
    expect(Math.abs(inSeconds - Number(refused.headers.get('retry-after')))).toBeLessThanOrEqual(2)
  })

  test('the IETF fields are structured fields with the same values as the others', async () => {
    const { headers } = await service.chat()
    const usage = expectUsage(headers)
    const policy = readStructured(headers.get('ratelimit-policy') ?? '')
    expect(policy).toEqual([
      { name: 'minute', parameters: { q: 600, w: 60 } },
      { name: 'month', parameters: { q: 100_000 } },
    ])
    const [minute, month] = readStructured(headers.get('ratelimit') ?? '')
    expect(minute).toMatchObject({ name: 'minute', parameters: { r: usage['x-ratelimit-remaining'] } })
    expect(minute?.parameters['t']).toBeGreaterThanOrEqual(0)
    expect(minute?.parameters['t']).toBeLessThanOrEqual(61)
    expect(month).toMatchObject({ name: 'month', parameters: { r: usage['x-quota-remaining'] } })
    expect(Math.abs(month!.parameters['t']! + Date.now() / 1000 - usage['x-quota-reset'])).toBeLessThanOrEqual(2)
  })
})

const refusals = [
  ['400 wrong JSON', 400, (key: string) => service.post('/chat/completions', '{', bearer(key))],
  ['400 wrong types', 400, (key: string) => service.chat({ messages: 1 }, bearer(key))],
  ['400 not to be translated', 400, (key: string) => service.responses({ prompt: { id: 'pmpt_1' } }, bearer(key))],
  ['400 unknown reference', 400, (key: string) => service.responses({ previous_response_id: 'r' }, bearer(key))],
  ['401', 401, (_key: string) => service.chat({}, bearer('sk_svc_wrong'))],
  ['403', 403, (key: string) => service.chat({ tools: [{ type: 'svc-router:fusion' }] }, bearer(key))],
  ['404', 404, (key: string) => service.chat({ model: 'nobody/nothing' }, bearer(key))],
  ['413', 413, (key: string) => service.chat({ pad: 'x'.repeat(6 * 1024 * 1024) }, bearer(key))],
  ['415', 415, (key: string) => service.chat({}, { ...bearer(key), 'content-type': 'text/plain' })],
] as const

const silence: ScriptStep = { do: 'silence', repeat: true }
const stall: ScriptStep = { do: 'stall', afterEvents: 3, words: 20 }

describe('what counts (contract 6): [requests of the minute, units of the month]', () => {
  test.each(refusals)('rejected by us, %s: [0, 0]', async (_name, status, ask) => {
    const { key } = await service.addAccount('plain', 'plain')
    const response = await ask(key)
    await response.text()
    expect(response.status).toBe(status)
    expect(await counted(key)).toEqual([0, 0])
    expect(providerRequests()).toBe(0)
  })

  test('rejected by us, 429: [0, 0] in addition to the request before it', async () => {
    const { key } = await service.addAccount('slow', 'slow')
    await service.chat({}, bearer(key))
    expect((await service.chat({}, bearer(key))).status).toBe(429)
    expect(await counted(key)).toEqual([1, 1])
  })

  test('rejected by us, 402: [0, 0] in addition to the request before it', async () => {
    const { key } = await service.addAccount('small', 'small')
    await service.chat({}, bearer(key))
    expect((await service.chat({}, bearer(key))).status).toBe(402)
    expect(await counted(key)).toEqual([1, 1])
  })

  test.each([false, true])('all attempts failed before the first content (stream: %s): [1, 0]', async (stream) => {
    for (const provider of service.providers) provider.script([{ do: 'status', status: 503, repeat: true }])
    const response = await service.chat({ stream })
    expect(response.status).toBe(503)
    expect(response.headers.get('x-svc-router-retry-count')).toBe('1')
    expect(expectUsage(response.headers)).toMatchObject({ 'x-quota-used': 0, 'x-ratelimit-remaining': 599 })
    expect(await counted()).toEqual([1, 0])
  })

  test.each([false, true])('answered after a fallback (stream: %s): [1, 1]', async (stream) => {
    service.providers[0]!.script([{ do: 'status', status: 502 }])
    const response = await service.chat({ stream })
    await response.text()
    expect(response.headers.get('x-svc-router-retry-count')).toBe('1')
    expect(await counted()).toEqual([1, 1])
  })

  test('broken after the first content: [1, 1]', async () => {
    service.providers[0]!.script([{ do: 'cut', afterEvents: 4, words: 20 }])
    const response = await service.chat({ stream: true })
    expect(await response.text()).toContain('upstream_broken')
    expect(await counted()).toEqual([1, 1])
  })

  test.each([
    ['before the first content', silence],
    ['in the midst of the answer', stall],
  ])('the client disconnected after dispatch, %s: [1, 1]', async (_name, step) => {
    service.providers[0]!.script([step])
    const leave = new AbortController()
    const asked = fetch(`${service.baseUrl}/chat/completions`, {
      method: 'POST',
      headers: { ...bearer(service.key), 'content-type': 'application/json', 'user-agent': 't/1' },
      body: JSON.stringify({ model: 'svc-router/frontier', stream: true, messages: [{ role: 'user', content: 'Hi' }] }),
      signal: leave.signal,
    }).then((response) => response.text())
    await expect.poll(() => service.providers[0]!.counts().requests).toBe(1)
    leave.abort()
    await expect(asked).rejects.toThrow()
    await expect.poll(() => service.providers[0]!.counts().aborted).toBe(1)
    await expect.poll(() => counted()).toEqual([1, 1])
    // It is not refunded later either.
    await expect.poll(() => usedOnDisk()).toBe(1)
  })

  test.each([400, 413, 422])('the upstream rejects the content with %i: [1, 0]', async (status) => {
    service.providers[0]!.script([{ do: 'status', status }])
    expect((await service.chat()).status).toBe(status)
    expect(await counted()).toEqual([1, 0])
    expect(providerRequests()).toBe(1)
  })

  test('a profile that costs three units: [1, 3]', async () => {
    expect((await service.chat({ model: 'team/expensive' })).status).toBe(200)
    expect(await counted()).toEqual([1, 3])
  })

  test('GET endpoints: [0, 0]', async () => {
    for (let round = 0; round < 5; round++) {
      for (const path of ['/v1/models', '/pricing', '/model-catalog', '/health', '/ready']) {
        const response = await fetch(`${service.origin}${path}`, {
          headers: { ...bearer(service.key), 'user-agent': 't/1' },
        })
        expect(response.status).toBe(200)
      }
    }
    expect(await counted()).toEqual([0, 0])
  })

  test('a rejected WebSocket: [0, 0]', async () => {
    const socket = new WebSocket(`${service.baseUrl.replace('http', 'ws')}/responses`)
    await new Promise((resolve) => socket.addEventListener('error', resolve, { once: true }))
    expect(await counted()).toEqual([0, 0])
  })

  test('a running request counts as used until it is known whether it is charged', async () => {
    service.providers[0]!.script([silence])
    service.providers[1]!.script([{ do: 'status', status: 503, repeat: true }])
    const asked = service.chat()
    await expect.poll(() => service.providers[0]!.counts().requests).toBe(1)
    expect(await counted()).toEqual([1, 1])
    expect((await asked).status).toBe(503)
    expect(await counted()).toEqual([1, 0])
  })
})

test('a 402 has the counters that refused it, although a unit becomes free before it is sent (contract 5.18)', async () => {
  const { account, key } = await service.addAccount('small', 'small')
  // A refusal under an Idempotency-Key is sent after its generation is deleted, which takes long here.
  await changeDatabase(
    service,
    `create view numbers as with recursive n(i) as (select 1 union all select i + 1 from n where i < 1200000)
       select max(i) as i from n;
     create trigger slow before delete on generations when old.account_id = '${account.id}'
       begin select i from numbers; end`,
  )
  for (const provider of service.providers) provider.script([{ do: 'status', status: 503, repeat: true }])
  service.providers[0]!.script([silence])
  const order: string[] = []
  const failing = service.chat({}, bearer(key)).finally(() => order.push('failed'))
  await expect.poll(() => service.providers[0]!.counts().requests).toBe(1)
  await sleep(350)
  const refused = await service.chat({}, { ...bearer(key), 'idempotency-key': 'refused' })
  order.push('refused')
  expect((await failing).status).toBe(503)
  expect(order).toEqual(['failed', 'refused'])
  expect(refused.status).toBe(402)
  expect(expectUsage(refused.headers)).toMatchObject({ 'x-quota-used': 1, 'x-quota-remaining': 0 })
  expect(await counted(key)).toEqual([1, 0])
})

function bearer(key: string): Record<string, string> {
  return { authorization: `Bearer ${key}` }
}

function models(key = service.key): Promise<Response> {
  return fetch(`${service.baseUrl}/models`, { headers: { ...bearer(key), 'user-agent': 't/1' } })
}

async function counted(key = service.key): Promise<[minute: number, month: number]> {
  const usage = expectUsage((await models(key)).headers)
  return [usage['x-ratelimit-limit'] - usage['x-ratelimit-remaining'], usage['x-quota-used']]
}

function usedOnDisk(): Promise<number> {
  return service.store.usedUnits(service.account.id, new Date().toISOString().slice(0, 7))
}

function providerRequests(): number {
  return service.providers.reduce((sum, provider) => sum + provider.counts().requests, 0)
}

/** Parses a list of strings with integer parameters (RFC 9651). @throws for any other syntax */
function readStructured(field: string): { name: string; parameters: Record<string, number> }[] {
  return field.split(', ').map((item) => {
    const match = /^"([a-z]+)"((?:;[a-z]+=\d{1,15})+)$/.exec(item)
    if (match === null) throw new Error(`not a structured field: ${item}`)
    const pairs = match[2]!.slice(1).split(';')
    return {
      name: match[1]!,
      parameters: Object.fromEntries(pairs.map((pair) => [pair.split('=')[0]!, Number(pair.split('=')[1])])),
    }
  })
}
