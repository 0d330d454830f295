import type { StatementSync } from 'node:sqlite'
import { parentPort, receiveMessageOnPort, workerData } from 'node:worker_threads'
import { connectSqlite } from './connect-sqlite.ts'
import { type Batch, closing, type FromWorker, recordKinds, type ToWorker, type WorkerStart } from './ledger-batch.ts'
import { recoverFromName } from './ledger-recovery.ts'
import { failureReason } from './ledger-unavailable.ts'

/** How long to wait before a failed commit is tried again: doubled each time. */
const firstRetryMs = 50
const longestRetryMs = 2000

const port = parentPort
if (port === null) throw new Error('this file is the body of a worker thread')
const { path, busyTimeoutMs } = workerData as WorkerStart
const database = connectSqlite(path, busyTimeoutMs)
const statements = recordKinds.map((kind) => database.prepare(kind.sql))
const addUsage = database.prepare(
  `insert into usage (account_id, period_id, used) values (?, ?, ?)
   on conflict (account_id, period_id) do update set used = used + excluded.used`,
)
const setRecoverFrom = database.prepare(
  `insert into ledger (name, value) values ('${recoverFromName}', ?)
   on conflict (name) do update set value = excluded.value`,
)
const begin = database.prepare('begin immediate')
const commit = database.prepare('commit')

/** Received and not yet on disk, in order. Bounded by what the ledger has under way at once. */
let waiting: Batch[] = []
let isClosing = false
let retryMs = 0

port.on('message', (message: ToWorker) => {
  receive(message)
  // What has gathered while the last commit ran goes into one transaction.
  for (let more = receiveMessageOnPort(port); more !== undefined; more = receiveMessageOnPort(port)) {
    receive(more.message as ToWorker)
  }
  if (retryMs === 0) write()
})
tell({ type: 'ready' })

function receive(message: ToWorker): void {
  if (message === closing) isClosing = true
  else waiting.push(JSON.parse(message) as Batch)
}

function write(): void {
  const last = waiting.at(-1)
  if (last !== undefined) {
    try {
      begin.run()
      for (const batch of waiting) apply(batch)
      commit.run()
    } catch (error) {
      if (database.isTransaction) database.exec('rollback')
      retryMs = Math.min(longestRetryMs, retryMs === 0 ? firstRetryMs : retryMs * 2)
      setTimeout(write, retryMs)
      tell({ type: 'failed', reason: failureReason(error) })
      return
    }
    retryMs = 0
    waiting = []
    tell({ type: 'committed', number: last.number })
  }
  if (isClosing) {
    database.close()
    port?.close()
  }
}

function apply({ records, usage, recoverFrom }: Batch): void {
  for (let at = 0; at < records.length;) {
    const kind = records[at] as number
    const next = at + 1 + recordKinds[kind]!.cells
    const statement = statements[kind] as StatementSync
    statement.run(...records.slice(at + 1, next))
    at = next
  }
  for (let at = 0; at < usage.length; at += 3) addUsage.run(usage[at]!, usage[at + 1]!, usage[at + 2]!)
  if (recoverFrom !== undefined) setRecoverFrom.run(recoverFrom)
}

function tell(message: FromWorker): void {
  port?.postMessage(message)
}
