import { join } from 'node:path'
import { Kysely } from 'kysely'
import { makeFolder } from '../make-folder.ts'
import { connectSqlite } from './connect-sqlite.ts'
import { migrate } from './migrations.ts'
import { makePrivateFile } from './private-file.ts'
import type { Tables } from './schema.ts'
import { sqliteDialect } from './sqlite-dialect.ts'

/** Opening may have to wait for another process that recovers or closes the same file; it blocks, but only at the start. */
const openTimeoutMs = 5000
/** Statements wait asynchronously in the dialect instead, so that the event loop is never held. */
const statementTimeoutMs = 0

/** The database file inside a data folder. */
export function databasePath(folder: string): string {
  return join(folder, 'svc-router.db')
}

/**
 * Opens the database of a data folder, made where it is missing, with its schema up to date. Any number of processes may
 * do so at once; only the ledger needs the folder for itself. End it with `destroy()`.
 * @throws SchemaMismatch, or the system's error where the folder cannot be written
 */
export async function openSqlite(folder: string): Promise<Kysely<Tables>> {
  makeFolder(folder)
  makePrivateFile(databasePath(folder))
  const db = connect(folder, 'full')
  try {
    // Every transaction begins immediate here, so a second starter already waits.
    await migrate(db, async () => {})
    return db
  } catch (error) {
    await db.destroy()
    throw error
  }
}

/**
 * A connection of its own for stored answers, to a database that `openSqlite` has opened. Its commits do not wait for the
 * disk, because that would hold the event loop: they survive the end of the process at once, and that of the machine
 * with the next commit of the ledger. End it with `destroy()`.
 */
export function openSqliteForResponses(folder: string): Kysely<Tables> {
  return connect(folder, 'normal')
}

function connect(folder: string, synchronous: 'full' | 'normal'): Kysely<Tables> {
  return new Kysely<Tables>({
    dialect: sqliteDialect(() => {
      const connection = connectSqlite(databasePath(folder), openTimeoutMs)
      // Checkpoints can take long and are left to the ledger's worker and to the last one who closes the file.
      connection.exec(
        `pragma synchronous = ${synchronous}; pragma busy_timeout = ${statementTimeoutMs}; pragma wal_autocheckpoint = 0`,
      )
      return connection
    }),
  })
}
