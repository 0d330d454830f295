import { Kysely } from 'kysely'
import { makeFolder } from '../make-folder.ts'
import { connectSqlite, databasePath, forQueries } from './connect-sqlite.ts'
import { migrate } from './migrations.ts'
import { makePrivateFile } from './private-file.ts'
import type { Tables } from './schema.ts'
import { sqliteDialect } from './sqlite-dialect.ts'
import type { ConnectionName } from './sqlite-messages.ts'
import { SqliteStatements } from './sqlite-statements.ts'
import type { SqliteThread } from './sqlite-thread.ts'
import { ThreadConnection } from './thread-connection.ts'

/** Opening may have to wait for another process that recovers or closes the same file; it blocks, but only at the start. */
const openTimeoutMs = 5000

/**
 * Opens the database of a data folder, made where it is missing, with its schema up to date. Any number of processes may
 * do so at once; only the ledger needs the folder for itself. Queries run in the calling thread and block it: this is
 * for a command and for the start of the service, which then uses `openSqliteInThread`. End it with `destroy()`.
 * @throws SchemaMismatch, or the system's error where the folder cannot be written
 */
export async function openSqlite(folder: string): Promise<Kysely<Tables>> {
  makeFolder(folder)
  makePrivateFile(databasePath(folder))
  const dialect = sqliteDialect(() => {
    const database = connectSqlite(databasePath(folder), openTimeoutMs)
    forQueries(database, 'full')
    const statements = new SqliteStatements(database)
    return {
      execute: (sql, parameters) => statements.execute(sql, parameters),
      rollback: () => statements.rollback(),
      release: () => {},
      close: () => statements.close(),
    }
  })
  const db = new Kysely<Tables>({ dialect })
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
 * Queries that run in the database thread, over a database that `openSqlite` has opened before. A query that gets no
 * answer in time rejects with StoreUnavailable; a write that the disk held up may still happen then. End it with
 * `destroy()`, before the thread is closed.
 */
export function openSqliteInThread(thread: SqliteThread, name: ConnectionName): Kysely<Tables> {
  return new Kysely<Tables>({ dialect: sqliteDialect(() => new ThreadConnection(thread, name)) })
}
