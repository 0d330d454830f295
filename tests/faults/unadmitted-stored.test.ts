import { afterAll, beforeAll, expect, test } from 'vitest'
import { ConnectionCache, CacheBudget } from '../../src/http/websocket/connection-cache.ts'
import { SkippingClock } from '../../src/simulation/skipping-clock.ts'
import { errorOf } from '../refusals.ts'
import { Service } from '../service.ts'
import { SocketClient } from '../socket-client.ts'
import { readAnswer, type Answer } from '../wire.ts'
import { MiB } from './hostile-service.ts'
import { RawSocket } from './raw-frames.ts'

/** Contract 29.1, for stored responses and WebSockets. */

const clock = new SkippingClock()
let service: Service
beforeAll(async () => {
  service = await Service.start({ formats: ['openai-chat'], clock })
})
afterAll(() => service.stop())

test('references to large stored responses are bounded per request and metered over many requests', async () => {
  const items: string[] = []
  for (let stored = 0; stored < 6; stored += 1) {
    const answer = await service.responses({ input: `${stored} ${'a'.repeat(4 * MiB)}` })
    const { output } = (await answer.json()) as { output: { id: string }[] }
    items.push(output[0]!.id)
  }
  const count = (ids: readonly string[]): Promise<Answer> =>
    service
      .post('/responses/input_tokens', {
        model: 'svc-router/frontier',
        input: ids.map((id) => ({ type: 'item_reference', id })),
      })
      .then(readAnswer)
  clock.startMinute()
  const all = await count(items)
  expect([all.status, errorOf(all).code]).toEqual([400, 'invalid_request'])
  expect(errorOf(all).message).toContain('larger than 20 MiB')
  expect((await count(items.slice(0, 1))).status).toBe(200)

  let answers = 0
  let last = await count(items.slice(0, 3))
  for (; last.status === 200 && answers < 20; answers += 1) last = await count(items.slice(0, 3))
  expect([last.status, errorOf(last).code]).toEqual([429, 'rate_limit_exceeded'])
  expect(last.headers.get('ratelimit')).toContain('"refused";r=0')
  expect(answers).toBeLessThan(8)
}, 60_000)

test('messages that wait on the WebSockets of one account are bounded, and another account is answered independently', async () => {
  const sockets = await Promise.all(Array.from({ length: 14 }, () => RawSocket.open(service.origin, service.key)))
  for (const socket of sockets) socket.write({ opcode: 1, length: 5 * MiB, payload: 'a'.repeat(5 * MiB - 1) })
  const refused = (): number => sockets.filter(({ closed, closeCode }) => closed || closeCode === 1013).length
  await expect.poll(refused, { timeout: 10_000 }).toBeGreaterThanOrEqual(3)
  expect(refused()).toBeLessThan(14)
  const { key } = await service.addAccount('other', 'max')
  const other = await SocketClient.open(service, { key })
  expect((await other.turn()).last.type).toBe('response.completed')
  await other.close()
  for (const { socket } of sockets) socket.destroy()
}, 30_000)

test("an account whose connections cache much evicts its own history, never another's", () => {
  const budget = new CacheBudget(1_000)
  const quiet = new ConnectionCache(budget, 1_000, 'quiet')
  quiet.set('mine', 'a'.repeat(100), {})
  const loud = Array.from({ length: 20 }, () => new ConnectionCache(budget, 1_000, 'loud'))
  for (const [index, memory] of loud.entries()) memory.set(`${index}`, 'b'.repeat(300), {})
  expect(quiet.find('mine')).toBeDefined()
  expect(budget.chars).toBeLessThanOrEqual(1_000)
  expect(loud.at(-1)!.find('19')).toBeDefined()
})
