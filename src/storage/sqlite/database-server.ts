import type { DatabaseSync } from 'node:sqlite'
import { type MessagePort, receiveMessageOnPort } from 'node:worker_threads'
import { StoreUnavailable } from '../../runtime/store-unavailable.ts'
import { spendingReader } from './budget-spending.ts'
import { connectSqlite, forQueries } from './connect-sqlite.ts'
import { LedgerCommits } from './ledger-commits.ts'
import { proveQuotasOnSqlite } from './prove-quotas.ts'
import {
  type AccountCounters,
  type Call,
  type CallMessage,
  type ConnectionName,
  type ErrorMessage,
  type FromWorker,
  threadClockMs,
  type ToWorker,
  type WorkerStart,
} from './sqlite-messages.ts'
import { SqliteStatements } from './sqlite-statements.ts'

/**
 * The work of the database thread, until a close message has arrived; then it closes its port. Ledger commits run before
 * queries: a batch waits for at most one statement.
 */
export class DatabaseServer {
  readonly #port: MessagePort
  readonly #path: string
  readonly #ledger: LedgerCommits
  readonly #readCounters: CountersReader
  readonly #readSpending: ReturnType<typeof spendingReader>
  readonly #connections = new Map<ConnectionName, SqliteStatements>()
  /** Received calls that have not run yet, in order. The sender limits their number. */
  readonly #calls: CallMessage[] = []
  #closing: { readonly finishFrom: string | undefined } | undefined

  constructor(port: MessagePort, { path, busyTimeoutMs }: WorkerStart) {
    this.#port = port
    this.#path = path
    const database = connectSqlite(path, busyTimeoutMs)
    this.#ledger = new LedgerCommits(
      database,
      busyTimeoutMs,
      (message) => this.#tell(message),
      () => this.#endIfDone(),
    )
    this.#readCounters = countersReader(database)
    this.#readSpending = spendingReader(database)
    port.on('message', (message: ToWorker) => this.#work(message))
    this.#tell({ type: 'ready' })
  }

  #work(message: ToWorker): void {
    this.#receive(message)
    do {
      // Batches that arrived during the last commit or statement share one transaction.
      for (let more = receiveMessageOnPort(this.#port); more !== undefined; more = receiveMessageOnPort(this.#port)) {
        this.#receive(more.message as ToWorker)
      }
      this.#ledger.write()
      const next = this.#calls.shift()
      if (next !== undefined) this.#run(next)
    } while (this.#calls.length > 0)
    // The transaction of a query that just ended may have blocked the ledger's commit.
    this.#ledger.write()
    this.#endIfDone()
  }

  #receive(message: ToWorker): void {
    if (typeof message === 'string') this.#ledger.add(message)
    else if (message.type === 'call') this.#calls.push(message)
    else this.#closing = message
  }

  #run({ id, expiresAtMs, call }: CallMessage): void {
    try {
      if (threadClockMs() > expiresAtMs) throw new StoreUnavailable('the call arrived after its time limit')
      const value = this.#answer(call)
      if (!(value instanceof Promise)) return this.#tell({ type: 'answer', id, value })
      value.then(
        () => this.#tell({ type: 'answer', id, value: undefined }),
        (error: unknown) => this.#tell({ type: 'error', id, error: errorMessage(error) }),
      )
    } catch (error) {
      this.#tell({ type: 'error', id, error: errorMessage(error) })
    }
  }

  #answer(call: Call): unknown {
    if (call.type === 'execute') return this.#connection(call.connection).execute(call.sql, call.parameters)
    if (call.type === 'rollback') return this.#connections.get(call.connection)?.rollback()
    if (call.type === 'prove') return proveQuotasOnSqlite(this.#path)
    if (call.type === 'spending') return this.#readSpending(call.accountId, call.sinceMs)
    return this.#readCounters(call)
  }

  #connection(name: ConnectionName): SqliteStatements {
    let connection = this.#connections.get(name)
    if (connection === undefined) {
      const opened = connectSqlite(this.#path, 0)
      // Commits of stored responses do not wait for the disk, because ledger commits would have to wait for them. They
      // survive a crash of the process immediately, and a crash of the machine after the next ledger commit.
      forQueries(opened, name === 'responses' ? 'normal' : 'full')
      connection = new SqliteStatements(opened)
      this.#connections.set(name, connection)
    }
    return connection
  }

  #endIfDone(): void {
    if (this.#closing === undefined || this.#calls.length > 0 || !this.#ledger.isIdle) return
    for (const connection of this.#connections.values()) connection.close()
    this.#ledger.close(this.#closing.finishFrom)
    this.#closing = undefined
    this.#port.close()
  }

  #tell(message: FromWorker): void {
    this.#port.postMessage(message, [])
  }
}

type CountersReader = (call: Extract<Call, { readonly type: 'counters' }>) => AccountCounters

function countersReader(database: DatabaseSync): CountersReader {
  const readUsage = database.prepare('select period_id, used from usage where account_id = ? and period_id >= ?')
  const readRecent = database.prepare(
    'select admitted_at_ms, key_id from requests where account_id = ? and admitted_at_ms > ?',
  )
  return ({ accountId, periodId, sinceMs }) => ({
    usage: readUsage
      .all(accountId, periodId)
      .map((row) => ({ periodId: String(row.period_id), used: Number(row.used) })),
    recent: readRecent
      .all(accountId, sinceMs)
      .map((row) => ({ atMs: Number(row.admitted_at_ms), keyId: String(row.key_id) })),
  })
}

function errorMessage(error: unknown): ErrorMessage {
  const { message, code, errcode } = error as { message?: unknown; code?: unknown; errcode?: unknown }
  return { message: String(message), code, errcode }
}
