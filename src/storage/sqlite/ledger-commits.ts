import type { DatabaseSync, StatementSync } from 'node:sqlite'
import { sqliteResultCode } from '../../runtime/sqlite-result-code.ts'
import { isBusy } from './connect-sqlite.ts'
import { failureReason } from './failure-reason.ts'
import { addSpendingSql, type Batch, booked, type Cell, holding, recordKinds, recoverFromName } from './ledger-batch.ts'
import type { FromWorker } from './sqlite-messages.ts'

/** Delay before a failed commit is retried; doubled each time. */
const firstRetryMs = 50
const longestRetryMs = 2000
/** How often a commit checks whether another writer's transaction has ended. */
const busyPauseMs = 3
/** What SQLite says about the values of a row: too big, a violated constraint, or a wrong type. */
const rowFaults: ReadonlySet<number | undefined> = new Set([18, 19, 20])

/** Commits the ledger's batches in order, in the database thread, and retries until each is on disk. */
export class LedgerCommits {
  readonly #database: DatabaseSync
  readonly #busyTimeoutMs: number
  readonly #tell: (message: FromWorker) => void
  readonly #onIdle: () => void
  readonly #statements: readonly StatementSync[]
  readonly #addUsage: StatementSync
  readonly #addSpending: StatementSync
  readonly #setRecoverFrom: StatementSync
  readonly #begin: StatementSync
  readonly #commit: StatementSync
  /** Batches that are not on disk yet, in order. Limited by the ledger's number of requests in flight. */
  #waiting: Batch[] = []
  #retryMs = 0
  #retry: NodeJS.Timeout | undefined
  #busySinceMs: number | undefined

  /** `onIdle` is called when a retry has written everything. */
  constructor(database: DatabaseSync, busyTimeoutMs: number, tell: (message: FromWorker) => void, onIdle: () => void) {
    this.#database = database
    this.#busyTimeoutMs = busyTimeoutMs
    this.#tell = tell
    this.#onIdle = onIdle
    // Waits for other writers asynchronously: one of them may be a query of this thread.
    database.exec('pragma busy_timeout = 0')
    this.#statements = recordKinds.map((kind) => database.prepare(kind.sql))
    this.#addUsage = database.prepare(
      `insert into usage (account_id, period_id, used) values (?, ?, ?)
       on conflict (account_id, period_id) do update set used = used + excluded.used`,
    )
    this.#addSpending = database.prepare(addSpendingSql)
    this.#setRecoverFrom = database.prepare(
      `insert into ledger (name, value) values ('${recoverFromName}', ?)
       on conflict (name) do update set value = excluded.value`,
    )
    this.#begin = database.prepare('begin immediate')
    this.#commit = database.prepare('commit')
  }

  get isIdle(): boolean {
    return this.#waiting.length === 0
  }

  add(batch: string): void {
    this.#waiting.push(JSON.parse(batch) as Batch)
  }

  /** Writes the waiting batches, unless a failed commit is waiting for its retry. */
  write(): void {
    if (this.#waiting.length > 0 && this.#retryMs === 0) this.#write()
  }

  /** Settles everything that was delivered (see `CloseMessage`) and closes the connection. */
  close(finishFrom: string | undefined): void {
    clearTimeout(this.#retry)
    if (finishFrom !== undefined) {
      this.#database.exec(`pragma busy_timeout = ${this.#busyTimeoutMs}`)
      this.#database
        .prepare('update requests set due_mark = null where id >= ? and due_mark is not null')
        .run(finishFrom)
    }
    this.#database.close()
  }

  #write(): void {
    clearTimeout(this.#retry)
    try {
      this.#begin.run()
      for (const batch of this.#waiting) this.#apply(batch)
      this.#commit.run()
    } catch (error) {
      if (this.#database.isTransaction) this.#database.exec('rollback')
      this.#retryLater(error)
      return
    }
    const { number } = this.#waiting.at(-1)!
    this.#retryMs = 0
    this.#busySinceMs = undefined
    this.#waiting = []
    this.#tell({ type: 'committed', number })
  }

  #retryLater(error: unknown): void {
    const nowMs = performance.now()
    this.#busySinceMs ??= nowMs
    let delayMs = busyPauseMs
    if (!isBusy(error) || nowMs - this.#busySinceMs >= this.#busyTimeoutMs) {
      this.#busySinceMs = undefined
      this.#retryMs = Math.min(longestRetryMs, this.#retryMs === 0 ? firstRetryMs : this.#retryMs * 2)
      delayMs = this.#retryMs
      this.#tell({ type: 'failed', reason: failureReason(error) })
    }
    this.#retry = setTimeout(() => {
      this.#write()
      this.#onIdle()
    }, delayMs)
  }

  #apply({ records, usage, spending = [], recoverFrom }: Batch): void {
    for (let at = 0; at < records.length;) {
      const kind = records[at] as number
      const next = at + 1 + recordKinds[kind]!.cells
      const cells = records.slice(at + 1, next)
      if (kind === holding || kind === booked) this.#runBudget(this.#statements[kind]!, cells)
      else this.#statements[kind]!.run(...cells)
      at = next
    }
    for (let at = 0; at < usage.length; at += 3) this.#addUsage.run(usage[at]!, usage[at + 1]!, usage[at + 2]!)
    for (let at = 0; at < spending.length; at += 4) this.#runBudget(this.#addSpending, spending.slice(at, at + 4))
    if (recoverFrom !== undefined) this.#setRecoverFrom.run(recoverFrom)
  }

  /**
   * A row of a budget that the database refuses is left out: repeating its batch could not help, and would stop everyone
   * (contract 46.19). Any other row must be on disk before its answer is sent.
   */
  #runBudget(statement: StatementSync, cells: readonly Cell[]): void {
    try {
      statement.run(...cells)
    } catch (error) {
      if (!rowFaults.has(sqliteResultCode(error))) throw error
      this.#tell({ type: 'bad_row', reason: failureReason(error) })
    }
  }
}
