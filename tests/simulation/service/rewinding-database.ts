import { DatabaseSync, type StatementSync } from 'node:sqlite'

/**
 * A database in memory that returns to its first content at once: everything happens within one transaction, which is
 * rolled back. The transactions of its users are savepoints in it.
 */
export class RewindingDatabase {
  readonly #database = new DatabaseSync(':memory:')
  /** Preparing a statement costs more than most statements. */
  readonly #prepared = new Map<string, StatementSync>()
  #isTransaction = false

  constructor(content: Uint8Array) {
    this.#database.deserialize(content)
    this.#database.exec('begin')
  }

  /** With the methods that the service uses. */
  static open(content: Uint8Array): { readonly database: DatabaseSync; readonly rewind: () => void } {
    const opened = new RewindingDatabase(content)
    return { database: opened as unknown as DatabaseSync, rewind: () => opened.#rewind() }
  }

  get isTransaction(): boolean {
    return this.#isTransaction
  }

  exec(sql: string): void {
    if (sql.startsWith('begin')) this.#begin()
    else if (sql === 'commit') this.#commit()
    else if (sql === 'rollback') this.#rollback()
    else this.#database.exec(sql)
  }

  prepare(sql: string): StatementSync {
    const known = this.#prepared.get(sql)
    if (known !== undefined) return known
    const statement = this.#prepare(sql)
    this.#prepared.set(sql, statement)
    return statement
  }

  function(...args: Parameters<DatabaseSync['function']>): void {
    this.#database.function(...args)
  }

  #prepare(sql: string): StatementSync {
    if (sql.startsWith('begin')) return commandOf(() => this.#begin())
    if (sql === 'commit') return commandOf(() => this.#commit())
    return this.#database.prepare(sql)
  }

  #begin(): void {
    if (this.#isTransaction) throw new Error('a transaction began within a transaction')
    this.#run('savepoint transaction_of_user')
    this.#isTransaction = true
  }

  #commit(): void {
    if (!this.#isTransaction) throw new Error('no transaction to commit')
    this.#run('release transaction_of_user')
    this.#isTransaction = false
  }

  #rollback(): void {
    if (!this.#isTransaction) throw new Error('no transaction to roll back')
    this.#run('rollback to transaction_of_user')
    this.#commit()
  }

  #rewind(): void {
    this.#run('rollback')
    this.#run('begin')
    this.#isTransaction = false
  }

  #run(sql: string): void {
    const statement = this.#prepared.get(sql) ?? this.#database.prepare(sql)
    this.#prepared.set(sql, statement)
    statement.run()
  }
}

/** A statement that returns nothing. */
function commandOf(run: () => void): StatementSync {
  const statement: Pick<StatementSync, 'run' | 'columns'> = {
    run: () => {
      run()
      return { changes: 0, lastInsertRowid: 0 }
    },
    columns: () => [],
  }
  return statement as StatementSync
}
