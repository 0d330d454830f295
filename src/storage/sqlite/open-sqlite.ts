import type { DatabaseSync } from 'node:sqlite'
import { Kysely } from 'kysely'
import { createFolder } from '../../runtime/create-folder.ts'
import { migrate } from '../migrations/migrate.ts'
import type { Tables } from '../schema/schema.ts'
import { connectSqlite, databasePath, forQueries } from './connect-sqlite.ts'
import { makePrivateFile } from './private-file.ts'
import { sqliteDialect } from './sqlite-dialect.ts'
import type { ConnectionName } from './sqlite-messages.ts'
import { SqliteStatements } from './sqlite-statements.ts'
import type { DatabaseThread } from './sqlite-thread.ts'
import { ThreadConnection } from './thread-connection.ts'

/** How long opening waits for another process that recovers or closes the same file; it blocks, but only at startup. */
const openTimeoutMs = 5000

/**
 * Opens the database of a data folder, creating it if missing, and migrates its schema. Several processes may do this
 * concurrently; only the ledger needs exclusive use of the folder. Queries run in the calling thread and block it: use
 * this for commands and for startup; the service then uses `openSqliteInThread`. Close it with `destroy()`. @throws
 * SchemaMismatch, or the system's error if the folder is not writable
 */
export async function openSqlite(folder: string): Promise<Kysely<Tables>> {
  createFolder(folder)
  makePrivateFile(databasePath(folder))
  return openMigrated(() => {
    const database = connectSqlite(databasePath(folder), openTimeoutMs)
    forQueries(database, 'full')
    return database
  })
}

/** Like `queriesOn`, after migrating the schema. @throws SchemaMismatch */
export async function openMigrated(connect: () => DatabaseSync): Promise<Kysely<Tables>> {
  const db = queriesOn(connect)
  try {
    // Every transaction begins immediate here, so a second process already waits.
    await migrate(db, async () => {})
    return db
  } catch (error) {
    await db.destroy()
    throw error
  }
}

/** Runs queries on a connection of the calling thread, which `destroy()` closes. */
export function queriesOn(connect: () => DatabaseSync): Kysely<Tables> {
  const dialect = sqliteDialect(() => {
    const statements = new SqliteStatements(connect())
    return {
      execute: (sql, parameters) => statements.execute(sql, parameters),
      rollback: () => statements.rollback(),
      release: () => {},
      close: () => statements.close(),
    }
  })
  return new Kysely<Tables>({ dialect })
}

/**
 * Runs queries in the database thread, on a database that `openSqlite` opened before. A query without an answer in time
 * rejects with StoreUnavailable; a write that the disk delayed may still happen later. Close it with `destroy()` before
 * closing the thread.
 */
export function openSqliteInThread(thread: DatabaseThread, name: ConnectionName): Kysely<Tables> {
  return new Kysely<Tables>({ dialect: sqliteDialect(() => new ThreadConnection(thread, name)) })
}
