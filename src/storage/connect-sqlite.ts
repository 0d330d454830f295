import { DatabaseSync } from 'node:sqlite'

const sqliteBusy = 5

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
