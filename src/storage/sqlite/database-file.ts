import { closeSync, existsSync, openSync, readdirSync, readSync, statSync } from 'node:fs'
import { open, stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import type { Clock, Timer } from '../../runtime/clock.ts'
import { SetupError } from '../../runtime/setup-error.ts'
import { checkpointPath, markPath, movedPrefix, restoringPath } from '../data-folder.ts'

const lookEveryMs = 1_000
const headerBytes = 100

/**
 * Rejects a data folder whose database is missing or truncated although delivery marks or an audit checkpoint show that
 * there was one (contract 32.4), or because a restore did not succeed (contract 37.4). Reads only the file's header. @throws SetupError
 */
export function assertDatabaseThere(path: string, folder: string): void {
  const evidence = [markPath(folder), checkpointPath(folder)].filter((file) => existsSync(file))
  const fix = `restore ${path} from a backup; to continue without it, move ${evidence.join(' and ') || path} away: all accounts, keys, and records are then lost`
  if (sizeOf(path) === 0) {
    if (existsSync(restoringPath(folder)))
      throw new SetupError(
        'this data folder has no database, because a restore into it did not succeed',
        `run svc-router restore FILE again, with a good backup and the same --data FOLDER; to start without data, delete ${restoringPath(folder)}`,
      )
    if (existsSync(folder) && readdirSync(folder).some((name) => name.startsWith(movedPrefix)))
      throw new SetupError(
        'the data of this folder was moved to PostgreSQL',
        'configure database.url_env, or move it back: svc-router database to-sqlite',
      )
    if (evidence.length === 0) return
    throw new SetupError('the database of this data folder is missing, but there was one before', fix)
  }
  // Pages that are not in the file yet are in its write-ahead log.
  if (sizeOf(`${path}-wal`) > 0) return
  if (isTruncated(path))
    throw new SetupError('the database of this data folder is truncated: a part of it is missing', fix)
}

function sizeOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0
}

/** By the page size and page count in the SQLite file header. */
function isTruncated(path: string): boolean {
  const header = Buffer.alloc(headerBytes)
  const file = openSync(path, 'r')
  try {
    if (readSync(file, header, 0, headerBytes, 0) < headerBytes) return true
  } finally {
    closeSync(file)
  }
  const pageBytes = header.readUInt16BE(16) === 1 ? 65_536 : header.readUInt16BE(16)
  return sizeOf(path) < pageBytes * header.readUInt32BE(28)
}

type FileTrouble = 'database_file_lost' | 'database_read_only'

interface DatabaseWatch {
  /** Whether the file was there and writable at the last look. */
  isUsable(): boolean
  end(): void
}

/**
 * Watches that the open file is still the one at its path, and that its file system is not read-only: without traffic,
 * no write would fail and reveal it (contract 32.4). `onTrouble` is called when either begins.
 */
export function watchDatabaseFile(
  path: string,
  clock: Clock,
  onTrouble: (trouble: FileTrouble) => void,
  isWritable: (folder: string) => Promise<boolean> = mayWrite,
): DatabaseWatch {
  const opened = statSync(path).ino
  let trouble: FileTrouble | undefined
  let timer: Timer | undefined
  const look = async (): Promise<void> => {
    const found = await stat(path).catch(() => undefined)
    const isLost = found?.ino !== opened
    const now = isLost ? 'database_file_lost' : (await isWritable(dirname(path))) ? undefined : 'database_read_only'
    if (timer === undefined) return
    if (now !== undefined && now !== trouble) onTrouble(now)
    trouble = now
    schedule()
  }
  const schedule = (): void => {
    timer = clock.after(lookEveryMs, () => void look())
  }
  schedule()
  return {
    isUsable: () => trouble === undefined,
    end() {
      timer?.cancel()
      timer = undefined
    },
  }
}

const readOnlyCodes = new Set(['EROFS', 'EIO'])

/**
 * Opens the delivery marks for writing, and writes nothing: this fails after a remount and after a disk error, when
 * `access` may still succeed. Never the database itself: closing any handle on it would drop SQLite's locks.
 */
async function mayWrite(folder: string): Promise<boolean> {
  try {
    await (await open(markPath(folder), 'r+')).close()
    return true
  } catch (error) {
    return !readOnlyCodes.has(String((error as NodeJS.ErrnoException).code))
  }
}
