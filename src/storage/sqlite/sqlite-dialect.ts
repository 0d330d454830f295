import type { SQLInputValue } from 'node:sqlite'
import { setTimeout as sleep } from 'node:timers/promises'
import {
  type CompiledQuery,
  CompiledQuery as Query,
  type DatabaseConnection,
  type Dialect,
  type Driver,
  type QueryResult,
  SqliteAdapter,
  SqliteIntrospector,
  SqliteQueryCompiler,
} from 'kysely'
import { isBusy } from './connect-sqlite.ts'
import { ConnectionSlot } from './connection-slot.ts'
import type { SqliteResult } from './sqlite-messages.ts'

/** How long a statement waits for another writer. The wait is asynchronous and blocks nothing else. */
const busyTimeoutMs = 5000
const busyPauseMs = 3

/** One SQLite connection, of this thread or of the database thread. */
export interface SqliteConnection {
  execute(sql: string, parameters: readonly SQLInputValue[]): SqliteResult | Promise<SqliteResult>
  /** Ends the open transaction, if there is one. */
  rollback(): void | Promise<void>
  /** The caller is done with it, and the next one begins. */
  release(): void
  close(): void
}

/** Kysely over one SQLite connection, which `open` opens at the first query. */
export function sqliteDialect(open: () => SqliteConnection): Dialect {
  return {
    createAdapter: () => new SlottedAdapter(),
    createDriver: () => new SqliteDriver(open),
    createIntrospector: (db) => new SqliteIntrospector(db),
    createQueryCompiler: () => new SqliteQueryCompiler(),
  }
}

/** Kysely would queue the callers itself, without a bound: `ConnectionSlot` does it instead. */
class SlottedAdapter extends SqliteAdapter {
  override get supportsMultipleConnections(): boolean {
    return true
  }
}

class SqliteDriver implements Driver {
  readonly #open: () => SqliteConnection
  readonly #slot = new ConnectionSlot()
  #connection: KyselyConnection | undefined

  constructor(open: () => SqliteConnection) {
    this.#open = open
  }

  async init(): Promise<void> {
    this.#connection = new KyselyConnection(this.#open())
  }

  async acquireConnection(): Promise<DatabaseConnection> {
    await this.#slot.acquire()
    return this.#opened()
  }

  // Takes the write lock at the start: a transaction that reads first could not get it later.
  async beginTransaction(connection: DatabaseConnection): Promise<void> {
    await connection.executeQuery(Query.raw('begin immediate'))
  }

  async commitTransaction(connection: DatabaseConnection): Promise<void> {
    await connection.executeQuery(Query.raw('commit'))
  }

  async rollbackTransaction(): Promise<void> {
    await this.#opened().connection.rollback()
  }

  async releaseConnection(): Promise<void> {
    this.#connection?.connection.release()
    this.#slot.release()
  }

  /** Waits for earlier queries, for at most 5 s. */
  async destroy(): Promise<void> {
    await this.#slot.close()
    this.#connection?.connection.close()
  }

  #opened(): KyselyConnection {
    if (this.#connection === undefined) throw new Error('the database is not open')
    return this.#connection
  }
}

class KyselyConnection implements DatabaseConnection {
  readonly connection: SqliteConnection

  constructor(connection: SqliteConnection) {
    this.connection = connection
  }

  async executeQuery<R>(query: CompiledQuery): Promise<QueryResult<R>> {
    const giveUpAtMs = performance.now() + busyTimeoutMs
    const parameters = query.parameters as readonly SQLInputValue[]
    for (;;) {
      try {
        const { rows, changes } = await this.connection.execute(query.sql, parameters)
        return {
          rows: rows as R[],
          ...(changes === undefined ? undefined : { numAffectedRows: BigInt(changes) }),
        }
      } catch (error) {
        if (!isBusy(error) || performance.now() > giveUpAtMs) throw error
        await sleep(busyPauseMs)
      }
    }
  }

  async *streamQuery<R>(): AsyncIterableIterator<QueryResult<R>> {
    yield await Promise.reject(new Error('streaming of rows is not used'))
  }
}
