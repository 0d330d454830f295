import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { freePort } from '../../src/runtime/free-port.ts'
import { type SimulatedProvider, startSimulatedProvider } from '../../src/simulation/providers/simulated-provider.ts'
import { connectPostgres } from '../../src/storage/postgres/open-postgres.ts'
import { childrenOf, isRunning } from '../faults/children-of.ts'
import { RawConnection, writePost } from '../faults/raw-client.ts'
import { ServiceProcess } from '../faults/service-process.ts'
import { hasPostgres } from '../postgres.ts'
import { sharedPostgres } from '../shared-postgres.ts'
import { runCrashCycles } from './crash-cycles.ts'
import { recordsInPostgres } from './records-in-postgres.ts'

const limitMs = 180_000
/** A worker that hangs delays a reading by 1 s. */
const scrapeLimitMs = 2_500
const requests = 40
const crashCycles = 2
const minDelivered = 40

const stores = hasPostgres('workers') ? ['SQLite', 'PostgreSQL'] : ['SQLite']

describe.runIf(existsSync('/proc/self/task')).each(stores)('several workers on %s', (store) => {
  let folder: string
  let provider: SimulatedProvider
  let service: ServiceProcess
  let metricsPort: number

  beforeAll(async () => {
    const database = store === 'SQLite' ? undefined : await (await sharedPostgres()).createMigratedDatabase()
    folder = mkdtempSync(join(tmpdir(), 'svc-router-workers-'))
    provider = await startSimulatedProvider({ name: 'alpha' })
    metricsPort = await freePort()
    const settings = {
      workers: 2,
      drain_delay: '300ms',
      metrics_listen: { port: metricsPort },
      ...(database === undefined ? {} : { database: { url_env: 'DATABASE_URL' } }),
      backends: { alpha: { provider: 'alpha', model: 'simulated' } },
    }
    service = new ServiceProcess(folder, [provider], settings, database === undefined ? {} : { DATABASE_URL: database })
    await service.start()
  })
  afterAll(async () => {
    await service.destroy()
    await provider.close()
    rmSync(folder, { recursive: true, force: true })
  })

  async function ask(): Promise<void> {
    const chat = { model: 'svc-router/frontier', messages: [{ role: 'user', content: 'Hello' }] }
    const connection = new RawConnection(service.port)
    expect((await connection.ask(writePost('/chat/completions', service.key, chat))).status).toBe(200)
    connection.leave()
  }

  /** The value of a series of the whole node. */
  async function read(series: string): Promise<number> {
    const response = await fetch(`http://127.0.0.1:${metricsPort}/metrics`, {
      signal: AbortSignal.timeout(scrapeLimitMs),
    })
    const line = (await response.text()).split('\n').find((candidate) => candidate.startsWith(`${series} `))
    return Number(line?.slice(series.length + 1))
  }

  const admissions = 'svc_router_admissions_total{profile="svc-router/frontier"}'

  test(
    'one scrape returns the metrics of all workers, while one of them hangs and after one was killed',
    async () => {
      await Promise.all(Array.from({ length: requests }, ask))
      await expect.poll(() => read('svc_router_workers'), { timeout: 10_000 }).toBe(2)
      await expect.poll(() => read(admissions), { timeout: 10_000 }).toBe(requests)
      const [first, second] = childrenOf(service.running.pid!)
      process.kill(first!, 'SIGSTOP')
      expect(await read('svc_router_workers')).toBe(1)
      expect(await read(admissions)).toBe(requests)
      process.kill(first!, 'SIGKILL')
      await expect.poll(() => read('svc_router_workers'), { timeout: 10_000 }).toBe(2)
      expect(await read(admissions)).toBe(requests)
      expect(childrenOf(service.running.pid!)).toContain(second)
      await Promise.all(Array.from({ length: requests }, ask))
      // A worker that is too busy to answer a scrape in time counts as it was before.
      await expect.poll(() => read(admissions), { timeout: 10_000 }).toBe(2 * requests)
    },
    limitMs,
  )

  /** The answers of so many connections that both workers gave some. */
  async function listsProfile(profile: string): Promise<readonly boolean[]> {
    const ask = async (): Promise<boolean> => {
      const headers = { authorization: `Bearer ${service.key}`, connection: 'close' }
      const response = await fetch(`http://127.0.0.1:${service.port}/v1/models`, { headers })
      return (await response.text()).includes(profile)
    }
    return [...new Set(await Promise.all(Array.from({ length: 24 }, ask)))]
  }

  test(
    'an edited configuration file reaches no worker before a restart, and then all; SIGHUP stops all and fails no stream',
    async () => {
      const file = join(folder, 'svc-router.yaml')
      const edited = `${readFileSync(file, 'utf8')}profiles:\n  edited/profile: { backends: [alpha] }\n`
      writeFileSync(file, edited)
      const [killed] = service.workers() as [number, number]
      process.kill(killed, 'SIGKILL')
      await expect.poll(() => service.workers(), { timeout: 10_000 }).not.toContain(killed)
      await expect.poll(() => read('svc_router_workers'), { timeout: 20_000 }).toBe(2)
      expect(await listsProfile('edited/profile')).toEqual([false])
      const workers = service.workers()
      for (const worker of workers) process.kill(worker, 'SIGHUP')
      const before = provider.counts().requests
      provider.script([{ do: 'answer', words: 30, tokenDelayMs: 50, repeat: true }])
      const chat = { model: 'svc-router/frontier', stream: true, messages: [{ role: 'user', content: 'Hello' }] }
      const streams = Array.from({ length: 8 }, () =>
        new RawConnection(service.port).ask(writePost('/chat/completions', service.key, chat)),
      )
      await expect.poll(() => provider.counts().requests, { timeout: 10_000 }).toBe(before + streams.length)
      expect(service.workers()).toEqual(workers)
      expect(await service.stop('SIGHUP')).toBe(0)
      for (const { status, complete, body } of await Promise.all(streams)) {
        expect([status, complete]).toEqual([200, true])
        expect(body.trimEnd()).toMatch(/data: \[DONE\]$/)
      }
      expect(workers.filter(isRunning)).toEqual([])
      await service.start()
      expect(await listsProfile('edited/profile')).toEqual([true])
    },
    limitMs,
  )
})

test.runIf(hasPostgres('workers') && existsSync('/proc/self/task'))(
  'after kill -9 of a worker on PostgreSQL under load, every delivered answer is counted and no undelivered one is',
  async () => {
    const url = await (await sharedPostgres()).createMigratedDatabase()
    const db = connectPostgres(url, { maxConnections: 1 })
    try {
      const place = recordsInPostgres(db, { DATABASE_URL: url })
      const report = await runCrashCycles(crashCycles, { place, workers: 2, victim: 'worker', minDelivered })
      expect(report.deliveredUncounted).toEqual([])
      expect(report.undeliveredCounted).toEqual(report.diedAtTheMark)
      expect(report.unequalTotals).toBe(0)
      expect(report.delivered).toBeGreaterThanOrEqual(minDelivered)
    } finally {
      await db.destroy()
    }
  },
  limitMs,
)
