import { closeSync, existsSync, openSync, readSync, statSync } from 'node:fs'
import { stat } from 'node:fs/promises'
import type { Clock, Timer } from '../../runtime/clock.ts'
import { SetupError } from '../../runtime/setup-error.ts'
import { checkpointPath, markPath } from '../data-folder.ts'

const lookEveryMs = 1_000
const headerBytes = 100

/**
 * Rejects a data folder whose database is missing or truncated although delivery marks or an audit checkpoint show that
 * there was one. Reads only the file's header. @throws SetupError
 */
export function assertDatabaseThere(path: string, folder: string): void {
  const evidence = [markPath(folder), checkpointPath(folder)].filter((file) => existsSync(file))
  const fix = `restore ${path} from a backup; to continue without it, move ${evidence.join(' and ') || path} away: all accounts, keys, and records are then lost`
  if (sizeOf(path) === 0) {
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

/** Watches that the open file is still the one at its path; `onLost` is called once if it is not. */
export function watchDatabaseFile(path: string, clock: Clock, onLost: () => void): { isThere(): boolean; end(): void } {
  const opened = statSync(path).ino
  let isThere = true
  let timer: Timer | undefined
  const look = async (): Promise<void> => {
    const found = await stat(path).catch(() => undefined)
    if (timer === undefined) return
    if (isThere && found?.ino !== opened) onLost()
    isThere = found?.ino === opened
    schedule()
  }
  const schedule = (): void => {
    timer = clock.after(lookEveryMs, () => void look())
  }
  schedule()
  return {
    isThere: () => isThere,
    end() {
      timer?.cancel()
      timer = undefined
    },
  }
}
