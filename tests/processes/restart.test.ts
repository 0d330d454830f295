import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { afterEach, expect, test } from 'vitest'
import { startSimulatedProvider, type SimulatedProvider } from '../../src/simulation/providers/simulated-provider.ts'
import { RawConnection, writePost, type RawAnswer } from '../faults/raw-client.ts'
import { ServiceProcess } from '../faults/service-process.ts'

let folder: string
let provider: SimulatedProvider
let service: ServiceProcess

afterEach(async () => {
  await service.destroy()
  await provider.close()
  rmSync(folder, { recursive: true, force: true })
})

async function start(perMinute: number, perMonth: number): Promise<void> {
  folder = mkdtempSync(join(tmpdir(), 'svc-router-restart-'))
  provider = await startSimulatedProvider({ name: 'alpha' })
  service = new ServiceProcess(folder, [provider], {
    backends: { alpha: { provider: 'alpha', model: 'simulated' } },
    plans: { max: { name: 'Max', requests_per_minute: perMinute, requests_per_month: perMonth, premium: true } },
  })
  await service.start()
}

async function ask(stream = false): Promise<RawAnswer> {
  const connection = new RawConnection(service.port)
  const body = { model: 'svc-router/frontier', stream, messages: [{ role: 'user', content: 'Hello' }] }
  const answer = await connection.ask(writePost('/chat/completions', service.key, body))
  connection.leave()
  return answer
}

function askTogether(count: number): Promise<RawAnswer[]> {
  return Promise.all(Array.from({ length: count }, (_, number) => ask(number % 2 === 0)))
}

const withStatus = (answers: readonly RawAnswer[], status: number): number =>
  answers.filter((answer) => answer.status === status).length

test('over three kills under load, any 60 s contain at most the limit of the minute', { timeout: 55_000 }, async () => {
  const limit = 60
  await start(limit, 1_000)
  for (let round = 0; round < 3; round++) {
    provider.script(Array.from({ length: 30 }, () => ({ do: 'answer' as const, tokenDelayMs: 10 })))
    const answers = askTogether(12)
    await delay(40 + round * 30)
    await service.stop('SIGKILL')
    await answers
    await service.start()
  }
  const kept = service.records().length
  expect(kept).toBeGreaterThan(0)
  // Everything on disk counts: exactly the rest of the minute is still available.
  const answers = await askTogether(limit + 20)
  expect([withStatus(answers, 200), withStatus(answers, 429)]).toEqual([limit - kept, 20 + kept])
  const times = service.records().map(({ admittedAtMs }) => admittedAtMs)
  expect(times).toHaveLength(limit)
  expect(Math.max(...times) - Math.min(...times)).toBeLessThan(60_000)
  for (const answer of answers) expect(Number(answer.headers['x-ratelimit-limit'])).toBe(limit)
  const refused = answers.find(({ status }) => status === 429)!
  const waitMs = Number(refused.headers['retry-after']) * 1_000
  // The wait lasts until the first admission, from before the kills, leaves the minute.
  expect(Date.now() + waitMs).toBeGreaterThan(Math.min(...times) + 58_000)
})

test("over kills and an orderly restart, exactly the month's quota is charged", { timeout: 55_000 }, async () => {
  const quota = 40
  await start(10_000, quota)
  for (const signal of ['SIGKILL', 'SIGTERM', 'SIGKILL'] as const) {
    const answers = askTogether(10)
    await delay(60)
    await service.stop(signal)
    await answers
    await service.start()
    const charged = service.records().reduce((sum, record) => sum + record.charged, 0)
    expect(service.usedUnits()).toBe(charged)
  }
  const before = service.usedUnits()
  expect(before).toBeGreaterThan(0)
  const answers = await askTogether(60)
  expect([withStatus(answers, 200), withStatus(answers, 402)]).toEqual([quota - before, 20 + before])
  await expect.poll(() => service.usedUnits()).toBe(quota)
  const last = await ask()
  expect([last.status, last.headers['x-quota-used'], last.headers['x-quota-remaining']]).toEqual([
    402,
    String(quota),
    '0',
  ])
  await service.stop('SIGKILL')
  await service.start()
  expect((await ask()).status).toBe(402)
})

test(
  'signals that arrive together stop it once; a later one aborts, and the answer is charged at the next start',
  { timeout: 55_000 },
  async () => {
    await start(1_000, 1_000)
    provider.script([{ do: 'answer', words: 1_000, tokenDelayMs: 50 }])
    const answer = ask(true)
    await expect.poll(() => service.records().at(-1)?.state, { timeout: 5_000 }).toBe('delivered')
    // A signal to a process group arrives once more from each process that passes it on.
    for (let times = 0; times < 3; times++) {
      service.running.kill('SIGTERM')
      await delay(100)
    }
    await expect.poll(() => service.errors, { timeout: 5_000 }).toContain('"event":"draining"')
    await delay(2_200)
    expect(service.running.exitCode).toBe(null)
    expect(await service.stop('SIGTERM')).toBe(1)
    expect((await answer).complete).toBe(false)
    await service.start()
    expect(service.records()).toMatchObject([{ state: 'lost', charged: 1 }])
  },
)
