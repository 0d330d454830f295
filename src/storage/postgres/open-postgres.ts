import { Kysely, PostgresDialect, sql } from 'kysely'
import { Pool, TypeOverrides } from 'pg'
import { migrate } from '../migrations/migrate.ts'
import type { Tables } from '../schema/schema.ts'

const maxConnections = 10
const connectTimeoutMs = 5000
/** The server cancels a statement after this time, which includes waiting for a lock. */
const statementTimeoutMs = 10_000
/** The client gives up after this time: longer, so that the server's own error comes first. */
const queryTimeoutMs = 15_000
const idleTimeoutMs = 30_000
/** An arbitrary advisory lock key, locked while migrating. */
const migrationLock = 7_308_412
const int8 = 20

/**
 * Opens a Postgres database and migrates its schema. Close it with `destroy()`. `onConnectionError` is called for
 * connections that break while idle, which is harmless: the next statement opens another. @throws SchemaMismatch, or
 * the driver's error if the server cannot be reached
 */
export async function openPostgres(url: string, onConnectionError: () => void = () => {}): Promise<Kysely<Tables>> {
  // Parse integers as numbers: times, counts, and units stay far below 2^53.
  const types = new TypeOverrides()
  types.setTypeParser(int8, parseInteger)
  const pool = new Pool({
    connectionString: url,
    max: maxConnections,
    connectionTimeoutMillis: connectTimeoutMs,
    idleTimeoutMillis: idleTimeoutMs,
    statement_timeout: statementTimeoutMs,
    query_timeout: queryTimeoutMs,
    application_name: 'svc-router',
    types,
  })
  pool.on('error', onConnectionError)
  const db = new Kysely<Tables>({ dialect: new PostgresDialect({ pool }) })
  try {
    await migrate(db, async (transaction) => {
      await sql`select pg_advisory_xact_lock(${migrationLock})`.execute(transaction)
    })
    return db
  } catch (error) {
    await db.destroy()
    throw error
  }
}

function parseInteger(value: string): number {
  const number = Number(value)
  if (!Number.isSafeInteger(number)) throw new RangeError('a stored number is larger than 2^53')
  return number
}
