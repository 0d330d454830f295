import { closeSync, existsSync, openSync, readSync, statSync } from 'node:fs'
import { stat } from 'node:fs/promises'
import type { Clock, Timer } from '../domain/clock.ts'
import { SetupError } from '../domain/setup-error.ts'
import { checkpointPath } from './checkpoint-file.ts'
import { markPath } from './delivery-marks.ts'

const lookEveryMs = 1_000
const headerBytes = 100

/**
 * Refuses a data folder that has lost its database: none is there, or only the beginning of one, though delivery marks
 * or a checkpoint of the audit log show that there was one. Reads the file's header alone. @throws SetupError
 */
export function assertDatabaseThere(path: string, folder: string): void {
  const evidence = [markPath(folder), checkpointPath(folder)].filter((file) => existsSync(file))
  const fix = `restore ${path} from a backup; to go on without it, move ${evidence.join(' and ') || path} away, and all accounts, keys and records are lost`
  if (sizeOf(path) === 0) {
    if (evidence.length === 0) return
    throw new SetupError('the database of this data folder is missing, though there was one', fix)
  }
  // What is not yet in the file itself is in its log then.
  if (sizeOf(`${path}-wal`) > 0) return
  if (isTruncated(path))
    throw new SetupError('the database of this data folder is cut short: a part of it is missing', fix)
}

function sizeOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0
}

/** By the size of a page and their number, as the header of a SQLite file has them. */
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

/** Watches that the file which is open is still the one of that name; `onLost` is told once when it is not. */
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
