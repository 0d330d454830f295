import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { sqliteCodes, sqliteResultCode } from '../../runtime/sqlite-result-code.ts'

/** The database file inside a data folder. */
export function databasePath(folder: string): string {
  return join(folder, 'svc-router.db')
}

/**
 * Opens a connection with the SQLite settings that every use shares: write-ahead log, commits are on disk when they
 * return, foreign keys are checked.
 */
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

/** Whether SQLite failed because another connection holds the lock. */
export function isBusy(error: unknown): boolean {
  return sqliteResultCode(error) === sqliteCodes.busy
}

/**
 * Prepares a connection for queries: they never block on a lock; the caller retries them. Checkpoints can take long, so
 * they are left to the ledger's connection and to the last connection that closes the file.
 */
export function forQueries(connection: DatabaseSync, synchronous: 'full' | 'normal'): void {
  connection.exec(`pragma synchronous = ${synchronous}; pragma busy_timeout = 0; pragma wal_autocheckpoint = 0`)
}
