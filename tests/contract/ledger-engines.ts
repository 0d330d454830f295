import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Kysely } from 'kysely'
import { afterAll } from 'vitest'
import type { Plan } from '../../src/domain/plans.ts'
import type { RequestOpening } from '../../src/domain/requests.ts'
import type { Ledger } from '../../src/gateway/ports.ts'
import { systemClock } from '../../src/runtime/clock.ts'
import { idMinter } from '../../src/runtime/ids.ts'
import { systemRandom } from '../../src/runtime/random.ts'
import { openPostgresLedger } from '../../src/storage/ledger/ledger-postgres.ts'
import { openSqliteLedger } from '../../src/storage/ledger/ledger-sqlite.ts'
import { openPostgres } from '../../src/storage/postgres/open-postgres.ts'
import type { Tables } from '../../src/storage/schema/schema.ts'
import { openEmptySqlite } from '../empty-database.ts'
import { startReusedThread } from '../reused-threads.ts'
import { openOwnedLedger } from '../storage/owner/owned-ledger.ts'
import { enginesWith, sqliteEngine } from './engines.ts'

export type ClosableLedger = Ledger & { close(): Promise<void>; healthy(): boolean }

/** A fresh database: `db` reads it, and `open` opens a ledger on it, any number of times in sequence. */
export interface LedgerPlace {
  readonly db: Kysely<Tables>
  open(): Promise<ClosableLedger>
}

export const roomy: Plan = {
  id: 'max',
  name: 'Max',
  requestsPerMinute: 10_000,
  requestsPerMonth: 10_000,
  premium: true,
}

/** Ledgers on every engine, for the tests of one file; `name` says what is skipped without PostgreSQL. */
export function ledgersFor(name: string) {
  const folders = mkdtempSync(join(tmpdir(), 'svc-router-nodes-'))
  afterAll(() => rmSync(folders, { recursive: true }))
  const clock = systemClock()
  const mintId = idMinter('req_', () => clock.nowMs(), systemRandom())

  /** Each ledger is a node with its own data folder. */
  async function openAt(url: string): Promise<LedgerPlace> {
    const db = await openPostgres(url)
    return { db, open: () => openPostgresLedger(db, mkdtempSync(join(folders, 'node-')), clock) }
  }

  const stores = enginesWith<LedgerPlace>(name, {
    openIn: async (folder) => ({
      db: await openEmptySqlite(folder),
      open: () => openSqliteLedger(folder, clock, { startThread: startReusedThread }),
    }),
    openAt,
    durable: true,
  })
  const ofWorker = sqliteEngine<LedgerPlace>(async (folder) => ({
    db: await openEmptySqlite(folder),
    open: () => openOwnedLedger(folder, clock),
  }))
  const engines: typeof stores = [...stores, ['SQLite of a worker', ofWorker]]

  function openingOf(changes: Partial<RequestOpening> = {}): RequestOpening {
    const facts = { accountId: 'acc_1', keyId: 'key_1', profile: 'svc-router/frontier', format: 'openai-chat' }
    return { id: mintId(), ...facts, stream: false, units: 1, ...changes }
  }

  return { clock, openAt, stores, engines, openingOf }
}
