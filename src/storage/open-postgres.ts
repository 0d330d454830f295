import { Kysely, PostgresDialect, sql } from 'kysely'
import { Pool, TypeOverrides } from 'pg'
import { migrate } from './migrations.ts'
import type { Tables } from './schema.ts'

const maxConnections = 10
const connectTimeoutMs = 5000
/** After it the server gives a statement up; it includes waiting for a lock. */
const statementTimeoutMs = 10_000
/** After it we give up on the server: longer, so that its own answer comes first. */
const queryTimeoutMs = 15_000
const idleTimeoutMs = 30_000
/** A number of our own for the lock that one migrating starter holds. */
const migrationLock = 7_308_412
const int8 = 20

/**
 * Opens a Postgres database with its schema up to date. End it with `destroy()`. `onConnectionError` hears of
 * connections that break while idle: nothing is lost by that, the next statement opens another.
 * @throws SchemaMismatch, or the driver's error where the server cannot be reached
 */
export async function openPostgres(url: string, onConnectionError: () => void = () => {}): Promise<Kysely<Tables>> {
  // Whole numbers arrive as numbers: times, counts and units stay far below 2^53.
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
