import type { DatabaseSync, SQLInputValue, StatementSync } from 'node:sqlite'
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

const statementLimit = 200
/** How long a statement waits for another writer. The waiting is asynchronous: the event loop goes on meanwhile. */
const busyTimeoutMs = 5000
const busyPauseMs = 3

/** Kysely over `node:sqlite`: one connection, which Kysely itself hands out to one caller at a time. */
export function sqliteDialect(open: () => DatabaseSync): Dialect {
  return {
    createAdapter: () => new SqliteAdapter(),
    createDriver: () => new NodeSqliteDriver(open),
    createIntrospector: (db) => new SqliteIntrospector(db),
    createQueryCompiler: () => new SqliteQueryCompiler(),
  }
}

class NodeSqliteDriver implements Driver {
  readonly #open: () => DatabaseSync
  #database: DatabaseSync | undefined
  #connection: NodeSqliteConnection | undefined

  constructor(open: () => DatabaseSync) {
    this.#open = open
  }

  async init(): Promise<void> {
    this.#database = this.#open()
    this.#connection = new NodeSqliteConnection(this.#database)
  }

  async acquireConnection(): Promise<DatabaseConnection> {
    if (this.#connection === undefined) throw new Error('the database is not open')
    return this.#connection
  }

  // The write lock is taken at the start: a transaction that first reads and then writes could not get it any more.
  async beginTransaction(connection: DatabaseConnection): Promise<void> {
    await connection.executeQuery(Query.raw('begin immediate'))
  }

  async commitTransaction(connection: DatabaseConnection): Promise<void> {
    await connection.executeQuery(Query.raw('commit'))
  }

  async rollbackTransaction(connection: DatabaseConnection): Promise<void> {
    // A full disk makes SQLite roll back by itself; then there is nothing left to end.
    if (this.#database?.isTransaction) await connection.executeQuery(Query.raw('rollback'))
  }

  async releaseConnection(): Promise<void> {}

  async destroy(): Promise<void> {
    this.#database?.close()
  }
}

class NodeSqliteConnection implements DatabaseConnection {
  readonly #database: DatabaseSync
  readonly #statements = new Map<string, { readonly statement: StatementSync; readonly reads: boolean }>()

  constructor(database: DatabaseSync) {
    this.#database = database
  }

  async executeQuery<R>(query: CompiledQuery): Promise<QueryResult<R>> {
    const giveUpAtMs = performance.now() + busyTimeoutMs
    for (;;) {
      try {
        return this.#execute(query)
      } catch (error) {
        if (!isBusy(error) || performance.now() > giveUpAtMs) throw error
        await sleep(busyPauseMs)
      }
    }
  }

  async *streamQuery<R>(): AsyncIterableIterator<QueryResult<R>> {
    yield await Promise.reject(new Error('streaming of rows is not used'))
  }

  #execute<R>(query: CompiledQuery): QueryResult<R> {
    const { statement, reads } = this.#prepare(query.sql)
    const parameters = query.parameters as readonly SQLInputValue[]
    if (reads) return { rows: statement.all(...parameters) as R[] }
    const { changes } = statement.run(...parameters)
    return { rows: [], numAffectedRows: BigInt(changes) }
  }

  #prepare(sql: string): { readonly statement: StatementSync; readonly reads: boolean } {
    const known = this.#statements.get(sql)
    if (known !== undefined) return known
    if (this.#statements.size >= statementLimit) this.#statements.clear()
    const statement = this.#database.prepare(sql)
    const prepared = { statement, reads: statement.columns().length > 0 }
    this.#statements.set(sql, prepared)
    return prepared
  }
}
