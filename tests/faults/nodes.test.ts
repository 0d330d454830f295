import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Kysely } from 'kysely'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { revokeKey } from '../../src/accounts/keys.ts'
import { systemClock } from '../../src/runtime/clock.ts'
import { systemRandom } from '../../src/runtime/random.ts'
import { Secret } from '../../src/runtime/secret.ts'
import { type SimulatedProvider, startSimulatedProvider } from '../../src/simulation/providers/simulated-provider.ts'
import { connectPostgres } from '../../src/storage/postgres/open-postgres.ts'
import type { Tables } from '../../src/storage/schema/schema.ts'
import { createStore } from '../../src/storage/store.ts'
import { hasPgBouncer, startPgBouncer, type TestPgBouncer } from '../pgbouncer.ts'
import { hasPostgres, startPostgres, type TestPostgres } from '../postgres.ts'
import { childrenOf } from './children-of.ts'
import { runCrashCycles } from './crash-cycles.ts'
import { RawConnection, writePost } from './raw-client.ts'
import { recordsInPostgres } from './records-in-postgres.ts'
import { ServiceProcess } from './service-process.ts'

const limitMs = 180_000
const crashCycles = 4
/** The longest time until a revocation holds on every node (contract 3.11). */
const revokedWithinMs = 1_000
const pepper = 'the pepper of every node of this test'

