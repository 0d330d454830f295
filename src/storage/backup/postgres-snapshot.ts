import { type Kysely, sql, type Transaction } from 'kysely'
import { BackupError } from '../../domain/backup-error.ts'
import { assertKnown, markMoved, unmarkMoved } from '../migrations/migrate.ts'
import type { Tables } from '../schema/schema.ts'
import { openForCopy } from './postgres-copy.ts'
import { readPostgresRows } from './postgres-rows.ts'
import { type Snapshot, writeSnapshot } from './snapshot.ts'
import { assertSpace } from './whole-file.ts'

/** A node that has sent no heartbeat for this long does not run. */
const deadAfterMs = 15_000

export interface PostgresSnapshotOptions {
  /** The file to write. */
  readonly partial: string
  /** Its folder. */
  readonly target: string
  /** Whether the data moves: no node may run, or start, unless the caller calls `keepOnPostgres`. */
  readonly moves: boolean
}

/**
 * Copies a PostgreSQL database into a new SQLite file, as of one point in time, while nodes run. @throws SchemaMismatch,
 * BackupError, and errors of the engines
 */
export async function takePostgresSnapshot(
  url: string,
  { partial, target, moves }: PostgresSnapshotOptions,
): Promise<Snapshot> {
  const db = openForCopy(url)
  try {
    return await db
      .transaction()
      .setIsolationLevel('repeatable read')
      .execute(async (transaction) => {
        // Before the first read, which decides what the transaction sees. Changes of the control plane wait for the lock
        // on the revision, and fail then.
        if (moves) await sql`lock table nodes, revisions in share mode`.execute(transaction)
        const schema = await assertMigrated(transaction)
        if (moves) await assertNoNode(transaction)
        assertSpace(target, await sizeOf(transaction))
        const snapshot = await writeSnapshot(partial, schema, (table) => readPostgresRows(transaction, table))
        if (moves) await markMoved(transaction)
        return snapshot
      })
  } finally {
    await db.destroy()
  }
}

/** The data did not move after all: nodes may use the database again. */
export async function keepOnPostgres(url: string): Promise<void> {
  const db = openForCopy(url)
  await unmarkMoved(db).finally(() => db.destroy())
}

async function assertMigrated(db: Kysely<Tables>): Promise<string> {
  const { rows } = await sql<{ found: string | null }>`select to_regclass('migrations') as found`.execute(db)
  const applied = rows[0]?.found === null ? [] : await db.selectFrom('migrations').selectAll().orderBy('name').execute()
  // A version that merely works with a newer schema does not know its tables.
  assertKnown(applied.map(({ name, checksum }) => ({ name, checksum })))
  const last = applied.at(-1)
  if (last === undefined)
    throw new BackupError(
      'the PostgreSQL database contains no svc-router data',
      'check the URL in the environment variable that database.url_env names',
    )
  return last.name
}

async function assertNoNode(db: Transaction<Tables>): Promise<void> {
  const { rows } = await sql<{ id: string }>`select id from nodes
    where seen_at_ms > extract(epoch from clock_timestamp()) * 1000 - ${deadAfterMs} limit 1`.execute(db)
  if (rows.length > 0)
    throw new BackupError(
      `a node is using the PostgreSQL database, or was less than ${deadAfterMs / 1000} s ago`,
      'stop every node, and try again after that time',
    )
}

/** As PostgreSQL stores it: SQLite needs less. */
async function sizeOf(db: Transaction<Tables>): Promise<number> {
  const { rows } = await sql<{ bytes: number }>`select coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint as bytes
    from pg_class c where c.relnamespace = current_schema()::regnamespace and c.relkind = 'r'`.execute(db)
  return rows[0]?.bytes ?? 0
}
