import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Plan } from '../src/domain/plans.ts'
import type { Ledger } from '../src/gateway/ports.ts'
import { openPostgresLedger } from '../src/storage/ledger/ledger-postgres.ts'
import { openSqliteLedger } from '../src/storage/ledger/ledger-sqlite.ts'
import { connectPostgres, openPostgres } from '../src/storage/postgres/open-postgres.ts'
import { openSqlite } from '../src/storage/sqlite/open-sqlite.ts'
import { startPostgres } from '../tests/postgres.ts'
import { clock, mintId, outcome } from './ledger-sample.ts'

/*
 * Admissions per second of one database, with their latency until they are durable: SQLite in one process, and PostgreSQL
 * with one and two nodes in this process. The database, the nodes, and the load share the machine.
 */

const accounts = 1_000
const durationMs = 4_000
const plan: Plan = { id: 'bench', name: 'Bench', requestsPerMinute: 1e6, requestsPerMonth: 1e9, premium: true }

type ClosableLedger = Ledger & { close(): Promise<void> }

async function measure(name: string, ledgers: readonly ClosableLedger[], waiting: number): Promise<void> {
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
  const perSecond = latencies.length / ((performance.now() - startedMs) / 1_000)
  const beforeCloseMs = performance.now()
  for (const ledger of ledgers) await ledger.close()
  const backlogMs = performance.now() - beforeCloseMs
  latencies.sort((a, b) => a - b)
  const at = (share: number): string => latencies[Math.floor(latencies.length * share)]!.toFixed(2)
  process.stdout.write(
    `${name.padEnd(24)} ${String(waiting).padStart(5)} at once ${perSecond.toFixed(0).padStart(8)}/s  p50 ${at(0.5).padStart(7)} ms  p99 ${at(0.99).padStart(7)} ms  last outcomes after ${backlogMs.toFixed(0)} ms\n`,
  )
}

const folder = mkdtempSync(join(tmpdir(), 'svc-router-bench-'))
const server = await startPostgres({ durable: true })
try {
  for (const waiting of [1, 16, 100, 500]) {
    const sqlite = join(folder, `sqlite-${waiting}`)
    const db = await openSqlite(sqlite)
    await db.destroy()
    await measure('SQLite', [await openSqliteLedger(sqlite, clock)], waiting)
    for (const nodes of [1, 2]) {
      const url = await server.createDatabase()
      const migrated = await openPostgres(url)
      await migrated.destroy()
      const pools = Array.from({ length: nodes }, () => connectPostgres(url, { maxConnections: 4 }))
      const ledgers = await Promise.all(
        pools.map((pool, index) => {
          const own = join(folder, `node-${waiting}-${nodes}-${index}`)
          mkdirSync(own)
          return openPostgresLedger(pool, own, clock)
        }),
      )
      await measure(`PostgreSQL, ${nodes} node${nodes === 1 ? '' : 's'}`, ledgers, waiting)
      for (const pool of pools) await pool.destroy()
    }
  }
} finally {
  await server.stop()
  rmSync(folder, { recursive: true })
}
