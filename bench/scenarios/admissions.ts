import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { type Kysely, sql } from 'kysely'
import type { Plan } from '../../src/domain/plans.ts'
import type { Ledger } from '../../src/gateway/ports.ts'
import { openPostgresLedger } from '../../src/storage/ledger/ledger-postgres.ts'
import { openSqliteLedger } from '../../src/storage/ledger/ledger-sqlite.ts'
import { connectPostgres, openPostgres } from '../../src/storage/postgres/open-postgres.ts'
import type { Tables } from '../../src/storage/schema/schema.ts'
import { openSqlite } from '../../src/storage/sqlite/open-sqlite.ts'
import { hasPostgres, startPostgres, type TestPostgres } from '../../tests/postgres.ts'
import type { Bench } from '../bench.ts'
import { clock, mintId, outcome } from '../ledger-sample.ts'
import type { Row } from '../rows.ts'

const accounts = 1_000
const waitingCounts = [1, 16, 100, 500]
const nodeCounts = [1, 2]
const connectionsPerNode = 4
const plan: Plan = { id: 'bench', name: 'Bench', requestsPerMinute: 1e6, requestsPerMonth: 1e9, premium: true }

type ClosableLedger = Ledger & { close(): Promise<void> }

interface Measured {
  readonly perSecond: number
  readonly p50: number
  readonly p99: number
  /** Admissions per transaction; undefined on SQLite, which decides in memory. */
  readonly batch: number | undefined
}

/**
 * Admissions per second of one database, with the time until each is durable: SQLite in one process, and PostgreSQL with
 * one and two nodes in this process. The database, the nodes, and the load share the machine.
 */
export async function measureAdmissions(bench: Bench): Promise<Row[]> {
  const postgres = hasPostgres('the scenario admissions') ? await startPostgres({ durable: true }) : undefined
  try {
    const rows: Row[] = []
    for (const waiting of waitingCounts) {
      const contenders = [
        { name: 'SQLite', run: (round: number) => measureSqlite(bench, waiting, round) },
        ...(postgres === undefined ? [] : nodeCounts).map((nodes) => ({
          name: `PostgreSQL, ${nodes} ${nodes === 1 ? 'node' : 'nodes'}`,
          run: (round: number) => measurePostgres(bench, postgres!, { waiting, nodes, round }),
        })),
      ]
      const measured = new Map<string, Measured[]>(contenders.map(({ name }) => [name, []]))
      for (let round = 0; round < bench.options.longRounds; round++)
        for (const { name, run } of contenders) measured.get(name)!.push(await run(round))
      rows.push(...rowsOf(waiting, measured))
    }
    return rows
  } finally {
    await postgres?.stop()
  }
}

function rowsOf(waiting: number, measured: ReadonlyMap<string, readonly Measured[]>): Row[] {
  const scenario = `admissions, ${waiting} at once`
  const figures = [
    ['admissions/s', ({ perSecond }: Measured) => perSecond],
    ['p50 ms', ({ p50 }: Measured) => p50],
    ['p99 ms', ({ p99 }: Measured) => p99],
    ['admissions per batch', ({ batch }: Measured) => batch],
  ] as const
  return figures.flatMap(([figure, read]) =>
    [...measured].flatMap(([gateway, rounds]) => {
      const values = rounds.flatMap((round) => read(round) ?? [])
      return values.length === 0 ? [] : [{ scenario, figure, gateway, values }]
    }),
  )
}

async function measureSqlite(bench: Bench, waiting: number, round: number): Promise<Measured> {
  const folder = join(bench.folder, `admissions-${waiting}-${round}`)
  await (await openSqlite(folder)).destroy()
  const ledger = await openSqliteLedger(folder, clock)
  return { ...(await measure([ledger], waiting, bench.options.admissionsMs)), batch: undefined }
}

async function measurePostgres(
  bench: Bench,
  server: TestPostgres,
  { waiting, nodes, round }: { readonly waiting: number; readonly nodes: number; readonly round: number },
): Promise<Measured> {
  const url = await server.createDatabase()
  const db = await openPostgres(url, { maxConnections: 1 })
  await sql.raw(`alter database ${new URL(url).pathname.slice(1)} set track_functions = 'pl'`).execute(db)
  const pools = Array.from({ length: nodes }, () => connectPostgres(url, { maxConnections: connectionsPerNode }))
  try {
    const ledgers = await Promise.all(
      pools.map((pool, index) => {
        const folder = join(bench.folder, `admissions-${waiting}-${nodes}-${round}-${index}`)
        mkdirSync(folder)
        return openPostgresLedger(pool, folder, clock)
      }),
    )
    const measured = await measure(ledgers, waiting, bench.options.admissionsMs)
    await Promise.all(pools.map((pool) => pool.destroy()))
    return { ...measured, batch: await batchSize(db) }
  } finally {
    await Promise.all([db, ...pools].map((pool) => pool.destroy().catch(() => {})))
  }
}

/** Counts the function that every batch calls once. The connections must be closed: until then, they count for themselves. */
async function batchSize(db: Kysely<Tables>): Promise<number> {
  const { rows } = await sql<{
    size: number
  }>`select (select count(*) from requests)::float8 / sum(calls)::float8 as size
    from pg_stat_user_functions where funcname = 'svc_router_admit_2'`.execute(db)
  return rows[0]!.size
}

/** Admits and settles until the time is over, `waiting` requests at once, and closes the ledgers. */
async function measure(
  ledgers: readonly ClosableLedger[],
  waiting: number,
  durationMs: number,
): Promise<Omit<Measured, 'batch'>> {
  const latencies: number[] = []
  const startedMs = performance.now()
  let next = 0
  const lane = async (ledger: Ledger): Promise<void> => {
    while (performance.now() - startedMs < durationMs) {
      const accountId = `acc_${String(next++ % accounts).padStart(24, '0')}`
      const facts = { accountId, keyId: 'key_000000000000000000000001', profile: 'svc-router/frontier' }
      const askedMs = performance.now()
      const admission = await ledger.admit(
        { id: mintId(), ...facts, format: 'openai-chat', stream: false, units: 1 },
        plan,
      )
      await admission.durable()
      latencies.push(performance.now() - askedMs)
      admission.deliver()
      admission.settle(outcome, 'done')
    }
  }
  await Promise.all(Array.from({ length: waiting }, (_, index) => lane(ledgers[index % ledgers.length]!)))
  // Outcomes that are still waiting belong to the work.
  for (const ledger of ledgers) await ledger.close()
  const perSecond = latencies.length / ((performance.now() - startedMs) / 1_000)
  latencies.sort((a, b) => a - b)
  const at = (share: number): number => latencies[Math.floor(latencies.length * share)]!
  return { perSecond, p50: at(0.5), p99: at(0.99) }
}
