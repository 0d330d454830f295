import { once } from 'node:events'
import { StatementSync } from 'node:sqlite'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Worker } from 'node:worker_threads'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { databasePath } from '../../src/storage/sqlite/connect-sqlite.ts'
import { freezeDatabase } from '../frozen-database.ts'
import { HeldTime } from '../held-time.ts'
import { Service } from '../service.ts'

const frozenMs = 7_000
/** After this time, cached keys are not valid without the store. */
const leaseMs = 5_000

let service: Service
let worker: Worker

beforeAll(async () => {
  const started = once(process, 'worker', { signal: AbortSignal.timeout(20_000) })
  service = await Service.start({ formats: ['openai-chat'], hasOwnThread: true })
  ;[worker] = (await started) as [Worker]
})
afterAll(async () => {
  await service.stop()
})

test('no request executes a statement on the main thread', async () => {
  const { key } = await service.addAccount('another', 'max')
  const ran = (['all', 'get', 'run', 'iterate'] as const).map((name) => vi.spyOn(StatementSync.prototype, name))
  const authorization = `Bearer ${key}`
  const answers = [
    await service.chat({}, { authorization }),
    await service.chat({ stream: true }, { authorization }),
    await service.responses({ store: true }, { authorization }),
    await fetch(`${service.baseUrl}/models`, { headers: { authorization } }),
    await service.chat({}, { authorization: `Bearer ${service.key}` }),
  ]
  const { id } = (await answers[2]!.clone().json()) as { id: string }
  answers.push(await fetch(`${service.baseUrl}/responses/${id}`, { headers: { authorization } }))
  for (const answer of answers) {
    expect([answer.status, await answer.text()]).toEqual([200, expect.any(String)])
  }
  for (const each of ran) expect(each.mock.calls).toEqual([])
  vi.restoreAllMocks()
})

test('while the disk hangs, health checks and streams continue and requests are rejected in time; afterwards everything recovers', async () => {
  const { key: unknown } = await service.addAccount('not seen yet', 'max')
  // The service notices the change and caches the first account again.
  await sleep(1_000)
  expect((await service.chat()).status).toBe(200)
  service.providers[0]!.script([{ do: 'answer', tokenDelayMs: 250 }])
  const stream = await service.chat({ stream: true })
  const thaw = freezeDatabase(worker, databasePath(service.config.dataDir))
  const startMs = performance.now()
  const waiting = service.chat()
  const refused = service.chat({}, { authorization: `Bearer ${unknown}` })
  using held = new HeldTime()
  const healthMs: number[] = []
  const health = (async () => {
    while (performance.now() - startMs < frozenMs) {
      const askedMs = performance.now()
      expect((await fetch(`${service.origin}/health`)).status).toBe(200)
      const answeredMs = performance.now()
      healthMs.push(answeredMs - askedMs - held.within(askedMs, answeredMs))
      await sleep(50)
    }
  })()
  const text = await stream.text()
  expect(text.trimEnd().endsWith('data: [DONE]')).toBe(true)
  expect(performance.now() - startMs, 'the stream ended while the disk hung').toBeLessThan(frozenMs)
  expect([(await refused).status, await (await refused).json()]).toMatchObject([
    503,
    { error: { code: 'auth_unavailable' } },
  ])
  await sleep(Math.max(0, startMs + leaseMs + 700 - performance.now()))
  const askedMs = performance.now()
  expect((await service.chat()).status).toBe(503)
  expect(performance.now() - askedMs).toBeLessThan(3_000)
  await health
  expect(healthMs.toSorted((a, b) => a - b)[Math.floor(healthMs.length * 0.9)]).toBeLessThan(100)
  thaw()
  expect((await waiting).status, 'its record was written after all').toBe(200)
  await expect.poll(async () => (await service.chat()).status, { timeout: 5_000 }).toBe(200)
  await expect.poll(async () => (await fetch(`${service.origin}/ready`)).status, { timeout: 5_000 }).toBe(200)
}, 40_000)
