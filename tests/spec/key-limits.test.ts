import { describe, expect, test } from 'vitest'
import { SkippingClock } from '../../src/simulation/skipping-clock.ts'
import { embeddingsProfile, withEmbeddings } from '../embeddings-service.ts'
import { errorOf, expectUsage, usageHeaderNames } from '../refusals.ts'
import type { Service, ServiceOptions } from '../service.ts'
import { shareServices } from '../shared-service.ts'
import { refusedUpgrade, SocketClient } from '../socket-client.ts'
import { readAnswer } from '../wire.ts'

const frontier = 'svc-router/frontier'
const fusion = 'svc-router/fusion'
const messages = [{ role: 'user', content: 'Say hello.' }]
const tool = { type: 'svc-router:fusion' }
/** Longer than a running service needs to notice a change. */
const reachMs = 3_000

const share = shareServices()
let service: Service

async function start(options: ServiceOptions = {}): Promise<void> {
  service = await share({ formats: ['openai-chat', 'openai-chat'], ...options })
}

const bearer = (key: string): Record<string, string> => ({ authorization: `Bearer ${key}` })
const captured = (): number => service.providers.reduce((sum, provider) => sum + provider.captured().length, 0)

async function keyWith(limits: Parameters<Service['addLimitedKey']>[0]): Promise<{ id: string; key: string }> {
  const { key, stored } = await service.addLimitedKey(limits)
  return { id: stored.id, key: key.reveal() }
}

function get(path: string, key: string, headers: Record<string, string> = {}): Promise<Response> {
  return fetch(`${service.baseUrl}${path}`, {
    headers: { ...bearer(key), 'user-agent': 'svc-router-tests/1.0', ...headers },
  })
}

/** Every kind of request to a profile. */
const ways: readonly (readonly [string, (model: string, key: string) => Promise<Response>])[] = [
  ['chat', (model, key) => service.chat({ model }, bearer(key))],
  ['a streamed chat', (model, key) => service.chat({ model, stream: true }, bearer(key))],
  ['a response', (model, key) => service.responses({ model }, bearer(key))],
  ['a message', (model, key) => service.post('/messages', { model, messages, max_tokens: 9 }, bearer(key))],
  ['a count of tokens', (model, key) => service.post('/messages/count_tokens', { model, messages }, bearer(key))],
  [
    'a count of input tokens',
    (model, key) => service.post('/responses/input_tokens', { model, input: 'x' }, bearer(key)),
  ],
  ['compaction', (model, key) => service.post('/responses/compact', { model, input: 'x' }, bearer(key))],
  ['one model', (model, key) => get(`/models/${model}`, key)],
]

