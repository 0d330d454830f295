import type { SQLInputValue } from 'node:sqlite'
import { StoreUnavailable } from '../../runtime/store-unavailable.ts'
import type { SqliteConnection } from './sqlite-dialect.ts'
import type { ConnectionName, SqliteResult } from './sqlite-messages.ts'
import type { DatabaseThread } from './sqlite-thread.ts'

/** The main thread's end of a connection in the database thread. */
export class ThreadConnection implements SqliteConnection {
  readonly #thread: DatabaseThread
  readonly #name: ConnectionName
  /** A statement of the current caller received no answer: its transaction is abandoned. */
  #isAbandoned = false
  /** Whether nothing was sent since the last rollback. */
  #isReset = true

  constructor(thread: DatabaseThread, name: ConnectionName) {
    this.#thread = thread
    this.#name = name
  }

  async execute(sql: string, parameters: readonly SQLInputValue[]): Promise<SqliteResult> {
    if (this.#isAbandoned) throw new StoreUnavailable('an earlier statement got no answer')
    try {
      const result = this.#thread.call<SqliteResult>({ type: 'execute', connection: this.#name, sql, parameters })
      this.#isReset = false
      return await result
    } catch (error) {
      if (error instanceof StoreUnavailable) this.#abandon()
      throw error
    }
  }

  async rollback(): Promise<void> {
    if (this.#isAbandoned) return
    try {
      await this.#thread.call({ type: 'rollback', connection: this.#name })
    } catch (error) {
      this.#abandon()
      throw error
    }
  }

  release(): void {
    this.#isAbandoned = false
  }

  /** The thread closes its own connections when it ends. */
  close(): void {}

  /** Rolls back what the thread is still doing in this transaction before the next one begins. */
  #abandon(): void {
    this.#isAbandoned = true
    if (this.#isReset) return
    this.#isReset = true
    this.#thread.send({ type: 'rollback', connection: this.#name })
  }
}
