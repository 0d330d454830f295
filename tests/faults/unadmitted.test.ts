import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { SkippingClock } from '../../src/simulation/skipping-clock.ts'
import { errorOf } from '../refusals.ts'
import { Service } from '../service.ts'
import { Wire } from '../wire.ts'

/** Contract 29.2: requests that are not admitted yet use a bounded share per account and address. */

const streams = 200
const chat = JSON.stringify({ model: 'svc-router/frontier', messages: [{ role: 'user', content: 'Hello' }] })

const clock = new SkippingClock()
let service: Service
let other: string
let wires: Wire[] = []

beforeAll(async () => {
  service = await Service.start({
    clock,
    formats: ['openai-chat'],
    settings: {
      limits: { streams, connections: 1_000 },
      // The test's address is one of the operator's proxies, so that each account can have its own address.
      listen: { port: 0, trusted_proxies: 1 },
      plans: { max: { name: 'Max', requests_per_minute: 100_000, requests_per_month: 1_000_000, premium: true } },
    },
  })
  other = (await service.addAccount('other', 'max')).key
})
afterAll(() => service.stop())

describe('a hostile account', () => {
  test('half-sent bodies beyond the number of slots take no slot from another account', async () => {
    await halfSend(streams + 20, `content-length: 1000\r\n`, '{')
    await expectOthersServed()
    // Other accounts at the same address are served, too.
    await expectOthersServed('203.0.113.1')
    // The account's own share is full, and the error says so.
    const own = await post(service.key, '203.0.113.1', chat)
    expect([own.status, own.code]).toEqual([503, 'server_busy'])
    await leave()
    await expect.poll(async () => (await post(service.key, '203.0.113.1', chat)).status).toBe(200)
  })

  test('many keys and accounts at one address leave room for another address', async () => {
    const keys = await Promise.all(
      Array.from({ length: 8 }, async (_, index) => (await service.addAccount(`sybil ${index}`, 'max')).key),
    )
    for (const key of keys) await halfSend(streams / 4, `content-length: 1000\r\n`, '{', key)
    await expectOthersServed()
    await leave()
  })

  test('large half-sent bodies use a bounded number of bytes and take none from another account', async () => {
    const bytes = 3 * 1024 * 1024
    await halfSend(30, `content-length: ${5 * 1024 * 1024}\r\n`, `{"a":"${'a'.repeat(bytes)}`)
    // At most 51 of 90 MiB are buffered: four fifths of the 64 for all.
    const refused = (): number => wires.filter(({ bytes: answer }) => answer.startsWith('HTTP/1.1 503')).length
    await expect.poll(refused, { timeout: 8_000 }).toBeGreaterThanOrEqual(10)
    await expectOthersServed()
    await leave()
  })

  test('a series of large rejected bodies is stopped by the limit on their bytes', async () => {
    const body = JSON.stringify({ model: 'no/profile', messages: [], pad: 'a'.repeat(4 * 1024 * 1024) })
    const { key } = await service.addAccount('sender of large bodies', 'max')
    clock.startMinute()
    const seen: (string | undefined)[] = []
    for (let sent = 0; sent < 40 && seen.at(-1) !== 'rate_limit_exceeded'; sent += 1) {
      seen.push((await post(key, '203.0.113.1', body)).code)
    }
    expect(seen.at(-1)).toBe('rate_limit_exceeded')
    expect(seen.length).toBeGreaterThan(15)
    const answer = await raw(key, '203.0.113.1', chat)
    expect(answer.status).toBe(429)
    const seconds = Number(answer.headers.get('retry-after'))
    expect(seconds).toBeGreaterThanOrEqual(1)
    expect(seconds).toBeLessThanOrEqual(60)
    // The headers show that no requests remain.
    expect(answer.headers.get('x-ratelimit-remaining')).toBe('0')
    expect(answer.headers.get('ratelimit')).toContain('"refused";r=0;t=')
    await expectOthersServed()
  })
})

test('admitted requests return what they used, so that large valid bodies continue to be answered', async () => {
  const body = JSON.stringify({ ...(JSON.parse(chat) as object), pad: 'a'.repeat(4 * 1024 * 1024) })
  for (let sent = 0; sent < 30; sent += 1) expect((await post(other, '203.0.113.3', body)).status).toBe(200)
}, 60_000)