describe('a key limited to some profiles', () => {
  test.each(ways)('%s of another profile gets 403 before any backend is asked, and uses nothing', async (_, way) => {
    await start()
    const { key } = await keyWith({ profiles: [frontier] })
    const refused = await readAnswer(await way(fusion, key))
    expect(refused.status, refused.text).toBe(403)
    expect(refused.text).toContain('may use: svc-router/frontier')
    expect(refused.text).toContain(`${service.config.appUrl}/account/keys`)
    expect(expectUsage(refused.headers)).toMatchObject({ 'x-ratelimit-remaining': 600, 'x-quota-used': 0 })
    expect(captured()).toBe(0)
    const allowed = await way(frontier, key)
    expect(allowed.status, await allowed.text()).toBe(200)
  })

  test('embeddings are limited like any profile', async () => {
    service = await share(withEmbeddings())
    const { key } = await keyWith({ profiles: [frontier] })
    const body = { model: embeddingsProfile, input: 'x' }
    const refused = await readAnswer(await service.post('/embeddings', body, bearer(key)))
    expect([refused.status, errorOf(refused).code]).toEqual([403, 'key_profile_not_allowed'])
    const other = await keyWith({ profiles: [embeddingsProfile] })
    expect((await service.post('/embeddings', body, bearer(other.key))).status).toBe(200)
    expect((await service.chat({}, bearer(other.key))).status).toBe(403)
  })

  test('the list of models and the error for an unknown one contain only the allowed profiles', async () => {
    await start()
    const { key } = await keyWith({ profiles: [frontier] })
    const list = (await (await get('/models', key)).json()) as { data: { id: string }[]; models: unknown[] }
    expect(list.data.map(({ id }) => id)).toEqual([frontier])
    expect(list.models).toHaveLength(1)
    const unknown = await readAnswer(await service.chat({ model: 'svc-router/fusio' }, bearer(key)))
    expect(unknown.status).toBe(404)
    expect(unknown.text).not.toContain(fusion)
    const whole = (await (await get('/models', service.key)).json()) as { data: unknown[] }
    expect(whole.data).toHaveLength(2)
  })

  test('the fusion tool needs its profile; fusion itself may ask models that the key may not use', async () => {
    await start()
    const plain = await keyWith({ profiles: [frontier] })
    const refused = await readAnswer(await service.chat({ tools: [tool] }, bearer(plain.key)))
    expect(refused.status).toBe(403)
    expect(errorOf(refused).message).toContain('may not use the tool svc-router:fusion.')
    const both = await keyWith({ profiles: [frontier, fusion] })
    expect((await service.chat({ tools: [tool] }, bearer(both.key))).status).toBe(200)
    const alone = await keyWith({ profiles: [fusion] })
    expect((await service.chat({ model: fusion }, bearer(alone.key))).status).toBe(200)
    expect((await service.chat({}, bearer(alone.key))).status).toBe(403)
  })

  test('a key limited to a profile that is no longer configured can use nothing', async () => {
    await start()
    const { key } = await keyWith({ profiles: ['team/gone'] })
    expect((await service.chat({}, bearer(key))).status).toBe(403)
    expect(await (await get('/models', key)).json()).toMatchObject({ data: [] })
  })

  test('a WebSocket turn, even a prewarm, is rejected, and the connection stays open', async () => {
    await start()
    const { key } = await keyWith({ profiles: [frontier] })
    const client = await SocketClient.open({ origin: service.origin, key })
    for (const extra of [{}, { generate: false }]) {
      const { last } = await client.turn({ model: fusion, ...extra })
      expect(last).toMatchObject({ status: 403, error: { code: 'key_profile_not_allowed' } })
    }
    expect((await client.turn({})).last.type).toBe('response.completed')
    client.socket.terminate()
  })
})