describe.runIf(hasPostgres('nodes'))('nodes on one PostgreSQL database', () => {
  let server: TestPostgres
  let url: string
  let db: Kysely<Tables>
  let folder: string
  let provider: SimulatedProvider
  const nodes: ServiceProcess[] = []
  let bouncer: TestPgBouncer | undefined

  beforeAll(async () => {
    server = await startPostgres({ durable: true })
  })
  afterAll(() => server.stop())
  beforeEach(async () => {
    url = await server.createDatabase()
    db = connectPostgres(url, { maxConnections: 2 })
    folder = mkdtempSync(join(tmpdir(), 'svc-router-nodes-'))
    provider = await startSimulatedProvider({ name: 'alpha' })
  })
  afterEach(async () => {
    await Promise.all(nodes.splice(0).map((node) => node.destroy()))
    await bouncer?.stop()
    bouncer = undefined
    await db.destroy()
    await provider.close()
    rmSync(folder, { recursive: true, force: true })
  })

  const settings = { database: { url_env: 'DATABASE_URL' } }
  const environment = (): NodeJS.ProcessEnv => ({
    DATABASE_URL: bouncer?.url ?? url,
    SVC_ROUTER_PEPPER: pepper,
    SVC_ROUTER_SEALING_KEY: Buffer.alloc(32, 7).toString('base64'),
  })

  /** Starts nodes at the same time, on an empty database. */
  async function startNodes(
    count: number,
    plan: { perMinute: number; perMonth: number },
    more: object = {},
  ): Promise<void> {
    const max = { name: 'Max', requests_per_minute: plan.perMinute, requests_per_month: plan.perMonth, premium: true }
    for (let number = 0; number < count; number++) {
      const own = {
        ...settings,
        ...more,
        plans: { max },
        backends: { alpha: { provider: 'alpha', model: 'simulated' } },
      }
      nodes.push(new ServiceProcess(join(folder, `node-${number}`), [provider], own, environment()))
    }
    await Promise.all(nodes.map((node) => node.start()))
  }

  /** The first keys of the local account: a node makes one if it finds none. */
  const ownKeys = (): string[] => nodes.map(({ key }) => key).filter((key) => key !== '')

  const chat = { model: 'svc-router/frontier', messages: [{ role: 'user', content: 'Hello!' }] }
  async function ask(node: ServiceProcess, key: string): Promise<{ status: number; used: number }> {
    const connection = new RawConnection(node.port)
    try {
      const { status, headers } = await connection.ask(writePost('/chat/completions', key, chat))
      return { status, used: Number(headers['x-quota-used']) }
    } finally {
      connection.leave()
    }
  }

  /** Sends 1,000 requests at once, to all nodes. */
  async function expectExactly(admitted: number, refusal: number): Promise<void> {
    const keys = ownKeys()
    const answers = await Promise.all(
      // Each key works on each node.
      Array.from({ length: 1_000 }, (_, index) => ask(nodes[index % nodes.length]!, keys[index % keys.length]!)),
    )
    const statuses = answers.map(({ status }) => status)
    expect(statuses.filter((status) => status === 200)).toHaveLength(admitted)
    expect(statuses.filter((status) => status === refusal)).toHaveLength(1_000 - admitted)
    // Each admission saw its own place among all of them.
    const seen = answers.filter(({ status }) => status === 200).map(({ used }) => used)
    expect(new Set(seen).size).toBe(admitted)
    expect(Math.max(...seen)).toBe(admitted)
  }

  test.each([
    ['400 a minute', { perMinute: 400, perMonth: 1_000_000 }, 400, 429],
    ['300 a month', { perMinute: 500, perMonth: 300 }, 300, 402],
  ])(
    'two nodes that start at the same time admit exactly the limit of 1,000 simultaneous requests: %s',
    async (_, plan, admitted, refusal) => {
      await startNodes(2, plan)
      await expectExactly(admitted, refusal)
    },
    limitMs,
  )

  test.runIf(hasPgBouncer('nodes behind PgBouncer'))(
    'behind PgBouncer in transaction mode they admit exactly the limit, too',
    async () => {
      bouncer = await startPgBouncer(url)
      await startNodes(2, { perMinute: 400, perMonth: 1_000_000 })
      await expectExactly(400, 429)
    },
    limitMs,
  )

  test(
    'two workers on one port admit exactly the limit, and one that is killed is replaced',
    async () => {
      await startNodes(1, { perMinute: 400, perMonth: 1_000_000 }, { workers: 2 })
      await expectExactly(400, 429)
      const [service] = nodes as [ServiceProcess]
      const before = childrenOf(service.running.pid!)
      expect(before).toHaveLength(2)
      process.kill(before[0]!, 'SIGKILL')
      await expect.poll(() => childrenOf(service.running.pid!).filter((pid) => !before.includes(pid))).toHaveLength(1)
      // The other worker answers meanwhile.
      expect((await ask(service, service.key)).status).toBe(429)
      expect(await service.stop('SIGTERM')).toBe(0)
      expect(childrenOf(service.running.pid!)).toEqual([])
      const open = await db.selectFrom('requests').select('id').where('state', '=', 'open').execute()
      expect(open).toEqual([])
    },
    limitMs,
  )

  test(
    'a revoked key stops working on every node within a second',
    async () => {
      await startNodes(2, { perMinute: 100_000, perMonth: 1_000_000 })
      const [key] = ownKeys() as [string]
      for (const node of nodes) expect((await ask(node, key)).status).toBe(200)
      const store = createStore(db)
      const [account] = await store.listAccounts(1)
      const stored = (await store.listKeys(account!.id, 10)).find(({ hint }) => key.endsWith(hint.slice(-4)))
      const deps = { store, clock: systemClock(), random: systemRandom(), pepper: new Secret(pepper), actor } as const
      await revokeKey(deps, stored!.id)
      const revokedMs = performance.now()
      for (const node of nodes) {
        while ((await ask(node, key)).status === 200) {
          expect(performance.now() - revokedMs).toBeLessThan(revokedWithinMs)
          await sleep(10)
        }
        expect((await ask(node, key)).status).toBe(401)
      }
    },
    limitMs,
  )

  test(
    'after kill -9 of a node under load, every delivered answer is counted and no undelivered one is',
    async () => {
      const place = recordsInPostgres(db, environment())
      const report = await runCrashCycles(crashCycles, place)
      console.log(JSON.stringify(report))
      expect(report.deliveredUncounted).toEqual([])
      expect(report.undeliveredCounted).toEqual(report.diedAtTheMark)
      expect(report.diedAtTheMark.length).toBeLessThanOrEqual(1)
      expect(report.unequalTotals).toBe(0)
      expect(report.delivered).toBeGreaterThan(crashCycles * 10)
      expect(report.cut).toBeGreaterThan(crashCycles)
      expect((await place.records('')).filter(({ state }) => state !== 'done' && state !== 'lost')).toEqual([])
    },
    limitMs,
  )
})

const actor = { kind: 'cli' } as const
