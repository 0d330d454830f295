import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Kysely, sql } from 'kysely'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { startSimulatedProvider } from '../../src/simulation/providers/simulated-provider.ts'
import { connectPostgres } from '../../src/storage/postgres/open-postgres.ts'
import type { Tables } from '../../src/storage/schema/schema.ts'
import { RawConnection, writePost } from '../faults/raw-client.ts'
import { ServiceProcess } from '../faults/service-process.ts'
import { hasPostgres, startPostgres, type TestPostgres } from '../postgres.ts'
import { runCrashCycles } from '../processes/crash-cycles.ts'
import { recordsInPostgres } from '../processes/records-in-postgres.ts'

const cycles = 100
const cyclesLimitMs = 40 * 60_000
const workers = 3
const perMinute = 300
const clients = 32
const killEveryMs = 700
/** Within one minute, so that nothing more is admitted after the limit. */
const loadMs = 40_000

describe.runIf(hasPostgres('100 crashes of a worker'))('workers on PostgreSQL', () => {
  let server: TestPostgres
  let url: string
  let db: Kysely<Tables>

  beforeAll(async () => {
    server = await startPostgres({ durable: true })
  })
  beforeEach(async () => {
    await db?.destroy()
    url = await server.createDatabase()
    db = connectPostgres(url, { maxConnections: 1 })
  })
  afterAll(async () => {
    await db?.destroy()
    await server.stop()
  })

  test(
    'after each of 100 crashes of a worker under load, every delivered answer is counted and no undelivered one is',
    async () => {
      const report = await runCrashCycles(cycles, {
        place: recordsInPostgres(db, { DATABASE_URL: url }),
        workers,
        victim: 'worker',
      })
      console.log(JSON.stringify(report))
      expect(report.deliveredUncounted).toEqual([])
      // A kill between a mark and its first byte, two adjacent system calls.
      expect(report.undeliveredCounted).toEqual(report.diedAtTheMark)
      expect(report.unequalTotals).toBe(0)
      expect(report.delivered).toBeGreaterThan(cycles * 10)
    },
    cyclesLimitMs,
  )

  test('while workers are killed under load, the limit of the minute is not exceeded', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'svc-router-workers-'))
    const provider = await startSimulatedProvider({ name: 'alpha' })
    const settings = {
      workers,
      plans: { max: { name: 'Max', requests_per_minute: perMinute, requests_per_month: 1_000_000, premium: true } },
      backends: { alpha: { provider: 'alpha', model: 'simulated' } },
      ...recordsInPostgres(db, {}).settings,
    }
    const service = new ServiceProcess(folder, [provider], settings, { DATABASE_URL: url })
    try {
      await service.start()
      const over = AbortSignal.timeout(loadMs)
      const body = { model: 'svc-router/frontier', messages: [{ role: 'user', content: 'Hello' }] }
      let refused = 0
      const client = async (): Promise<void> => {
        while (!over.aborted) {
          const connection = new RawConnection(service.port)
          const { status } = await connection.ask(writePost('/chat/completions', service.key, body))
          connection.leave()
          if (status === 429) refused += 1
          // Spreads the admissions over many kills.
          await sleep(200)
        }
      }
      const all = Promise.all(Array.from({ length: clients }, client))
      let kills = 0
      while (!over.aborted) {
        await sleep(killEveryMs)
        const running = service.workers()
        const victim = running[kills % Math.max(1, running.length)]
        if (running.length < 2 || victim === undefined) continue
        process.kill(victim, 'SIGKILL')
        kills += 1
      }
      await all
      const { rows } = await sql<{ most: number }>`select max(n)::bigint as most from (
        select count(*) over (partition by account_id order by admitted_at_ms
          range between ${60_000 - 1}::bigint preceding and current row) as n from requests) w`.execute(db)
      console.log(JSON.stringify({ kills, refused, most: rows[0]!.most }))
      expect(rows[0]!.most).toBe(perMinute)
      expect(refused).toBeGreaterThan(clients)
      expect(kills).toBeGreaterThan(5)
    } finally {
      await service.destroy()
      await provider.close()
      rmSync(folder, { recursive: true, force: true })
    }
  }, 120_000)
})