describe('a key limited to some addresses', () => {
  test.each([...ways, ['the list of models', (_: string, key: string) => get('/models', key)] as const])(
    '%s from another address gets a 403 that names the address and nothing about the account',
    async (_, way) => {
      await start()
      const { key } = await keyWith({ addresses: ['203.0.113.0/24', '2001:db8::/32'] })
      const refused = await readAnswer(await way(frontier, key))
      expect(refused.status, refused.text).toBe(403)
      expect(refused.text).toContain('127.0.0.1')
      expect(refused.text).not.toContain('203.0.113')
      for (const name of usageHeaderNames) expect(refused.headers.get(name)).toBeNull()
      expect(captured()).toBe(0)
      const here = await keyWith({ addresses: ['127.0.0.0/8'] })
      const allowed = await way(frontier, here.key)
      expect(allowed.status, await allowed.text()).toBe(200)
    },
  )

  test('an address that the caller claims is ignored unless proxies are configured', async () => {
    await start()
    const { key } = await keyWith({ addresses: ['203.0.113.7'] })
    for (const name of ['x-forwarded-for', 'x-real-ip', 'forwarded', 'cf-connecting-ip'])
      expect((await service.chat({}, { ...bearer(key), [name]: '203.0.113.7' })).status).toBe(403)
  })

  test("behind a proxy the address is the one that the proxy saw, and the caller's own entries are ignored", async () => {
    await start({ settings: { listen: { port: 0, trusted_proxies: 1 } } })
    const { key } = await keyWith({ addresses: ['203.0.113.7', '2001:db8::/32'] })
    const from = async (forwarded: string) =>
      readAnswer(await service.chat({}, { ...bearer(key), 'x-forwarded-for': forwarded }))
    expect((await from('203.0.113.7')).status).toBe(200)
    expect((await from('198.51.100.1, 203.0.113.7')).status).toBe(200)
    expect((await from('203.0.113.7:4711')).status).toBe(200)
    expect((await from('2001:db8::9')).status).toBe(200)
    const spoofed = await from('203.0.113.7, 198.51.100.1')
    expect(errorOf(spoofed)).toMatchObject({ code: 'key_address_not_allowed' })
    expect(spoofed.text).toContain('198.51.100.1')
    expect((await from('unknown')).text).toContain('from the address of this request')
    expect((await service.chat({}, bearer(key))).status).toBe(403)
  })

  test('a WebSocket from another address is rejected, and an open one from its next turn on', async () => {
    await start()
    const far = await keyWith({ addresses: ['203.0.113.7'] })
    const refused = await refusedUpgrade({ origin: service.origin, key: far.key })
    expect([refused.status, errorOf(refused).code]).toEqual([403, 'key_address_not_allowed'])
    const { id, key } = await keyWith({ addresses: ['127.0.0.1'] })
    const client = await SocketClient.open({ origin: service.origin, key })
    expect((await client.turn({})).last.type).toBe('response.completed')
    await service.limit(id, { addresses: ['203.0.113.7'] })
    await expect
      .poll(async () => (await client.turn({})).last.error?.code, { timeout: reachMs })
      .toBe('key_address_not_allowed')
    client.socket.terminate()
  })

  test('a revoked key is reported from any address: only a working key has its address checked', async () => {
    await start()
    const { id, key } = await keyWith({ addresses: ['203.0.113.7'] })
    await service.revoke(id)
    await expect
      .poll(async () => errorOf(await readAnswer(await service.chat({}, bearer(key)))).code, { timeout: reachMs })
      .toBe('key_revoked')
  })

  test('neither the audit log nor the log contains an address', async () => {
    await start({ settings: { listen: { port: 0, trusted_proxies: 1 } } })
    const { id, key } = await keyWith({ addresses: ['203.0.113.7'] })
    await service.limit(id, { addresses: ['203.0.113.8', '203.0.113.9'], perMinute: 5 })
    const seen = await readAnswer(await service.chat({}, { ...bearer(key), 'x-forwarded-for': '198.51.100.9' }))
    expect(seen.text).toContain('198.51.100.9')
    const entries = await service.store.listAudit({ accountId: service.account.id, limit: 10 })
    expect(entries.map(({ event }) => event).filter(({ type }) => type === 'key.limited')).toEqual([
      expect.objectContaining({ keyId: id, profiles: 0, perMinute: 5, networks: 2 }),
      expect.objectContaining({ keyId: id, profiles: 0, perMinute: 0, networks: 1 }),
    ])
    expect(JSON.stringify([entries, service.events])).not.toMatch(/203\.0\.113|198\.51\.100/)
  })
})

