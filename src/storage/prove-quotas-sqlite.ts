import { existsSync } from 'node:fs'
import type { DatabaseSync } from 'node:sqlite'
import { setTimeout as sleep } from 'node:timers/promises'
import { connectSqlite, isBusy } from './connect-sqlite.ts'
import { readProof, writeProof } from './quota-proof.ts'

/** How long the proof waits for other writers; the waiting is asynchronous, so that the event loop is not held. */
const busyTimeoutMs = 400
const busyPauseMs = 3

/**
 * Proves that quotas are durable: a counter beside theirs is moved through a connection of its own that commits to disk,
 * is closed, and found moved by another. `path` is that of the database file. Blocks its thread on the disk.
 * @throws where it is not found, or where the database cannot be written
 */
export async function proveQuotasOnSqlite(path: string): Promise<void> {
  // Opening makes what is missing, and an empty database is no proof.
  if (!existsSync(path)) throw new Error('the database of the quotas is not there')
  const written = await withConnection(path, (connection) => connection.prepare(writeProof).get()?.['used'])
  const found = await withConnection(path, (connection) => connection.prepare(readProof).get()?.['used'])
  if (typeof written !== 'number' || typeof found !== 'number' || found < written)
    throw new Error('a write to the quotas was not found again')
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
