import { existsSync } from 'node:fs'
import type { DatabaseSync } from 'node:sqlite'
import { setTimeout as sleep } from 'node:timers/promises'
import { readProof, writeProof } from '../quota-proof.ts'
import { connectSqlite, isBusy } from './connect-sqlite.ts'

/** How long the proof waits for other writers; it waits asynchronously, so that the event loop is not blocked. */
const busyTimeoutMs = 400
const busyPauseMs = 3

/**
 * Proves that quotas are durable: a counter next to them is incremented over a separate connection that commits to disk
 * and is closed, and then read back over another. `path` is the database file. Blocks its thread on the disk. @throws
 * if the increment is not found, or the database is not writable
 */
export async function proveQuotasOnSqlite(path: string): Promise<void> {
  // Opening would create a missing file, and an empty database proves nothing.
  if (!existsSync(path)) throw new Error('the quota database does not exist')
  const written = await withConnection(path, (connection) => connection.prepare(writeProof).get()?.['used'])
  const found = await withConnection(path, (connection) => connection.prepare(readProof).get()?.['used'])
  if (typeof written !== 'number' || typeof found !== 'number' || found < written)
    throw new Error('a write to the quotas could not be read back')
}

async function withConnection<Value>(path: string, work: (connection: DatabaseSync) => Value): Promise<Value> {
  const giveUpAtMs = performance.now() + busyTimeoutMs
  for (;;) {
    try {
      using connection = connectSqlite(path, 0)
      return work(connection)
    } catch (error) {
      if (!isBusy(error) || performance.now() > giveUpAtMs) throw error
    }
    await sleep(busyPauseMs)
  }
}