describe('a key with its own minute', () => {
  const plans = { max: { name: 'Max', requests_per_minute: 5, requests_per_month: 1_000, premium: true } }

  test('the key is rejected beyond its minute, sees it while it is the lower one, and works after the given wait', async () => {
    const clock = new SkippingClock()
    await start({ clock, settings: { plans } })
    const { key } = await keyWith({ perMinute: 2 })
    expect(expectUsage((await get('/models', key)).headers)).toMatchObject({ 'x-ratelimit-limit': 2 })
    for (const left of [1, 0]) {
      const answer = await service.chat({}, bearer(key))
      expect(answer.status).toBe(200)
      expect(expectUsage(answer.headers)).toMatchObject({ 'x-ratelimit-limit': 2, 'x-ratelimit-remaining': left })
      await answer.text()
    }
    const refused = await readAnswer(await service.chat({}, bearer(key)))
    expect(refused.status).toBe(429)
    expect(errorOf(refused).message).toContain('2 requests per minute for this key')
    const shown = expectUsage(refused.headers)
    expect(shown).toMatchObject({ 'x-ratelimit-limit': 2, 'x-ratelimit-remaining': 0 })
    expect(refused.headers.get('ratelimit-policy')).toContain('"minute";q=2;w=60')
    const waitMs = Number(refused.headers.get('retry-after')) * 1000
    expect(waitMs).toBeGreaterThan(50_000)
    await clock.skip(waitMs)
    expect((await service.chat({}, bearer(key))).status).toBe(200)
  })

  test("the rest of the account's minute remains for other keys, and an exhausted account leaves the key nothing", async () => {
    await start({ settings: { plans } })
    const { key } = await keyWith({ perMinute: 4 })
    expect((await service.chat({}, bearer(key))).status).toBe(200)
    for (let time = 0; time < 3; time++) expect((await service.chat()).status).toBe(200)
    const last = await service.chat({}, bearer(key))
    expect(last.status).toBe(200)
    expect(expectUsage(last.headers)).toMatchObject({ 'x-ratelimit-limit': 5, 'x-ratelimit-remaining': 0 })
    const refused = await readAnswer(await service.chat({}, bearer(key)))
    expect(errorOf(refused).message).toContain('5 requests per minute on the Max plan')
  })

  test("more keys do not raise the limit: ten keys of four a minute share their account's five", async () => {
    await start({ settings: { plans } })
    const keys = await Promise.all(Array.from({ length: 10 }, () => keyWith({ perMinute: 4 })))
    const answers = await Promise.all(
      keys.flatMap(({ key }) => [service.chat({}, bearer(key)), service.chat({}, bearer(key))]),
    )
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(5)
    expect(answers.filter(({ status }) => status === 429)).toHaveLength(15)
  })

  test('of 1,000 simultaneous requests with a key of 300 a minute, exactly 300 are answered', async () => {
    await start()
    const { key } = await keyWith({ perMinute: 300 })
    const statuses = await Promise.all(
      Array.from({ length: 1000 }, async () => {
        const answer = await service.chat({}, bearer(key))
        await answer.text()
        return answer.status
      }),
    )
    expect(statuses.filter((status) => status === 200)).toHaveLength(300)
    expect(statuses.filter((status) => status === 429)).toHaveLength(700)
    const usage = expectUsage((await get('/models', service.key)).headers)
    expect(usage).toMatchObject({ 'x-ratelimit-limit': 600, 'x-ratelimit-remaining': 300, 'x-quota-used': 300 })
  }, 60_000)

  test('a fusion counts once, whatever it asks inside, as alias and as tool', async () => {
    await start()
    const { key } = await keyWith({ perMinute: 10 })
    const alias = await service.chat({ model: fusion }, bearer(key))
    expect(alias.status).toBe(200)
    expect(expectUsage(alias.headers)).toMatchObject({ 'x-ratelimit-remaining': 9 })
    const attached = await service.chat({ tools: [tool] }, bearer(key))
    expect(expectUsage(attached.headers)).toMatchObject({ 'x-ratelimit-remaining': 8 })
  })

  test('every WebSocket turn counts, and a prewarm does not', async () => {
    await start()
    const { key } = await keyWith({ perMinute: 2 })
    const client = await SocketClient.open({ origin: service.origin, key })
    expect((await client.turn({ generate: false })).last.type).toBe('response.completed')
    for (let time = 0; time < 2; time++) expect((await client.turn({})).last.type).toBe('response.completed')
    expect((await client.turn({})).last).toMatchObject({ status: 429, headers: { 'x-ratelimit-limit': '2' } })
    client.socket.terminate()
  })
})

describe('changes of limits', () => {
  test('a change applies within a second, counts earlier requests, and can be removed again', async () => {
    await start()
    const { id, key } = await keyWith({})
    for (let time = 0; time < 3; time++) expect((await service.chat({}, bearer(key))).status).toBe(200)
    await service.limit(id, { perMinute: 2 })
    const changedMs = performance.now()
    await expect.poll(async () => (await service.chat({}, bearer(key))).status, { timeout: reachMs }).toBe(429)
    expect(performance.now() - changedMs).toBeLessThan(1_000)
    await service.limit(id, {})
    await expect.poll(async () => (await service.chat({}, bearer(key))).status, { timeout: reachMs }).toBe(200)
  })

  test('the successor of a rotated key has its limits', async () => {
    await start()
    const { id } = await keyWith({ profiles: [frontier], perMinute: 2, addresses: ['127.0.0.1'] })
    const next = await service.rotate(id)
    expect(next.stored.limits).toEqual({ profiles: [frontier], perMinute: 2, addresses: ['127.0.0.1'] })
    const key = next.key.reveal()
    expect((await service.chat({ model: fusion }, bearer(key))).status).toBe(403)
    expect(expectUsage((await service.chat({}, bearer(key))).headers)).toMatchObject({ 'x-ratelimit-limit': 2 })
  })
})
