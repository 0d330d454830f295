import { DatabaseSync } from 'node:sqlite'
import type { Worker } from 'node:worker_threads'
import type { CallMessage } from '../src/storage/sqlite/sqlite-messages.ts'

/** Longer than any test blocks a database. */
const longestMs = 60_000

/** How long it waits for a commit of the service, which takes milliseconds. */
const waitMs = 100

/** Blocks the database thread inside SQLite, like a disk that hangs, until the returned function is called. */
export function freezeDatabase(worker: Worker, path: string): () => void {
  const blocker = new DatabaseSync(path, { timeout: waitMs })
  blocker.exec('begin immediate')
  const run = (sql: string): void => {
    const call = { type: 'execute', connection: 'store', sql, parameters: [] } as const
    worker.postMessage({ type: 'call', id: 0, expiresAtMs: Infinity, call } satisfies CallMessage, [])
  }
  run(`pragma busy_timeout = ${longestMs}`)
  // One statement: between two of them, the thread would hold the lock itself, and the ledger would find it busy.
  run('delete from accounts where false')
  run('pragma busy_timeout = 0')
  return () => {
    blocker.exec('rollback')
    blocker.close()
  }
}
