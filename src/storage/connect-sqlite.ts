import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'

const sqliteBusy = 5

/** The database file inside a data folder. */
export function databasePath(folder: string): string {
  return join(folder, 'svc-router.db')
}

/** A connection with what is true of SQLite only: write-ahead log, a commit is on disk when it returns, references are checked. */
export function connectSqlite(path: string, busyTimeoutMs: number): DatabaseSync {
  const connection = new DatabaseSync(path, { timeout: busyTimeoutMs, enableForeignKeyConstraints: true })
  try {
    connection.exec('pragma journal_mode = wal; pragma synchronous = full')
    return connection
  } catch (error) {
    connection.close()
    throw error
  }
}

/** Whether SQLite refused because another connection holds the lock. */
export function isBusy(error: unknown): boolean {
  return error instanceof Error && 'errcode' in error && (Number(error.errcode) & 0xff) === sqliteBusy
}

/**
 * Prepares a connection for queries: they never block on a lock, and are tried again by their caller. Checkpoints can
 * take long and are left to the ledger's connection and to the last one that closes the file.
 */
export function forQueries(connection: DatabaseSync, synchronous: 'full' | 'normal'): void {
  connection.exec(`pragma synchronous = ${synchronous}; pragma busy_timeout = 0; pragma wal_autocheckpoint = 0`)
}
