import { closeSync, fdatasyncSync, openSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as sleep } from 'node:timers/promises'
import { BackupError } from '../../domain/backup-error.ts'
import type { BackupManifest, TableContent } from '../../domain/backup.ts'
import { databasePath } from '../sqlite/connect-sqlite.ts'
import { DataFolderInUse, lockFile } from '../sqlite/data-folder-lock.ts'
import { assertKnownSchema, schemaStatements } from './known-schemas.ts'
import { ContentDigest, insertStatement, readRows, readTables, type Row, type TableShape } from './table-contents.ts'
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
  using checkpoints = new DatabaseSync(path, { timeout: openTimeoutMs })
  using source = new DatabaseSync(path, { readOnly: true, timeout: openTimeoutMs })
  // One transaction: everything is read as of its first statement.
  source.exec('begin')
  const schema = assertKnownSchema(source)
  const snapshot = await writeSnapshot(partial, schema, (table) => readRows(source, table))
  source.exec('commit')
  // The write-ahead log grew, because it could not restart during the copy. The next commit of the service would write
  // all of it into the database, and requests would wait for that; this process can do it without.
  checkpoints.exec('pragma wal_checkpoint(passive)')
  return snapshot
}

/** Creates a database with the schema after one migration, and copies rows into it, in small steps. */
export async function writeSnapshot(
  partial: string,
  schema: string,
  rowsOf: (table: TableShape) => Iterable<Row> | AsyncIterable<Row>,
): Promise<Snapshot> {
  createPartial(partial)
  using copy = openSnapshot(partial)
  const { tables, others } = schemaStatements(schema)
  // Triggers must not run for rows that exist already, and unique indexes are cheap to fill in order.
  for (const statement of tables) copy.exec(statement)
  const contents = new Map<string, TableContent>()
  const file = openSync(partial, 'r')
  try {
    for (const table of readTables(copy)) contents.set(table.name, await fillTable(copy, table, rowsOf(table), file))
  } finally {
    closeSync(file)
  }
  for (const statement of others) copy.exec(statement)
  return { schema, tables: Object.fromEntries(contents) }
}

async function fillTable(
  copy: DatabaseSync,
  table: TableShape,
  rows: Iterable<Row> | AsyncIterable<Row>,
  file: number,
): Promise<TableContent> {
  const digest = new ContentDigest()
  const insert = copy.prepare(insertStatement(table))
  let characters = 0
  let startedAtMs = performance.now()
  copy.exec('begin')
  for await (const row of rows) {
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
