import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { controlBackend } from '../../src/accounts/backends/backend-controls.ts'
import { revokeKey } from '../../src/accounts/keys.ts'
import { systemClock } from '../../src/runtime/clock.ts'
import { systemRandom } from '../../src/runtime/random.ts'
import { Secret } from '../../src/runtime/secret.ts'
import { type SimulatedProvider, startSimulatedProvider } from '../../src/simulation/providers/simulated-provider.ts'
import { openSqlite } from '../../src/storage/sqlite/open-sqlite.ts'
import { createStore, type Store } from '../../src/storage/store.ts'
import { isRunning } from './children-of.ts'
import { runCrashCycles } from './crash-cycles.ts'
import { RawConnection, writePost } from './raw-client.ts'
import { ServiceProcess } from './service-process.ts'

const limitMs = 60_000
const crashCycles = 4
/** The longest time until a change holds in every worker (contract 3.11). */
const changedWithinMs = 1_000
const actor = { kind: 'cli' } as const
const pepper = 'the pepper of the workers of this test'

describe.runIf(existsSync('/proc/self/task'))('two workers on SQLite', () => {
  let folder: string
  let provider: SimulatedProvider
  let service: ServiceProcess

  beforeEach(async () => {
    folder = mkdtempSync(join(tmpdir(), 'svc-router-workers-'))
    provider = await startSimulatedProvider({ name: 'alpha' })
  })
  afterEach(async () => {
    await service.destroy()
    await provider.close()
    rmSync(folder, { recursive: true, force: true })
  })

  async function start(perMinute = 100_000, perMonth = 1_000_000): Promise<void> {
    const max = { name: 'Max', requests_per_minute: perMinute, requests_per_month: perMonth, premium: true }
    const backends = { alpha: { provider: 'alpha', model: 'simulated' } }
    service = new ServiceProcess(
      folder,
      [provider],
      { workers: 2, plans: { max }, backends },
      {
        SVC_ROUTER_PEPPER: pepper,
        SVC_ROUTER_SEALING_KEY: Buffer.alloc(32, 7).toString('base64'),
      },
    )
    await service.start()
  }

  const chat = { model: 'svc-router/frontier', messages: [{ role: 'user', content: 'Hello!' }] }
  async function ask(path = '/chat/completions', body: object = chat) {
    // The kernel gives each new connection to one of the workers.
    const connection = new RawConnection(service.port)
    try {
      return await connection.ask(writePost(path, service.key, body))
    } finally {
      connection.leave()
    }
  }

  /** Changes the database as another process, and waits until every worker answers accordingly. */
  async function change(work: (store: Store) => Promise<unknown>, status: number): Promise<void> {
    const db = await openSqlite(service.dataDir)
    await work(createStore(db))
    await db.destroy()
    const changedMs = performance.now()
    // By chance, a worker gets none of 40 connections twice in 10^12 runs.
    for (let inRow = 0; inRow < 40;) {
      const isChanged = (await ask()).status === status
      if (!isChanged) expect(performance.now() - changedMs).toBeLessThan(changedWithinMs)
      inRow = isChanged ? inRow + 1 : 0
    }
  }

  test.each([
    ['400 a minute', 400, 1_000_000, 400, 429],
    ['300 a month', 500, 300, 300, 402],
  ])(
    'they admit exactly the limit of 1,000 simultaneous requests: %s',
    async (_, perMinute, perMonth, admitted, refusal) => {
      await start(perMinute, perMonth)
      const answers = await Promise.all(Array.from({ length: 1_000 }, () => ask()))
      const statuses = answers.map(({ status }) => status)
      expect(statuses.filter((status) => status === 200)).toHaveLength(admitted)
      expect(statuses.filter((status) => status === refusal)).toHaveLength(1_000 - admitted)
      const used = answers.filter(({ status }) => status === 200).map(({ headers }) => Number(headers['x-quota-used']))
      expect(Math.max(...used)).toBe(admitted)
      expect(await service.stop('SIGTERM')).toBe(0)
      expect(service.workers()).toEqual([])
      expect(service.records().map(({ state, charged }) => [state, charged])).toEqual(
        Array.from({ length: admitted }, () => ['done', 1]),
      )
    },
    limitMs,
  )

  test(
    'a stored answer is found, a drained backend is left out, and a revoked key is refused by both',
    async () => {
      await start()
      const stored = JSON.parse((await ask('/responses', { model: chat.model, input: 'Hello!' })).body) as {
        id: string
      }
      for (let each = 0; each < 20; each++) {
        const next = { model: chat.model, input: 'And now?', previous_response_id: stored.id }
        expect((await ask('/responses', next)).status).toBe(200)
      }
      const deps = { clock: systemClock(), random: systemRandom(), pepper: new Secret(pepper), actor } as const
      const drain = { step: 'drained', backend: 'alpha', reason: 'maintenance' } as const
      await change((store) => controlBackend({ ...deps, store }, drain), 503)
      await change(async (store) => {
        const [account] = await store.listAccounts(1)
        const [key] = await store.listKeys(account!.id, 1)
        await revokeKey({ ...deps, store }, key!.id)
      }, 401)
    },
    limitMs,
  )

  test(
    'a worker that hangs does not stop the other one',
    async () => {
      await start()
      const [hung] = service.workers() as [number]
      process.kill(hung, 'SIGSTOP')
      // Those that the hung one got wait for it.
      const asked = Array.from({ length: 40 }, () => ask())
      const first = await Promise.any(asked)
      expect(first.status).toBe(200)
      await sleep(500)
      process.kill(hung, 'SIGCONT')
      expect((await Promise.all(asked)).map(({ status }) => status)).toEqual(asked.map(() => 200))
    },
    limitMs,
  )

  test(
    'when their owner dies they end at once, and the next start continues',
    async () => {
      await start()
      expect((await ask()).status).toBe(200)
      const workers = service.workers()
      expect(workers).toHaveLength(2)
      await service.stop('SIGKILL')
      await expect.poll(() => workers.filter(isRunning), { timeout: 5_000 }).toEqual([])
      await service.start()
      expect((await ask()).headers['x-quota-used']).toBe('2')
    },
    limitMs,
  )
})

test.runIf(existsSync('/proc/self/task')).each(['service', 'worker'] as const)(
  'after kill -9 of the %s under load with two workers, every delivered answer is counted and no undelivered one is',
  { timeout: limitMs },
  async (victim) => {
    const report = await runCrashCycles(crashCycles, { workers: 2, victim })
    console.log(JSON.stringify(report))
    expect(report.deliveredUncounted).toEqual([])
    expect(report.undeliveredCounted).toEqual(report.diedAtTheMark)
    expect(report.diedAtTheMark.length).toBeLessThanOrEqual(1)
    expect(report.unequalTotals).toBe(0)
    expect(report.delivered).toBeGreaterThan(crashCycles * 10)
    expect(report.cut).toBeGreaterThan(0)
  },
)
