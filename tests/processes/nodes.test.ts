import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Kysely, sql } from 'kysely'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { createAccount } from '../../src/accounts/accounts.ts'
import type { AccountsDeps } from '../../src/accounts/control-plane.ts'
import { createKey, type MintedKey, revokeKey } from '../../src/accounts/keys.ts'
import { systemClock } from '../../src/runtime/clock.ts'
import { systemRandom } from '../../src/runtime/random.ts'
import { Secret } from '../../src/runtime/secret.ts'
import { type SimulatedProvider, startSimulatedProvider } from '../../src/simulation/providers/simulated-provider.ts'
import { connectPostgres } from '../../src/storage/postgres/open-postgres.ts'
import type { Tables } from '../../src/storage/schema/schema.ts'
import { createStore } from '../../src/storage/store.ts'
import { fakeTimeLibrary, hasFakeTime } from '../fake-time.ts'
import { childrenOf } from '../faults/children-of.ts'
import { RawConnection, writePost } from '../faults/raw-client.ts'
import { ServiceProcess } from '../faults/service-process.ts'
import { casesOf } from '../long-run.ts'
import { hasPgBouncer, startPgBouncer, type TestPgBouncer } from '../pgbouncer.ts'
import { hasPostgres } from '../postgres.ts'
import { sharedPostgres, type SharedPostgres } from '../shared-postgres.ts'
import { runCrashCycles } from './crash-cycles.ts'
import { recordsInPostgres } from './records-in-postgres.ts'

const limitMs = 180_000
const crashCycles = casesOf({ sample: 2, all: 4 })
const minDelivered = 30
/** The longest time until a revocation holds on every node (contract 3.11). */
const revokedWithinMs = 1_000
const pepper = 'the pepper of every node of this test'
const settings = { database: { url_env: 'DATABASE_URL' } }
const plans = {
  max: { name: 'Max', requests_per_minute: 100_000, requests_per_month: 1_000_000, premium: true },
  minute: { name: '400 a minute', requests_per_minute: 400, requests_per_month: 1_000_000 },
  month: { name: '300 a month', requests_per_minute: 500, requests_per_month: 300 },
}
type PlanId = keyof typeof plans

