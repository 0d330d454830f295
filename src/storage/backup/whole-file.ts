import { closeSync, fsyncSync, linkSync, lstatSync, openSync, renameSync, rmSync, statfsSync } from 'node:fs'
import { dirname } from 'node:path'
import { BackupError } from '../../domain/backup-error.ts'

const ownerOnly = 0o600
/** What stays free on the disk at least, so that a running service can go on writing. */
const spareBytes = 64 * 1024 * 1024
const linklessCodes = new Set(['EPERM', 'ENOSYS', 'ENOTSUP', 'EOPNOTSUPP'])

/** Whether anything has this path, including a broken link. */
export function isTaken(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false }) !== undefined
}

/**
 * Creates an empty file that only this user can access, for what is not whole yet. A file of that name that an earlier
 * process left is deleted first. @throws the system's error
 */
export function createPartial(path: string): void {
  rmSync(path, { force: true })
  closeSync(openSync(path, 'wx', ownerOnly))
}

/**
 * Puts a finished file on the disk and gives it its name, which no file may have yet: a crash leaves either all of it
 * under that name, or none. @throws BackupError if the name is taken, and the system's error
 */
export function publish(partial: string, path: string): void {
  syncFile(partial)
  try {
    linkSync(partial, path)
    rmSync(partial)
  } catch (error) {
    const code = codeOf(error)
    if (code === 'EEXIST' || isTaken(path)) throw taken(path)
    if (!linklessCodes.has(code)) throw error
    renameSync(partial, path)
  }
  syncFile(dirname(path))
}

export function taken(path: string): BackupError {
  return new BackupError(
    `${path} already exists and will not be overwritten`,
    'choose another name, or move that file away',
  )
}

/** Flushes a file, or the entries of a folder, to the disk. @throws the system's error */
function syncFile(path: string): void {
  const file = openSync(path, 'r')
  try {
    fsyncSync(file)
  } finally {
    closeSync(file)
  }
}

/** Rejects work that would fill the disk. `bytes` is what it writes. @throws BackupError */
export function assertSpace(folder: string, bytes: number): void {
  const { bavail, bsize } = statfsSync(folder)
  const free = bavail * bsize
  if (free >= bytes + spareBytes) return
  const inMegabytes = (count: number): string => `${Math.ceil(count / 1_000_000).toLocaleString('en-US')} MB`
  throw new BackupError(
    `${folder} has ${inMegabytes(free)} free, and this needs ${inMegabytes(bytes + spareBytes)}`,
    'free some space, or choose a folder on another disk',
  )
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : ''
}
