import { createReadStream, createWriteStream, existsSync, readdirSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { DatabaseSync } from 'node:sqlite'
import { pipeline } from 'node:stream/promises'
import { AuditBroken, takeCheckpoint, verifyAudit } from '../accounts/audit/audit.ts'
import type { CheckedBackup, RestoreOptions, RestoredBackup } from '../accounts/backups.ts'
import { secretsFileName } from '../config/secrets.ts'
import {
  breakReasons,
  ChainFollower,
  type ChainLink,
  type ChainPosition,
  chainStart,
  readLink,
} from '../domain/audit-chain.ts'
import { BackupError } from '../domain/backup-error.ts'
import { backupKeys, type BackupManifest, type Reapplied } from '../domain/backup.ts'
import { type Checkpoint, checkpointKeys } from '../domain/checkpoint.ts'
import { counted } from '../runtime/counted.ts'
import { createFolder } from '../runtime/create-folder.ts'
import { SetupError } from '../runtime/setup-error.ts'
import { auditStore } from '../storage/audit.ts'
import { openUntrusted } from '../storage/backup/backup-file.ts'
import { checkBackup } from '../storage/backup/check-backup.ts'
import { countUncounted } from '../storage/backup/ledger-check.ts'
import { openRestored, settleRestored } from '../storage/backup/restored-database.ts'
import { assertSpace, createPartial, publish } from '../storage/backup/whole-file.ts'
import { checkpointFile } from '../storage/checkpoint-file.ts'
import { restoringPath } from '../storage/data-folder.ts'
import { assertPepper } from '../storage/pepper-check.ts'
import { databasePath } from '../storage/sqlite/connect-sqlite.ts'
import { lockDataFolder } from '../storage/sqlite/data-folder-lock.ts'
import { queriesOn } from '../storage/sqlite/open-sqlite.ts'
import { pastMinute } from './move-data.ts'
import { peppersIn, type Runtime } from './runtime.ts'

/** The lock on the data folder, with its journal. */
const lockNames: readonly string[] = ['owner.db', 'owner.db-journal']

/** Verifies a backup without restoring it (contract 37.3). @throws BackupError */
export async function inspectBackup(
  runtime: Runtime,
  { file, trust }: Pick<RestoreOptions, 'file' | 'trust'>,
): Promise<CheckedBackup> {
  assertSecrets(runtime, file)
  return check(runtime, file, file, trust)
}

/**
 * Restores a backup into an empty data folder, or an empty PostgreSQL database (contract 37.4). It has the data either
 * completely or not at all, whenever the process dies. A folder without data keeps an empty file at `restoringPath`, with
 * which the service does not start. @throws BackupError, DataFolderInUse, and errors of the engine and
 * the system
 */
export async function restoreBackup(runtime: Runtime, options: RestoreOptions): Promise<RestoredBackup> {
  const { file, since, trust } = options
  const { dataDir, databaseUrl } = runtime.config
  if (databaseUrl === undefined) assertEmpty(dataDir)
  createFolder(dataDir)
  const release = lockDataFolder(dataDir)
  const copy = restoringPath(dataDir)
  try {
    // From now on, the service does not start in this folder until a restore has succeeded.
    createPartial(copy)
    assertSecrets(runtime, file)
    if (since !== undefined && statSync(since, { throwIfNoEntry: false })?.isFile() !== true)
      throw new BackupError(`there is no file ${since}`, 'specify a file that the "audit export" command wrote')
    // What is verified is the copy: the file itself could change in between.
    await copyPrivately(file, copy, dataDir)
    const checked = await check(runtime, copy, file, trust)
    const { reapplied, checkpoint } = await settle(runtime, copy, checked.manifest, options)
    if (databaseUrl === undefined) publish(copy, databasePath(dataDir))
    else await fillPostgres(runtime, copy, databaseUrl.reveal())
    if (checkpoint !== undefined) await checkpointFile(dataDir).keep(checkpoint)
    return { ...checked, reapplied }
  } catch (error) {
    // Its content is of no use, but an empty database must not replace the lost one.
    if (databaseUrl === undefined && existsSync(copy)) createPartial(copy)
    throw error
  } finally {
    if (databaseUrl !== undefined) rmSync(copy, { force: true })
    rmSync(`${copy}-journal`, { force: true })
    release()
  }
}

/** Local mode would create new secrets, and nothing in the backup could be used with them. */
function assertSecrets({ config: { secrets, dataDir } }: Runtime, file: string): void {
  const path = join(dataDir, secretsFileName)
  if (!secrets.keptInFile || existsSync(path)) return
  throw new BackupError(
    `${file} cannot be used without the secrets of the service, which no backup contains`,
    `copy ${secretsFileName} from the old data folder to ${path}, or set SVC_ROUTER_PEPPER and SVC_ROUTER_SEALING_KEY`,
  )
}

/** What a restore that failed or was interrupted left may be replaced. */
function assertEmpty(dataDir: string): void {
  if (!existsSync(dataDir)) return
  const found = readdirSync(dataDir).filter((name) => name !== secretsFileName && !lockNames.includes(name))
  const copy = restoringPath(dataDir)
  const own = existsSync(copy) ? [copy, `${copy}-journal`] : []
  const others = found.filter((name) => !own.includes(join(dataDir, name)))
  if (others.length === 0) return
  throw new BackupError(
    `the data folder ${dataDir} is not empty (${others.slice(0, 3).join(', ')}), and restore overwrites nothing`,
    `stop the service, and move everything except ${secretsFileName} away, or choose another folder: --data FOLDER`,
  )
}

async function copyPrivately(file: string, copy: string, dataDir: string): Promise<void> {
  const stats = statSync(file, { throwIfNoEntry: false })
  if (stats?.isFile() !== true) throw new BackupError(`there is no file ${file}`, 'specify the backup to restore')
  assertSpace(dataDir, stats.size)
  // Not more than was there at first: the file could be growing, or be a device.
  await pipeline(createReadStream(file, { end: Math.max(0, stats.size - 1) }), createWriteStream(copy, { flags: 'r+' }))
}

/** Everything about a backup that can be verified. `name` is how errors call it. */
async function check(runtime: Runtime, path: string, name: string, trust: boolean): Promise<CheckedBackup> {
  const manifest = checkBackup(path, name, backupKeys(runtime.keys), trust)
  const db = queriesOn(() => openUntrusted(path))
  try {
    const log = auditStore(db)
    await assertPepper(db, peppersIn(runtime.config)).catch((error: unknown) => {
      if (!(error instanceof SetupError)) throw error
      throw new BackupError(`${name} is from a service that uses a different pepper`, error.fix)
    })
    const storedElsewhere = manifest.checkpoint === null ? [] : [manifest.checkpoint]
    const audit = await verifyAudit(log, { keys: checkpointKeys(runtime.keys), storedElsewhere })
    const uncounted = await countUncounted(db)
    if (!trust && audit.state === 'broken')
      throw new BackupError(
        `the audit log in ${name} is broken at entry ${audit.at.sequence}: ${breakReasons[audit.at.why]}`,
        'choose an older backup, or restore this one anyway: add --trust',
      )
    if (!trust && uncounted > 0)
      throw new BackupError(
        `the quotas in ${name} are wrong: the monthly usage of ${counted(uncounted, 'account')} is lower than the sum of their charged requests`,
        'choose an older backup, or restore this one anyway: add --trust',
      )
    return { manifest, audit, uncounted }
  } finally {
    await db.destroy()
  }
}

async function settle(
  { clock, keys }: Runtime,
  copy: string,
  { atMs: takenAtMs, engine }: BackupManifest,
  { since, trust }: Pick<RestoreOptions, 'since' | 'trust'>,
): Promise<{ readonly reapplied: Reapplied; readonly checkpoint: Checkpoint | undefined }> {
  const db = await openRestored(copy)
  try {
    const atMs = clock.nowMs()
    const head = await auditStore(db).auditHead()
    const reapplied = await settleRestored(db, engine, laterLinks(since, head), (kept) => ({
      actor: { kind: 'cli' },
      atMs,
      event: { type: 'backup.restored', takenAtMs, reapplied: kept },
    }))
    const checkpoint = await takeCheckpoint(auditStore(db), checkpointKeys(keys), atMs).catch((error: unknown) => {
      // Restored on request: the service signs nothing either, and reports it.
      if (!trust || !(error instanceof AuditBroken)) throw error
      return undefined
    })
    return { reapplied, checkpoint }
  } finally {
    await db.destroy()
  }
}

async function fillPostgres({ clock }: Runtime, path: string, url: string): Promise<void> {
  const { copyToPostgres } = await import('../storage/backup/postgres-copy.ts')
  using source = new DatabaseSync(path, { readOnly: true })
  await pastMinute(clock, source)
  await copyToPostgres(source, url)
}

/** The entries of an exported log after `head`, which the log must contain. @throws BackupError */
async function* laterLinks(since: string | undefined, head: ChainPosition): AsyncGenerator<ChainLink> {
  if (since === undefined) return
  const follower = new ChainFollower(chainStart, head.sequence === 0 ? [] : [head])
  const input = createReadStream(since, 'utf8')
  try {
    for await (const line of createInterface({ input, crlfDelay: Infinity })) {
      const link = readLink(line)
      const at = follower.follow(link)
      if (at !== undefined || link === undefined) throw unrelated(since, follower.position.sequence + 1)
      if (follower.position.sequence > head.sequence) yield link
    }
    if (follower.end() !== undefined) throw unrelated(since, follower.position.sequence + 1)
  } finally {
    input.destroy()
  }
}

function unrelated(since: string, sequence: number): BackupError {
  return new BackupError(
    `${since} does not continue the audit log of the backup: see its entry ${sequence}`,
    'export it from the service that the backup was taken from: audit export > audit.jsonl',
  )
}
