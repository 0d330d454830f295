import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Kysely, sql } from 'kysely'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type SimulatedProvider, startSimulatedProvider } from '../../src/simulation/providers/simulated-provider.ts'
import { connectPostgres } from '../../src/storage/postgres/open-postgres.ts'
import type { Tables } from '../../src/storage/schema/schema.ts'
import { type DatabaseProxy, proxyDatabase } from '../database-proxy.ts'
import { hasPostgres, startPostgres, type TestPostgres } from '../postgres.ts'
import { RawConnection, writePost } from './raw-client.ts'
import { ServiceProcess } from './service-process.ts'

const limitMs = 120_000
/** How long requests may wait during an outage, and how soon the service works after it (contract 36.5). */
const answeredWithinMs = 4_000
const recoveredWithinMs = 5_000
const outageMs = 8_000
const askEveryMs = 50

interface Asked {
  readonly atMs: number
  readonly status: number
  readonly code: string
  readonly ms: number
}

describe.runIf(hasPostgres('outages of the database'))('while the database is out of order', () => {
  let server: TestPostgres
  let proxy: DatabaseProxy
  let db: Kysely<Tables>
  let provider: SimulatedProvider
  let folder: string
  let node: ServiceProcess

  beforeAll(async () => {
    server = await startPostgres()
  })
  afterAll(() => server.stop())
  beforeEach(async () => {
    const url = await server.createDatabase()
    proxy = await proxyDatabase(url)
    db = connectPostgres(url, { maxConnections: 2 })
    folder = mkdtempSync(join(tmpdir(), 'svc-router-outage-'))
    provider = await startSimulatedProvider({ name: 'alpha' })
    const backends = { alpha: { provider: 'alpha', model: 'simulated' } }
    const max = { name: 'Max', requests_per_minute: 100_000, requests_per_month: 1_000_000, premium: true }
    const settings = { database: { url_env: 'DATABASE_URL' }, plans: { max }, backends }
    node = new ServiceProcess(folder, [provider], settings, { DATABASE_URL: proxy.url })
    await node.start()
  })
  afterEach(async () => {
    await node.destroy()
    await proxy.close()
    await db.destroy()
    await provider.close()
    rmSync(folder, { recursive: true, force: true })
  })

  async function ask(): Promise<Asked> {
    const connection = new RawConnection(node.port)
    const atMs = performance.now()
    try {
      const request = { model: 'svc-router/frontier', messages: [{ role: 'user', content: 'Hello!' }] }
      const { status, body } = await connection.ask(writePost('/chat/completions', node.key, request))
      const code = /"code":"([a-z_0-9]+)"/.exec(body)?.[1] ?? ''
      return { atMs, status, code, ms: performance.now() - atMs }
    } finally {
      connection.leave()
    }
  }

  /** Asks steadily for a time. */
  async function askFor(durationMs: number): Promise<Asked[]> {
    const endsAtMs = performance.now() + durationMs
    const asked: Promise<Asked>[] = []
    while (performance.now() < endsAtMs) {
      asked.push(ask())
      await sleep(askEveryMs)
    }
    return Promise.all(asked)
  }

  test.each(['stall', 'cut'] as const)(
    'requests get a 503 in time, none a 401, and the service recovers within 5 s: %s',
    async (outage) => {
      expect((await ask()).status).toBe(200)
      proxy[outage]()
      const during = await askFor(outageMs)
      expect(during.map(({ status }) => status)).not.toContain(401)
      expect(Math.max(...during.map(({ ms }) => ms))).toBeLessThan(answeredWithinMs)
      const refused = during.filter(({ status }) => status === 503)
      // The first requests are answered if their statement was finished before the outage.
      expect(refused.length).toBeGreaterThan(during.length - 3)
      expect(new Set(refused.map(({ code }) => code))).toEqual(new Set(['record_unavailable', 'auth_unavailable']))

      proxy.heal()
      const healedMs = performance.now()
      const after = await askFor(recoveredWithinMs)
      expect(after.map(({ status }) => status)).not.toContain(401)
      const firstOk = after.find(({ status }) => status === 200)
      expect(firstOk!.atMs - healedMs).toBeLessThan(recoveredWithinMs)
      expect((await ask()).status).toBe(200)

      // Admissions whose callers got a 503 are refunded: only delivered answers stay charged.
      const delivered = 2 + [...during, ...after].filter(({ status }) => status === 200).length
      await expect
        .poll(
          async () => {
            const { rows } = await sql<{ used: number }>`select sum(used)::bigint as used from usage`.execute(db)
            return rows[0]!.used
          },
          { timeout: 70_000, interval: 500 },
        )
        .toBe(delivered)
    },
    limitMs,
  )
})
