import type { DatabaseSync, SQLInputValue, StatementSync } from 'node:sqlite'
import type { SqliteResult } from './sqlite-messages.ts'

/** Maximum cached prepared statements of one connection. */
const statementLimit = 200

interface Prepared {
  readonly statement: StatementSync
  readonly reads: boolean
}

/** Runs SQL on one connection, with a bounded cache of prepared statements. */
export class SqliteStatements {
  readonly #database: DatabaseSync
  readonly #prepared = new Map<string, Prepared>()

  constructor(database: DatabaseSync) {
    this.#database = database
  }

  execute(sql: string, parameters: readonly SQLInputValue[]): SqliteResult {
    const { statement, reads } = this.#prepare(sql)
    if (reads) return { rows: statement.all(...parameters) }
    return { rows: [], changes: statement.run(...parameters).changes }
  }

  /** Ends the open transaction, if there is one: a full disk makes SQLite roll back by itself. */
  rollback(): void {
    if (this.#database.isTransaction) this.#database.exec('rollback')
  }

  close(): void {
    this.#database.close()
  }

  #prepare(sql: string): Prepared {
    const known = this.#prepared.get(sql)
    if (known !== undefined) return known
    if (this.#prepared.size >= statementLimit) this.#prepared.clear()
    const statement = this.#database.prepare(sql)
    const prepared = { statement, reads: statement.columns().length > 0 }
    this.#prepared.set(sql, prepared)
    return prepared
  }
}
