import { parentPort, receiveMessageOnPort, workerData } from 'node:worker_threads'
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

/*
 * The body of the database thread. Ledger commits run before queries: a batch waits for at most one statement.
 */

const port = parentPort
if (port === null) throw new Error('this file is the body of a worker thread')
const start = workerData as WorkerStart
const database = connectSqlite(start.path, start.busyTimeoutMs)
const ledger = new LedgerCommits(database, start.busyTimeoutMs, tell, endIfDone)
const readUsed = database.prepare('select used from usage where account_id = ? and period_id = ?')
const readRecent = database.prepare(
  'select admitted_at_ms, key_id from requests where account_id = ? and admitted_at_ms > ?',
)
const readSpending = spendingReader(database)
const connections = new Map<ConnectionName, SqliteStatements>()
/** Received calls that have not run yet, in order. The sender limits their number. */
const calls: CallMessage[] = []
let closing: { readonly finishFrom: string | undefined } | undefined

port.on('message', (message: ToWorker) => {
  receive(message)
  do {
    // Batches that arrived during the last commit or statement share one transaction.
    for (let more = receiveMessageOnPort(port); more !== undefined; more = receiveMessageOnPort(port)) {
      receive(more.message as ToWorker)
    }
    ledger.write()
    const next = calls.shift()
    if (next !== undefined) run(next)
  } while (calls.length > 0)
  // The transaction of a query that just ended may have blocked the ledger's commit.
  ledger.write()
  endIfDone()
})
tell({ type: 'ready' })

function receive(message: ToWorker): void {
  if (typeof message === 'string') ledger.add(message)
  else if (message.type === 'call') calls.push(message)
  else closing = message
}

function run({ id, expiresAtMs, call }: CallMessage): void {
  try {
    if (threadClockMs() > expiresAtMs) throw new StoreUnavailable('the call arrived after its time limit')
    const value = answer(call)
    if (!(value instanceof Promise)) return tell({ type: 'answer', id, value })
    value.then(
      () => tell({ type: 'answer', id, value: undefined }),
      (error: unknown) => tell({ type: 'error', id, error: errorMessage(error) }),
    )
  } catch (error) {
    tell({ type: 'error', id, error: errorMessage(error) })
  }
}

function answer(call: Call): unknown {
  if (call.type === 'execute') return connectionOf(call.connection).execute(call.sql, call.parameters)
  if (call.type === 'rollback') return connections.get(call.connection)?.rollback()
  if (call.type === 'prove') return proveQuotasOnSqlite(start.path)
  if (call.type === 'spending') return readSpending(call.accountId, call.sinceMs)
  return {
    used: Number(readUsed.get(call.accountId, call.periodId)?.used ?? 0),
    recent: readRecent
      .all(call.accountId, call.sinceMs)
      .map((row) => ({ atMs: Number(row.admitted_at_ms), keyId: String(row.key_id) })),
  } satisfies AccountCounters
}

function connectionOf(name: ConnectionName): SqliteStatements {
  let connection = connections.get(name)
  if (connection === undefined) {
    const opened = connectSqlite(start.path, 0)
    // Commits of stored responses do not wait for the disk, because ledger commits would have to wait for them. They
    // survive a crash of the process immediately, and a crash of the machine after the next ledger commit.
    forQueries(opened, name === 'responses' ? 'normal' : 'full')
    connection = new SqliteStatements(opened)
    connections.set(name, connection)
  }
  return connection
}

function endIfDone(): void {
  if (closing === undefined || calls.length > 0 || !ledger.isIdle) return
  for (const connection of connections.values()) connection.close()
  ledger.close(closing.finishFrom)
  closing = undefined
  port?.close()
}

function errorMessage(error: unknown): ErrorMessage {
  const { message, code, errcode } = error as { message?: unknown; code?: unknown; errcode?: unknown }
  return { message: String(message), code, errcode }
}

function tell(message: FromWorker): void {
  port?.postMessage(message)
}
