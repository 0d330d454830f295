import { afterAll, beforeAll, expect, test } from 'vitest'
import { Service } from '../service.ts'

const text = 'one two three four'
const model = 'svc-router/frontier'
const clients = 1_000
const paths = [
  ['/chat/completions', { messages: [{ role: 'user', content: 'Say hello.' }] }],
  ['/responses', { input: 'Say hello.' }],
  ['/messages', { messages: [{ role: 'user', content: 'Say hello.' }], max_tokens: 100 }],
] as const

let service: Service
let accounts = 0

beforeAll(async () => {
  const plan = { name: 'Max', requests_per_minute: 100_000, requests_per_month: 1_000_000, premium: true }
  service = await Service.start({ formats: ['openai-chat'], settings: { plans: { max: plan } } })
  service.providers[0]!.script([{ do: 'answer', text, repeat: true }])
})
afterAll(() => service.stop())

const calls = (): number => service.providers[0]!.counts().requests

/** An account may send about 1,500 retries a minute (contract 39.7). */
const cutsPerAccount = 500

async function newKey(): Promise<string> {
  return (await service.addAccount(`tester ${++accounts}`, 'max')).key
}

async function usedUnits(key: string): Promise<number> {
  const response = await service.chat({ model: 'unknown' }, { authorization: `Bearer ${key}` })
  await response.text()
  return Number(response.headers.get('x-quota-used'))
}

async function readPart(response: Response, bytes: number): Promise<Buffer> {
  const received: Uint8Array[] = []
  let length = 0
  for await (const chunk of response.body!) {
    received.push(chunk)
    length += chunk.length
    if (length >= bytes) break
  }
  return Buffer.concat(received).subarray(0, bytes)
}

test.each(paths)(
  '%s: a client that disconnects after any byte gets the same answer with its key',
  async (path, body) => {
    let key = await newKey()
    const ask = (name: string, signal?: AbortSignal): Promise<Response> => {
      const headers = { authorization: `Bearer ${key}`, 'idempotency-key': name }
      return service.post(path, { model, stream: true, ...body }, headers, signal)
    }
    const { length } = Buffer.from(await (await ask('whole')).arrayBuffer())
    const callsBefore = calls()
    let units = -1
    for (let bytes = 1; bytes <= length; bytes += 1) {
      if (bytes % cutsPerAccount === 0) {
        units += await usedUnits(key)
        key = await newKey()
      }
      const left = new AbortController()
      const part = await readPart(await ask(`cut ${bytes}`, left.signal), bytes)
      left.abort()
      const retry = await ask(`cut ${bytes}`)
      const whole = Buffer.from(await retry.arrayBuffer())
      expect(retry.status).toBe(200)
      expect(whole.toString()).toContain('four')
      if (!whole.subarray(0, part.length).equals(part)) throw new Error(`another answer after ${bytes} bytes`)
    }
    units += await usedUnits(key)
    expect(calls() - callsBefore).toBe(length)
    expect(units).toBe(length)
  },
)

test('1,000 clients at once with one key get one answer, from one upstream call, for one unit', async () => {
  const key = await newKey()
  const callsBefore = calls()
  const body = { model, stream: true, messages: [{ role: 'user', content: 'All at once.' }] }
  const answers = await Promise.all(
    Array.from({ length: clients }, async () => {
      const response = await service.post('/chat/completions', body, {
        authorization: `Bearer ${key}`,
        'idempotency-key': 'all',
      })
      return `${response.status} ${await response.text()}`
    }),
  )
  expect(new Set(answers).size).toBe(1)
  expect(answers[0]).toMatch(/^200 .*four/s)
  expect(calls() - callsBefore).toBe(1)
  expect(await usedUnits(key)).toBe(1)
})
