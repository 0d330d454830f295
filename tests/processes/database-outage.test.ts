import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Kysely, sql } from 'kysely'
import { describe, test } from 'vitest'
import { startSimulatedProvider } from '../../src/simulation/providers/simulated-provider.ts'
import { connectPostgres } from '../../src/storage/postgres/open-postgres.ts'
import type { Tables } from '../../src/storage/schema/schema.ts'
import { type DatabaseProxy, proxyDatabase } from '../database-proxy.ts'
import { RawConnection, writePost } from '../faults/raw-client.ts'
import { ServiceProcess } from '../faults/service-process.ts'
import { hasPostgres } from '../postgres.ts'
import { sharedPostgres } from '../shared-postgres.ts'

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

describe.runIf(hasPostgres('outages of the database')).concurrent('while the database is out of order', () => {
  test.for(['stall', 'cut'] as const)(
    'requests get a 503 in time, none a 401, and the service recovers within 5 s: %s',
    { timeout: limitMs },
    async (outage, { expect }) => {
      await using world = await OutageWorld.open()
      const { proxy } = world
      expect((await world.ask()).status).toBe(200)
      proxy[outage]()
      const during = await world.askFor(outageMs)
      expect(during.map(({ status }) => status)).not.toContain(401)
      expect(Math.max(...during.map(({ ms }) => ms))).toBeLessThan(answeredWithinMs)
      const refused = during.filter(({ status }) => status === 503)
      // The first requests are answered if their statement was finished before the outage.
      expect(refused.length).toBeGreaterThan(during.length - 3)
      expect(new Set(refused.map(({ code }) => code))).toEqual(new Set(['record_unavailable', 'auth_unavailable']))

      proxy.heal()
      const healedMs = performance.now()
      const after = await world.askFor(recoveredWithinMs)
      expect(after.map(({ status }) => status)).not.toContain(401)
      const firstOk = after.find(({ status }) => status === 200)
      expect(firstOk!.atMs - healedMs).toBeLessThan(recoveredWithinMs)
      expect((await world.ask()).status).toBe(200)

      // Admissions whose callers got a 503 are refunded: only delivered answers stay charged.
      const delivered = 2 + [...during, ...after].filter(({ status }) => status === 200).length
      await expect.poll(() => world.usedUnits(), { timeout: 70_000, interval: 500 }).toBe(delivered)
    },
  )

  test.for(['stall', 'cut'] as const)(
    'a node that starts waits for it: %s',
    { timeout: limitMs },
    async (outage, { expect }) => {
      await using world = await OutageWorld.open()
      world.proxy[outage]()
      const restarted = world.restart()
      await expect.poll(() => world.errors, { timeout: 60_000 }).toContain('waiting for it for up to')
      world.proxy.heal()
      await restarted
      expect((await world.ask()).status).toBe(200)
    },
  )
})

/** A node, and a proxy before its database. */
class OutageWorld {
  readonly proxy: DatabaseProxy
  readonly #node: ServiceProcess
  readonly #db: Kysely<Tables>
  readonly #resources: AsyncDisposableStack

  private constructor(proxy: DatabaseProxy, node: ServiceProcess, db: Kysely<Tables>, resources: AsyncDisposableStack) {
    this.proxy = proxy
    this.#node = node
    this.#db = db
    this.#resources = resources
  }

  static async open(): Promise<OutageWorld> {
    await using opening = new AsyncDisposableStack()
    const url = await (await sharedPostgres()).createMigratedDatabase()
    const proxy = opening.adopt(await proxyDatabase(url), (opened) => opened.close())
    const db = opening.adopt(connectPostgres(url, { maxConnections: 2 }), (opened) => opened.destroy())
    const folder = opening.adopt(mkdtempSync(join(tmpdir(), 'svc-router-outage-')), (path) =>
      rmSync(path, { recursive: true, force: true }),
    )
    const provider = opening.adopt(await startSimulatedProvider({ name: 'alpha' }), (started) => started.close())
    const backends = { alpha: { provider: 'alpha', model: 'simulated' } }
    const max = { name: 'Max', requests_per_minute: 100_000, requests_per_month: 1_000_000, premium: true }
    const settings = { database: { url_env: 'DATABASE_URL' }, plans: { max }, backends }
    const node = opening.adopt(
      new ServiceProcess(folder, [provider], settings, { DATABASE_URL: proxy.url }),
      (started) => started.destroy(),
    )
    await node.start()
    return new OutageWorld(proxy, node, db, opening.move())
  }

  async ask(): Promise<Asked> {
    const connection = new RawConnection(this.#node.port)
    const atMs = performance.now()
    try {
      const request = { model: 'svc-router/frontier', messages: [{ role: 'user', content: 'Hello!' }] }
      const { status, body } = await connection.ask(writePost('/chat/completions', this.#node.key, request))
      const code = /"code":"([a-z_0-9]+)"/.exec(body)?.[1] ?? ''
      return { atMs, status, code, ms: performance.now() - atMs }
    } finally {
      connection.leave()
    }
  }

  /** Asks steadily for a time. */
  async askFor(durationMs: number): Promise<Asked[]> {
    const endsAtMs = performance.now() + durationMs
    const asked: Promise<Asked>[] = []
    while (performance.now() < endsAtMs) {
      asked.push(this.ask())
      await sleep(askEveryMs)
    }
    return Promise.all(asked)
  }

  async restart(): Promise<void> {
    await this.#node.stop('SIGKILL')
    await this.#node.start()
  }

  /** What the node wrote to standard error since its start. */
  get errors(): string {
    return this.#node.errors
  }

  async usedUnits(): Promise<number> {
    const { rows } = await sql<{ used: number }>`select sum(used)::bigint as used from usage`.execute(this.#db)
    return rows[0]!.used
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#resources.disposeAsync()
  }
}
