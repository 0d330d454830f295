import { closeSync, fdatasyncSync, openSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as sleep } from 'node:timers/promises'
import { BackupError } from '../../domain/backup-error.ts'
import type { BackupManifest } from '../../domain/backup.ts'
import { databasePath } from '../sqlite/connect-sqlite.ts'
import { DataFolderInUse, lockFile } from '../sqlite/data-folder-lock.ts'
import { assertKnownSchema, schemaStatements } from './known-schemas.ts'
import { ContentDigest, insertStatement, readRows, readTables, type TableShape } from './table-contents.ts'
import { assertSpace, createPartial } from './whole-file.ts'

/** How long opening waits for another process that recovers or closes the database. */
const openTimeoutMs = 5000
/**
 * How much is written at once. A commit of the service may have to wait until it is on the disk, because both share the
 * journal of the file system.
 */
const chunkCharacters = 512 * 1024
/** Of the time, how much the copy works. The service has the disk and the processor for itself during the rest. */
const workShare = 0.5
const longestPauseMs = 1_000
const cacheKilobytes = 16_384

/** What a copy contains. */
export type Snapshot = Pick<BackupManifest, 'schema' | 'tables'>

/**
 * Copies the database of a data folder into a new file, as of one point in time, while the service runs: a reader does not
 * block its writes. Deleted rows are not copied. Needs as much space as the database. @throws SchemaMismatch,
 * BackupError, and errors of the engine and the system
 */
export async function takeSnapshot(folder: string, partial: string, target: string): Promise<Snapshot> {
  const path = databasePath(folder)
  assertSpace(target, sizeOf(path) + sizeOf(`${path}-wal`))
  createPartial(partial)
  using checkpoints = new DatabaseSync(path, { timeout: openTimeoutMs })
  using source = new DatabaseSync(path, { readOnly: true, timeout: openTimeoutMs })
  // One transaction: everything is read as of its first statement.
  source.exec('begin')
  const schema = assertKnownSchema(source)
  using copy = openSnapshot(partial)
  const { tables, others } = schemaStatements(schema)
  // Triggers must not run for rows that exist already, and unique indexes are cheap to fill in order.
  for (const statement of tables) copy.exec(statement)
  const contents = await copyRows(source, copy, partial)
  source.exec('commit')
  // The write-ahead log grew, because it could not restart during the copy. The next commit of the service would write
  // all of it into the database, and requests would wait for that; this process can do it without.
  checkpoints.exec('pragma wal_checkpoint(passive)')
  for (const statement of others) copy.exec(statement)
  return { schema, tables: contents }
}

/** Copies every table, chunk by chunk, with pauses. */
async function copyRows(source: DatabaseSync, copy: DatabaseSync, partial: string): Promise<BackupManifest['tables']> {
  const file = openSync(partial, 'r')
  try {
    const contents: [string, ReturnType<ContentDigest['end']>][] = []
    for (const table of readTables(source)) contents.push([table.name, await copyTable(source, copy, table, file)])
    return Object.fromEntries(contents)
  } finally {
    closeSync(file)
  }
}

async function copyTable(
  source: DatabaseSync,
  copy: DatabaseSync,
  table: TableShape,
  file: number,
): Promise<ReturnType<ContentDigest['end']>> {
  const digest = new ContentDigest()
  const insert = copy.prepare(insertStatement(table))
  let characters = 0
  let startedAtMs = performance.now()
  copy.exec('begin')
  for (const row of readRows(source, table)) {
    insert.run(...row)
    characters += digest.add(row)
    if (characters < chunkCharacters) continue
    copy.exec('commit')
    fdatasyncSync(file)
    const workedMs = performance.now() - startedAtMs
    await sleep(Math.min(longestPauseMs, workedMs * (1 / workShare - 1)))
    characters = 0
    startedAtMs = performance.now()
    copy.exec('begin')
  }
  copy.exec('commit')
  fdatasyncSync(file)
  return digest.end()
}

/** Opens a snapshot that is being made. Nothing of it is safe before `publish`. */
export function openSnapshot(partial: string): DatabaseSync {
  const copy = new DatabaseSync(partial, { enableForeignKeyConstraints: false })
  copy.exec(`pragma journal_mode = off; pragma synchronous = off; pragma cache_size = -${cacheKilobytes}`)
  return copy
}

/** Lets one backup of a data folder run at a time. Returns what releases it. @throws BackupError */
export function lockBackups(folder: string): () => void {
  try {
    return lockFile(join(folder, 'backup.lock'), folder)
  } catch (error) {
    if (!(error instanceof DataFolderInUse)) throw error
    throw new BackupError('another backup of this data folder is running', 'wait until it ends, then try again')
  }
}

function sizeOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0
}