describe.runIf(hasPostgres('nodes'))('nodes on one PostgreSQL database', () => {
  let server: SharedPostgres
  let url: string
  let db: Kysely<Tables>
  let accounts: AccountsDeps
  let folder: string
  let provider: SimulatedProvider
  const nodes: ServiceProcess[] = []
  let bouncer: TestPgBouncer | undefined

  beforeAll(async () => {
    server = await sharedPostgres({ durable: true })
  })

  async function openDatabase(): Promise<void> {
    await useDatabase(await server.createDatabase())
  }

  async function useDatabase(at: string): Promise<void> {
    url = at
    db = connectPostgres(url, { maxConnections: 2 })
    const store = createStore(db)
    const actor = { kind: 'cli' } as const
    accounts = { store, clock: systemClock(), random: systemRandom(), pepper: new Secret(pepper), actor }
    folder = mkdtempSync(join(tmpdir(), 'svc-router-nodes-'))
    provider = await startSimulatedProvider({ name: 'alpha' })
  }

  async function leaveDatabase(): Promise<void> {
    await Promise.all(nodes.splice(0).map((node) => node.destroy()))
    await bouncer?.stop()
    bouncer = undefined
    await db.destroy()
    await provider.close()
    rmSync(folder, { recursive: true, force: true })
  }

  const environment = (): NodeJS.ProcessEnv => ({
    DATABASE_URL: bouncer?.url ?? url,
    SVC_ROUTER_PEPPER: pepper,
    SVC_ROUTER_SEALING_KEY: Buffer.alloc(32, 7).toString('base64'),
  })

  /** Starts nodes at the same time, on an empty database. */
  async function startNodes(count: number, more: object = {}, env: NodeJS.ProcessEnv = {}): Promise<void> {
    const backends = { alpha: { provider: 'alpha', model: 'simulated' } }
    for (let number = 0; number < count; number++) {
      const own = { ...settings, ...more, plans, backends }
      nodes.push(new ServiceProcess(join(folder, `node-${number}`), [provider], own, { ...environment(), ...env }))
    }
    await Promise.all(nodes.map((node) => node.start()))
  }

  /** Creates an account on a plan, with a key. */
  async function addAccount(planId: PlanId): Promise<MintedKey> {
    const known = Object.entries(plans).map(([id, plan]) => ({
      id,
      name: plan.name,
      premium: false,
      requestsPerMinute: plan.requests_per_minute,
      requestsPerMonth: plan.requests_per_month,
    }))
    const { id } = await createAccount(accounts, `on ${planId}`, planId, known)
    return createKey(accounts, id, 'test')
  }

  const chat = { model: 'svc-router/frontier', messages: [{ role: 'user', content: 'Hello!' }] }
  async function ask(node: ServiceProcess, key: string): Promise<{ status: number; code: string; used: number }> {
    const connection = new RawConnection(node.port)
    try {
      const { status, headers, body } = await connection.ask(writePost('/chat/completions', key, chat))
      const code = /"code":"([a-z_0-9]+)"/.exec(body)?.[1] ?? ''
      return { status, code, used: Number(headers['x-quota-used']) }
    } finally {
      connection.leave()
    }
  }

  /** Sends 1,000 requests of a new account at once, to all nodes. */
  async function expectExactly(planId: PlanId, admitted: number, refusal: string): Promise<void> {
    const key = (await addAccount(planId)).key.reveal()
    const answers = await Promise.all(
      Array.from({ length: 1_000 }, (_, index) => ask(nodes[index % nodes.length]!, key)),
    )
    const counts: Record<string, number> = {}
    for (const { code } of answers) counts[code] = (counts[code] ?? 0) + 1
    expect(counts).toEqual({ '': admitted, [refusal]: 1_000 - admitted })
    // Each admission saw its own place among all of them.
    const seen = answers.filter(({ status }) => status === 200).map(({ used }) => used)
    expect(new Set(seen).size).toBe(admitted)
    expect(Math.max(...seen)).toBe(admitted)
  }

  describe('two nodes that started at the same time', () => {
    beforeAll(async () => {
      await openDatabase()
      await startNodes(2)
    }, limitMs)
    afterAll(leaveDatabase)

    test('the first key works on each node', async () => {
      // A node makes the first key if it finds none.
      const [key, ...others] = nodes.map((node) => node.key).filter((made) => made !== '')
      expect(others).toEqual([])
      for (const node of nodes) expect((await ask(node, key!)).status).toBe(200)
    })

    test('of 1,000 simultaneous requests they admit exactly 400 a minute', { timeout: limitMs }, async () => {
      await expectExactly('minute', 400, 'rate_limit_exceeded')
    })

    test('a revoked key stops working on every node within a second', { timeout: limitMs }, async () => {
      const { key, stored } = await addAccount('max')
      for (const node of nodes) expect((await ask(node, key.reveal())).status).toBe(200)
      await revokeKey(accounts, stored.id)
      const revokedMs = performance.now()
      for (const node of nodes) {
        while ((await ask(node, key.reveal())).status === 200) {
          expect(performance.now() - revokedMs).toBeLessThan(revokedWithinMs)
          await sleep(10)
        }
        expect((await ask(node, key.reveal())).status).toBe(401)
      }
    })
  })

  test(
    'of two nodes that find an empty database at the same moment, one creates the first key and stores it',
    async () => {
      await useDatabase(await server.createMigratedDatabase())
      try {
        const { promise: seen, resolve: release } = Promise.withResolvers<void>()
        // Every change begins with this row, so both wait for it after they have seen that there is no account.
        const held = db.transaction().execute(async (transaction) => {
          await sql`select value from revisions where id = 1 for update`.execute(transaction)
          await seen
        })
        const waiting = async (): Promise<number> => {
          const { rows } = await sql<{ pid: number }>`
            select pid from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`.execute(
            db,
          )
          return rows.length
        }
        const started = startNodes(2)
        await expect.poll(waiting, { timeout: 30_000 }).toBe(2)
        release()
        await Promise.all([held, started])
        const stored = await db.selectFrom('keys').select('name').execute()
        expect(stored).toEqual([{ name: 'first key' }])
        expect(await db.selectFrom('accounts').select('name').execute()).toEqual([{ name: 'local' }])
        const [maker, ...makers] = nodes.filter(({ key }) => key !== '')
        expect(makers).toEqual([])
        for (const node of nodes) {
          expect((await ask(node, maker!.key)).status).toBe(200)
          expect(existsSync(join(node.dataDir, 'first-key'))).toBe(node === maker)
        }
      } finally {
        await leaveDatabase()
      }
    },
    limitMs,
  )

  describe('more nodes', () => {
    beforeEach(openDatabase)
    afterEach(leaveDatabase)

    test.runIf(hasPgBouncer('nodes behind PgBouncer'))(
      'behind PgBouncer in transaction mode, two nodes admit exactly 300 a month',
      async () => {
        bouncer = await startPgBouncer(url)
        await startNodes(2)
        await expectExactly('month', 300, 'insufficient_quota')
      },
      limitMs,
    )

    test(
      'two workers on one port admit exactly the limit, and one that is killed is replaced',
      async () => {
        await startNodes(1, { workers: 2 })
        await expectExactly('minute', 400, 'rate_limit_exceeded')
        const [service] = nodes as [ServiceProcess]
        const before = childrenOf(service.running.pid!)
        expect(before).toHaveLength(2)
        process.kill(before[0]!, 'SIGKILL')
        await expect.poll(() => childrenOf(service.running.pid!).filter((pid) => !before.includes(pid))).toHaveLength(1)
        // The other worker answers meanwhile.
        expect((await ask(service, service.key)).status).toBe(200)
        // The replacement decides the requests of the killed worker by its marks.
        const open = () => db.selectFrom('requests').select('id').where('state', '=', 'open').execute()
        await expect.poll(open, { timeout: 20_000 }).toEqual([])
        expect(await service.stop('SIGTERM')).toBe(0)
        expect(childrenOf(service.running.pid!)).toEqual([])
      },
      limitMs,
    )

    test.runIf(hasFakeTime('nodes with wrong clocks'))(
      'a key ends by the clock of the database, whatever the clock of the node shows',
      async () => {
        await startNodes(1, {}, { LD_PRELOAD: fakeTimeLibrary, FAKETIME: '+300', FAKETIME_DONT_FAKE_MONOTONIC: '1' })
        const [node] = nodes as [ServiceProcess]
        const endsAt = (ms: number) => db.updateTable('keys').set({ state: 'retiring', ends_at_ms: ms }).execute()
        await endsAt(Date.now() + 120_000)
        expect((await ask(node, node.key)).status).toBe(200)
        await endsAt(Date.now() - 1)
        // As every change of a key does.
        await sql`update revisions set value = value + 1`.execute(db)
        await expect.poll(async () => (await ask(node, node.key)).status).toBe(401)
      },
      limitMs,
    )

    test(
      'after kill -9 of a node under load, every delivered answer is counted and no undelivered one is',
      async () => {
        const place = recordsInPostgres(db, environment())
        const report = await runCrashCycles(crashCycles, { place, minDelivered })
        console.log(JSON.stringify(report))
        expect(report.deliveredUncounted).toEqual([])
        expect(report.undeliveredCounted).toEqual(report.diedAtTheMark)
        expect(report.diedAtTheMark.length).toBeLessThanOrEqual(1)
        expect(report.unequalTotals).toBe(0)
        expect(report.delivered).toBeGreaterThanOrEqual(minDelivered)
        expect(report.cut).toBeGreaterThan(crashCycles)
        expect((await place.records('')).filter(({ state }) => state !== 'done' && state !== 'lost')).toEqual([])
      },
      limitMs,
    )
  })
})