test('all keys of an account share the limiter of uncounted requests, whose headers say so', async () => {
  const { account, key } = await service.addAccount('many keys', 'max')
  const keys = [key, ...(await Promise.all(Array.from({ length: 9 }, () => service.addKey(account.id))))]
  clock.startMinute()
  let refused: Response | undefined
  for (let sent = 0; sent <= 300; sent += 1) {
    const answer = await get('/models', keys[sent % keys.length]!)
    await answer.arrayBuffer()
    if (sent === 0) expect(answer.headers.get('ratelimit')).toContain('"lookups";r=299;t=')
    if (answer.status !== 200) refused = answer
  }
  expect(refused?.status).toBe(429)
  expect(refused?.headers.get('x-ratelimit-limit')).toBe('300')
  expect(refused?.headers.get('x-ratelimit-remaining')).toBe('0')
  expect(refused?.headers.get('ratelimit')).toContain('"lookups";r=0;t=')
  expect(refused?.headers.get('ratelimit-policy')).toContain('"lookups";q=300;w=60')
  expect((await get('/models', other)).status).toBe(200)
}, 60_000)

describe('at the connection limit', () => {
  let full: Service
  beforeAll(async () => {
    full = await Service.start({ formats: ['openai-chat'], settings: { limits: { connections: 20 } } })
  })
  afterAll(() => full.stop())

  test('/health and /ready are answered, and everything else gets 503 instead of a reset', async () => {
    const held = await Promise.all(Array.from({ length: 600 }, () => Wire.open(full.origin)))
    for (const path of ['/health', '/ready']) {
      const wire = await Wire.open(full.origin)
      await wire.write(`GET ${path} HTTP/1.1\r\nhost: x\r\n\r\n`)
      expect((await wire.answer()).status, path).toBe(200)
      await wire.ended()
      wire.destroy()
    }
    const wire = await Wire.open(full.origin)
    await wire.write(
      `GET /v1/models HTTP/1.1\r\nhost: x\r\nuser-agent: t/1\r\nauthorization: Bearer ${full.key}\r\n\r\n`,
    )
    const answer = await wire.answer()
    expect([answer.status, errorOf(answer).code]).toEqual([503, 'server_busy'])
    wire.destroy()
    for (const one of held) one.destroy()
    await expect.poll(async () => (await full.chat()).status).toBe(200)
  })
})

async function halfSend(count: number, headers: string, body: string, key = service.key): Promise<void> {
  const opened = await Promise.all(Array.from({ length: count }, () => Wire.open(service.origin)))
  wires.push(...opened)
  await Promise.all(opened.map((wire) => wire.write(head(key, '203.0.113.1', headers) + body)))
  await new Promise((resolve) => setTimeout(resolve, 300))
}

async function leave(): Promise<void> {
  for (const wire of wires) wire.reset()
  wires = []
  await new Promise((resolve) => setTimeout(resolve, 50))
}

/** Sends twenty requests of another account, five at a time, by default from another address; each succeeds. */
async function expectOthersServed(address = '203.0.113.2'): Promise<void> {
  for (let round = 0; round < 4; round += 1) {
    const answers = await Promise.all(Array.from({ length: 5 }, () => post(other, address, chat)))
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200])
  }
}

function head(key: string, address: string, headers: string): string {
  return `POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nuser-agent: t/1\r\nx-forwarded-for: ${address}\r\nauthorization: Bearer ${key}\r\ncontent-type: application/json\r\n${headers}\r\n`
}

function raw(key: string, address: string, body: string): Promise<Response> {
  return service.post('/chat/completions', body, { authorization: `Bearer ${key}`, 'x-forwarded-for': address })
}

async function post(key: string, address: string, body: string): Promise<{ status: number; code: string | undefined }> {
  const answer = await raw(key, address, body)
  const { error } = (await answer.json()) as { error?: { code: string } }
  return { status: answer.status, code: error?.code }
}

function get(path: string, key: string): Promise<Response> {
  return fetch(`${service.baseUrl}${path}`, { headers: { authorization: `Bearer ${key}`, 'user-agent': 't/1' } })
}
