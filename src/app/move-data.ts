import { renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import type { MovedData } from '../accounts/backups.ts'
import { BackupError } from '../domain/backup-error.ts'
import type { Clock } from '../runtime/clock.ts'
import { createFolder } from '../runtime/create-folder.ts'
import { minuteMs } from '../runtime/minute-log.ts'
import { pause } from '../runtime/pause.ts'
import { forgetHeld, settleUndecided } from '../storage/backup/restored-database.ts'
import { openSnapshot } from '../storage/backup/snapshot.ts'
import { isTaken, publish } from '../storage/backup/whole-file.ts'
import { movedPrefix, restoringPath } from '../storage/data-folder.ts'
import { openSqliteLedger } from '../storage/ledger/ledger-sqlite.ts'
import { assertPepper } from '../storage/pepper-check.ts'
import { databasePath } from '../storage/sqlite/connect-sqlite.ts'
import { lockDataFolder } from '../storage/sqlite/data-folder-lock.ts'
import { assertDatabaseThere } from '../storage/sqlite/database-file.ts'
import { openSqlite, queriesOn } from '../storage/sqlite/open-sqlite.ts'
import { peppersIn, type Runtime } from './runtime.ts'

/**
 * Copies all data from SQLite in the data folder into the configured PostgreSQL database, which must be empty, and
 * compares it by content (contract 37.8). The service must not run. The SQLite database is renamed, so that nobody starts
 * with it by mistake. @throws BackupError, DataFolderInUse, and errors of the engines
 */
export async function moveToPostgres(runtime: Runtime): Promise<MovedData> {
  const { config, clock } = runtime
  const { dataDir } = config
  const url = urlOf(runtime)
  const path = databasePath(dataDir)
  if (!isTaken(path))
    throw new BackupError(`there is no SQLite database in ${dataDir}`, 'specify the right folder: --data FOLDER')
  assertDatabaseThere(path, dataDir)
  const db = await openSqlite(dataDir)
  await assertPepper(db, peppersIn(config)).finally(() => db.destroy())
  // Locks the folder, and decides the requests that a killed process left open.
  const ledger = await openSqliteLedger(dataDir, clock)
  let tables: MovedData['tables']
  try {
    const { copyToPostgres } = await import('../storage/backup/postgres-copy.ts')
    const locked = await openSqlite(dataDir)
    await forgetHeld(locked).finally(() => locked.destroy())
    using source = new DatabaseSync(path, { readOnly: true })
    await pastMinute(clock, source)
    tables = await copyToPostgres(source, url)
  } finally {
    await ledger.close()
  }
  const release = lockDataFolder(dataDir)
  try {
    const left = join(dataDir, `${movedPrefix}${Math.floor(clock.nowMs())}`)
    renameSync(path, left)
    return { tables, left }
  } finally {
    release()
  }
}

/**
 * Copies all data from the configured PostgreSQL database into a new SQLite database in the data folder, and compares it
 * by content. No node may run. The PostgreSQL database is only marked, so that no node uses it again. @throws BackupError, DataFolderInUse, and errors of
 * the engines
 */
export async function moveToSqlite(runtime: Runtime): Promise<MovedData> {
  const { config } = runtime
  const { dataDir } = config
  const url = urlOf(runtime)
  const path = databasePath(dataDir)
  createFolder(dataDir)
  const release = lockDataFolder(dataDir)
  const partial = restoringPath(dataDir)
  try {
    if (isTaken(path))
      throw new BackupError(
        `${path} already exists and will not be overwritten`,
        'move it away, or choose another --data FOLDER',
      )
    const [{ keepOnPostgres, takePostgresSnapshot }, { assertCopied }] = await Promise.all([
      import('../storage/backup/postgres-snapshot.ts'),
      import('../storage/backup/postgres-copy.ts'),
    ])
    const { tables } = await takePostgresSnapshot(url, { partial, target: dataDir, moves: true })
    try {
      const copy = openSnapshot(partial)
      const db = queriesOn(() => copy)
      try {
        assertCopied(copy, tables)
        await assertPepper(db, peppersIn(config))
        await db.transaction().execute((transaction) => settleUndecided(transaction, 'postgres'))
      } finally {
        await db.destroy()
      }
      publish(partial, path)
    } catch (error) {
      await keepOnPostgres(url)
      throw error
    }
    return { tables, left: undefined }
  } finally {
    rmSync(partial, { force: true })
    release()
  }
}

/**
 * Waits until the newest request is a minute old. PostgreSQL counts the sliding minute by its own admissions, so that a
 * request copied earlier would be forgotten.
 */
export async function pastMinute(clock: Clock, source: DatabaseSync): Promise<void> {
  const newestMs = Number(source.prepare('select max(admitted_at_ms) as at from requests').get()?.['at'] ?? 0)
  const waitMs = Math.min(minuteMs, newestMs + minuteMs - clock.nowMs())
  if (waitMs <= 0) return
  await pause(clock, waitMs)
}

function urlOf({ config: { databaseUrl } }: Runtime): string {
  if (databaseUrl !== undefined) return databaseUrl.reveal()
  throw new BackupError(
    'no PostgreSQL database is configured',
    'set database.url_env to the name of the environment variable that contains its URL',
  )
}
