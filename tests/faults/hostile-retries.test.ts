import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { Service } from '../service.ts'
import { writePost } from './raw-client.ts'

const model = 'svc-router/frontier'
const messages = [{ role: 'user', content: 'Say hello.' }]
const text = 'one two three four'
/** Of all accounts together (contract 29.3). */
const answerBytes = 256 * 1024 * 1024

let service: Service
let key: string
let keys = 0

beforeAll(async () => {
  const plan = { name: 'Max', requests_per_minute: 100_000, requests_per_month: 1_000_000, premium: true }
  service = await Service.start({ formats: ['openai-chat'], settings: { plans: { max: plan } } })
})
afterAll(() => service.stop())
beforeEach(async () => {
  service.providers[0]!.script([{ do: 'answer', text, repeat: true }])
  key = (await service.addAccount(`hostile ${++keys}`, 'max')).key
})

const calls = (): number => service.providers[0]!.captured().length

function ask(path: string, name: string, body: object = {}, headers: Record<string, string> = {}): Promise<Response> {
  return service.post(path, { model, ...body }, { authorization: `Bearer ${key}`, 'idempotency-key': name, ...headers })
}

const chat = (name: string, body: object = {}, headers: Record<string, string> = {}): Promise<Response> =>
  ask('/chat/completions', name, { messages, ...body }, headers)

async function usedUnits(): Promise<number> {
  const response = await service.chat({ model: 'unknown' }, { authorization: `Bearer ${key}` })
  await response.text()
  return Number(response.headers.get('x-quota-used'))
}

describe('clients that read nothing', () => {
  const sockets: Socket[] = []
  afterEach(() => {
    for (const socket of sockets.splice(0)) socket.destroy()
  })

  /** Sends a request and reads only the status. */
  async function sendAndWait(request: string): Promise<string> {
    const { hostname, port } = new URL(service.origin)
    const socket = connect(Number(port), hostname)
    sockets.push(socket)
    socket.write(request)
    const [first] = (await once(socket, 'data')) as [Buffer]
    socket.pause()
    return first.toString('latin1', 9, 12)
  }

  // Answers that run hold memory. Retries of one answer reach the limit of unadmitted work first.
  test.each([
    ['whole answers', { do: 'answer', length: 7_000_000, repeat: true }, {}, true, '503'],
    ['retries of a stream', { do: 'answer', words: 20_000, repeat: true }, { stream: true }, false, '429'],
  ] as const)(
    '%s: an account that holds much memory is refused, others are not',
    async (_, step, how, isNew, refusal) => {
      service.providers[0]!.script([step])
      const { length } = await (await chat('large-0', how)).text()
      const mostHeld = 0.8 * answerBytes
      let sent = 0
      const send = (): Promise<string> => {
        if (isNew) sent += 1
        const name = `idempotency-key: large-${sent}\r\n`
        return sendAndWait(writePost('/chat/completions', key, { model, messages, ...how }, name))
      }
      let last = ''
      for (let n = 0; n < mostHeld / length + 20 && last !== refusal; n += 1) last = await send()
      expect(last).toBe(refusal)
      const neighbor = await service.addAccount(`neighbor ${++keys}`, 'max')
      service.providers[0]!.script([{ do: 'answer', text, repeat: true }])
      const theirs = await service.chat({}, { authorization: `Bearer ${neighbor.key}`, 'idempotency-key': 'small' })
      expect(theirs.status).toBe(200)
      await theirs.text()
      for (const socket of sockets.splice(0)) socket.destroy()
      // The limit of unadmitted work ends with its minute.
      if (isNew) await vi.waitUntil(async () => (await send()) === '200')
    },
  )
})

test('a deadline that the client states does not end the answer: its retries wait for the same one', async () => {
  service.providers[0]!.script([{ do: 'slow_headers', ms: 1_200, text, repeat: true }])
  const before = calls()
  const deadline = { 'x-stainless-timeout': '1' }
  const path = '/chat/completions'
  const headers = { authorization: `Bearer ${key}`, 'idempotency-key': 'deadline', ...deadline }
  const first = service.post(path, { model, messages, stream: true }, headers, AbortSignal.timeout(600))
  await expect(first).rejects.toThrow('timeout')
  const again = await chat('deadline', { stream: true }, { ...deadline, 'x-stainless-retry-count': '1' })
  expect(await again.text()).toContain('four')
  expect(calls() - before).toBe(1)
  expect(await usedUnits()).toBe(1)
})

test('a client that continues a stream that is no longer stored gets an error, not another answer', async () => {
  const before = calls()
  const response = await chat('gone', { stream: true }, { 'last-event-id': '3' })
  expect(response.status).toBe(502)
  expect(await response.json()).toMatchObject({ error: { code: 'answer_interrupted' } })
  expect(calls()).toBe(before)
  expect((await chat('gone', { stream: true })).status).toBe(200)
})

test('a background request that is sent many times at once is one response', async () => {
  service.providers[0]!.script([{ do: 'slow_headers', ms: 300, text, repeat: true }])
  const before = calls()
  const all = await Promise.all(
    Array.from({ length: 30 }, async () => {
      const response = await ask('/responses', 'many', { input: 'Say hello.', background: true })
      return (await response.json()) as { id: string; status: string }
    }),
  )
  expect(new Set(all.map(({ id }) => id)).size).toBe(1)
  for (const { status } of all) expect(['queued', 'in_progress']).toContain(status)
  expect(calls() - before).toBe(1)
})
