import { Kysely, PostgresDialect, sql, type Transaction } from 'kysely'
import { Client, type ClientBase, DatabaseError, Pool, type PoolClient, TypeOverrides } from 'pg'
import { StoreUnavailable } from '../../runtime/store-unavailable.ts'
import { migrate } from '../migrations/migrate.ts'
import { migrations } from '../migrations/steps.ts'
import type { Tables } from '../schema/schema.ts'

const connectTimeoutMs = 3_000
/** A statement without an answer after this long has failed for its caller (contract 32.8). */
const defaultQueryTimeoutMs = 5_000
const idleTimeoutMs = 30_000
const defaultMaxConnections = 10
/** How long a node waits for another one that migrates the same database. */
const migrationLockTimeout = '120s'
/**
 * How long a migration waits for a table: meanwhile, the statements of running nodes wait for it (contract 36.8).
 */
const tableLockTimeout = '3s'
/** An arbitrary advisory lock key, locked while migrating. */
const migrationLock = 7_308_412
const int8 = 20

export interface PostgresOptions {
  /** Maximum connections of this pool. Default 10. */
  readonly maxConnections?: number
  /** Milliseconds until a statement without an answer fails. Default 5,000. */
  readonly queryTimeoutMs?: number
}

/**
 * Migrates the schema, and opens a pool of connections. Close it with `destroy()`. @throws SchemaMismatch,
 * or StoreUnavailable if the server cannot be reached or is read-only
 */
export async function openPostgres(url: string, options: PostgresOptions = {}): Promise<Kysely<Tables>> {
  const migrating = connectPostgres(url, { maxConnections: 1, queryTimeoutMs: 0 })
  try {
    await migrate(migrating, lockSchema, migrations, orderByBytes)
  } finally {
    await migrating.destroy()
  }
  return connectPostgres(url, options)
}

/**
 * Opens a pool of connections to a database with the current schema. Nothing here uses session state, so a pooler such as
 * PgBouncer may run each transaction on another connection (contract 36.7).
 */
export function connectPostgres(
  url: string,
  { maxConnections = defaultMaxConnections, queryTimeoutMs = defaultQueryTimeoutMs }: PostgresOptions = {},
): Kysely<Tables> {
  // Parse integers as numbers: times, counts, and units stay far below 2^53.
  const types = new TypeOverrides()
  types.setTypeParser(int8, parseInteger)
  const pool = new Pool({
    connectionString: url,
    max: maxConnections,
    connectionTimeoutMillis: connectTimeoutMs,
    idleTimeoutMillis: idleTimeoutMs,
    query_timeout: queryTimeoutMs,
    keepAlive: true,
    application_name: 'svc-router',
    types,
    Client: ImpatientClient,
  })
  // A connection that breaks is harmless, idle or in use: its statement fails, and the next one opens another.
  pool.on('error', () => {})
  pool.on('connect', (client) => client.on('error', () => {}))
  const dialect = new PostgresDialect({
    pool: {
      connect: () => connectWritable(pool).catch((error: unknown) => Promise.reject(asThrown(error))),
      end: () => pool.end(),
      options: pool.options,
    },
  })
  return new Kysely<Tables>({ dialect })
}

/** Connections that were checked when they were new. */
const writable = new WeakSet<ClientBase>()

/**
 * A connection that accepts writes. The pool's own check (`verify`) would lose the connection for good if the caller gave up
 * waiting for one in the meantime.
 */
async function connectWritable(pool: Pool): Promise<PoolClient> {
  const client = await pool.connect()
  if (writable.has(client)) return client
  try {
    await assertWritable(client)
  } catch (error) {
    client.release(true)
    throw error
  }
  writable.add(client)
  return client
}

/**
 * Closes its connection when a statement takes too long. The driver alone would return it to the pool, where the next
 * caller waits for that statement.
 */
