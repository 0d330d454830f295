import { readdirSync, rmSync, statSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import type { DatabaseSync } from 'node:sqlite'
import { verifyAudit } from '../accounts/audit/audit.ts'
import { type BackupOptions, type CheckedBackup, isSound, type TakenBackup } from '../accounts/backups.ts'
import type { Config } from '../config/config.ts'
import { BackupError } from '../domain/backup-error.ts'
import { type BackupManifest, backupKeys, signManifest, writeManifest } from '../domain/backup.ts'
import { checkpointKeys } from '../domain/checkpoint.ts'
import { createFolder } from '../runtime/create-folder.ts'
import { hourMs } from '../runtime/durations.ts'
import { randomBase62 } from '../runtime/ids.ts'
import { isInFolder } from '../runtime/is-in-folder.ts'
import { readVersion } from '../runtime/version.ts'
import { auditStore } from '../storage/audit.ts'
import { addManifest } from '../storage/backup/backup-file.ts'
import { countUncounted } from '../storage/backup/ledger-check.ts'
import { lockBackups, openSnapshot, type Snapshot, takeSnapshot } from '../storage/backup/snapshot.ts'
import { isTaken, publish, taken } from '../storage/backup/whole-file.ts'
import { checkpointFile } from '../storage/checkpoint-file.ts'
import { SchemaMismatch } from '../storage/migrations/migrate.ts'
import { assertPepper } from '../storage/pepper-check.ts'
import { databasePath } from '../storage/sqlite/connect-sqlite.ts'
import { assertDatabaseThere } from '../storage/sqlite/database-file.ts'
import { queriesOn } from '../storage/sqlite/open-sqlite.ts'
import { peppersIn, type Runtime } from './runtime.ts'

/** The names that backups get in a folder. Only files with such names are ever deleted. */
const backupName = /^svc-router-\d{8}T\d{6}Z\.backup$/
/** Those of files that are not complete, by this version and earlier ones. */
const partialName = /^svc-router-\d{8}T\d{6}Z\.backup\.(?:\w+\.)?partial$/
/** Nobody writes a file any more that has not changed for this long. */
const abandonedAfterMs = hourMs

/**
 * Copies the database into one signed file while the service runs (contract 37.1, 37.2). Older backups are deleted only if
 * the new one is sound. @throws BackupError, SetupError, and errors of the engine and the system
 */
export async function takeBackup(runtime: Runtime, { target, keep }: BackupOptions): Promise<TakenBackup> {
  const { dataDir, databaseUrl } = runtime.config
  if (databaseUrl === undefined) assertDatabaseThere(databasePath(dataDir), dataDir)
  else createFolder(dataDir)
  const atMs = Math.floor(runtime.clock.nowMs())
  const isFolder = statSync(target, { throwIfNoEntry: false })?.isDirectory() === true
  if (keep !== undefined && !isFolder)
    throw new BackupError('--keep requires a folder', 'specify an existing folder instead of a file')
  const path = resolve(isFolder ? join(target, nameFor(atMs)) : target)
  assertPlace(path, dataDir)
  // Another service may begin a backup in the same folder in the same second.
  const partial = isFolder ? `${path}.${randomBase62(8, runtime.random)}.partial` : `${path}.partial`
  const release = lockBackups(dataDir)
  try {
    if (isFolder) deleteAbandoned(target, atMs - abandonedAfterMs)
    // Before the copy, which then contains at least the entry that it proves.
    const checkpoint = (await checkpointFile(dataDir).read()) ?? null
    const snapshot = await copyDatabase(runtime.config, partial, dirname(path)).catch(explainSchema)
    const finished = await finish(runtime, openSnapshot(partial), { ...snapshot, atMs, checkpoint })
    publish(partial, path)
    const deleted = keep !== undefined && isSound(finished) ? deleteNamed(target, backupName, keep) : []
    return { ...finished, path, bytes: statSync(path).size, deleted }
  } catch (error) {
    throw isOfDisk(error) ? unwritable(dirname(path)) : error
  } finally {
    rmSync(partial, { force: true })
    release()
  }
}

async function copyDatabase(
  { dataDir, databaseUrl }: Config,
  partial: string,
  target: string,
): Promise<Snapshot & Pick<BackupManifest, 'engine'>> {
  if (databaseUrl === undefined) return { ...(await takeSnapshot(dataDir, partial, target)), engine: 'sqlite' }
  // Loaded only if it is used.
  const { takePostgresSnapshot } = await import('../storage/backup/postgres-snapshot.ts')
  const options = { partial, target, moves: false }
  return { ...(await takePostgresSnapshot(databaseUrl.reveal(), options)), engine: 'postgres' }
}

/** Verifies the copy, adds the signed manifest, and closes it. */
async function finish(
  { config, keys }: Runtime,
  copy: DatabaseSync,
  taken: Snapshot & Pick<BackupManifest, 'atMs' | 'engine' | 'checkpoint'>,
): Promise<CheckedBackup> {
  const db = queriesOn(() => copy)
  try {
    await assertPepper(db, peppersIn(config))
    const log = auditStore(db)
    const { sources: secrets } = config.secrets
    const manifest: BackupManifest = {
      ...taken,
      version: readVersion(),
      audit: await log.auditHead(),
      secrets,
    }
    const storedElsewhere = taken.checkpoint === null ? [] : [taken.checkpoint]
    const audit = await verifyAudit(log, { keys: checkpointKeys(keys), storedElsewhere })
    const uncounted = await countUncounted(db)
    const text = writeManifest(manifest)
    addManifest(copy, text, signManifest(backupKeys(keys), text))
    return { manifest, audit, uncounted }
  } finally {
    await db.destroy()
  }
}

function explainSchema(error: unknown): never {
  if (!(error instanceof SchemaMismatch)) throw error
  throw new BackupError(
    error.message,
    'back it up with the version that wrote it; if someone added tables, indexes, or triggers, remove them first',
  )
}

function assertPlace(path: string, dataDir: string): void {
  if (isInFolder(path, dataDir))
    throw new BackupError(
      'a backup inside the data folder would be lost with it',
      'choose a folder outside the data folder',
    )
  if (statSync(dirname(path), { throwIfNoEntry: false })?.isDirectory() !== true)
    throw new BackupError(`there is no folder ${dirname(path)}`, 'create it, or choose another one')
  if (isTaken(path)) throw taken(path)
}

/** SQLite's codes for a file that is read-only, on a full disk, or cannot be opened, and the system's. */
function isOfDisk(error: unknown): boolean {
  const { code, errcode } = error as { code?: unknown; errcode?: unknown }
  if (typeof errcode === 'number') return [8, 13, 14].includes(errcode % 256)
  return ['EACCES', 'EPERM', 'EROFS', 'ENOSPC', 'EDQUOT', 'EIO', 'ERR_FS_EISDIR'].includes(String(code))
}

function unwritable(folder: string): BackupError {
  return new BackupError(
    `the backup could not be written to ${folder}`,
    'check its permissions and free disk space, or choose another folder',
  )
}

function nameFor(atMs: number): string {
  return `svc-router-${new Date(atMs).toISOString().replaceAll(/[-:]|\.\d+/g, '')}.backup`
}

/** Deletes the oldest files with such names, except the `keep` newest (contract 37.7). */
function deleteNamed(folder: string, names: RegExp, keep: number): readonly string[] {
  const found = readdirSync(folder).filter((name) => names.test(name))
  const old = found.toSorted().slice(0, Math.max(0, found.length - keep))
  for (const name of old) rmSync(join(folder, name))
  return old
}

/** Deletes what killed processes left. Others in the same folder may still be written, by another service. */
function deleteAbandoned(folder: string, beforeMs: number): void {
  for (const name of readdirSync(folder).filter((each) => partialName.test(each))) {
    const path = join(folder, name)
    const changedMs = statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? beforeMs
    if (changedMs < beforeMs) rmSync(path, { force: true })
  }
}