class ImpatientClient extends Client {
  override query(...given: unknown[]): never {
    const result = (super.query as (...given: unknown[]) => unknown).apply(this, given)
    if (!(result instanceof Promise)) return result as never
    return result.catch((error: unknown) => {
      if (error instanceof Error && error.message === 'Query read timeout') streamOf(this).destroy()
      throw asThrown(error)
    }) as never
  }
}

/** The driver has no public way to close a connection without waiting for its statement. */
function streamOf(client: Client): { destroy(): void } {
  return (client as unknown as { readonly connection: { readonly stream: { destroy(): void } } }).connection.stream
}

/**
 * SQLSTATE classes and codes of a server that is unreachable, starting, stopping, out of resources, read-only, or busy:
 * connection (08), resources (53), operator intervention (57P), lock timeout (55P03).
 */
const unavailableCodes = /^(?:08|53|57P|58|XX001|55P03|25006|40P01)/

/** Errors without a SQLSTATE are those of the connection. */
function asThrown(error: unknown): Error {
  if (!(error instanceof Error)) return new Error('the database driver failed', { cause: error })
  if (error instanceof StoreUnavailable || error instanceof RangeError) return error
  const code = 'code' in error && typeof error.code === 'string' ? error.code : undefined
  const isAnswer = error instanceof DatabaseError
  if (isAnswer && !unavailableCodes.test(code ?? '')) return error
  return Object.assign(new StoreUnavailable('the database does not answer', { cause: error }), { code })
}

/** Otherwise a replica would answer reads of keys with old data (contract 36.6). */
async function assertWritable(client: ClientBase): Promise<void> {
  const { rows } = await client.query<{ transaction_read_only: string }>('show transaction_read_only')
  if (rows[0]?.transaction_read_only !== 'off') throw new StoreUnavailable('the database does not accept writes')
}

/**
 * The revision that key caches poll. Fails on a replica: a pooler may connect there after a failover, long after the
 * connection was checked (contract 36.6).
 */
export async function readRevisionOnPrimary(db: Kysely<Tables>): Promise<number> {
  const { rows } = await sql<{ value: number }>`
    select value from revisions where id = 1 and not pg_is_in_recovery()`.execute(db)
  if (rows[0] === undefined) throw new StoreUnavailable('the database does not accept writes')
  return rows[0].value
}

/** Nodes that start at the same time migrate one after another (contract 36.4). */
async function lockSchema(transaction: Transaction<Tables>): Promise<void> {
  await sql`set local lock_timeout = ${sql.lit(migrationLockTimeout)}`.execute(transaction)
  await sql`select pg_advisory_xact_lock(${migrationLock})`.execute(transaction)
  await sql`set local lock_timeout = ${sql.lit(tableLockTimeout)}`.execute(transaction)
}

/**
 * Makes indexed texts compare by their bytes, whatever the database's collation: ids sort by time only in this order.
 */
async function orderByBytes(transaction: Transaction<Tables>): Promise<void> {
  const { rows } = await sql<{ table: string; changes: string }>`
    select c.relname as table, string_agg(format('alter column %I type text collate "C"', a.attname), ', ') as changes
    from pg_attribute a
    join pg_class c on c.oid = a.attrelid
    join pg_collation o on o.oid = a.attcollation
    where c.relnamespace = current_schema()::regnamespace and c.relname in (${sql.join(tableNames())})
      and a.atttypid = 'text'::regtype and o.collname <> 'C'
      and exists (select 1 from pg_index i where i.indrelid = c.oid and a.attnum = any(i.indkey))
    group by c.relname`.execute(transaction)
  for (const { table, changes } of rows)
    await sql`alter table ${sql.table(table)} ${sql.raw(changes)}`.execute(transaction)
}

/** The tables that the migrations create: the schema may contain those of other programs. */
function tableNames(): readonly string[] {
  const created = migrations.flatMap(({ statements }) => statements).join('\n')
  return [...created.matchAll(/create table (\w+)/g)].map(([, name]) => name!)
}

function parseInteger(value: string): number {
  const number = Number(value)
  if (!Number.isSafeInteger(number)) throw new RangeError('a stored number is larger than 2^53')
  return number
}
