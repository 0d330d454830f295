import { chmodSync, mkdtempSync, rmSync, statfsSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { runFolderEnv } from './run-folder.ts'

const memoryFolder = '/dev/shm'
const enoughBytes = 1024 ** 3

const folder = mkdtempSync(join(freeBytes(memoryFolder) >= enoughBytes ? memoryFolder : tmpdir(), 'svc-router-run-'))

/**
 * Before a run: creates one folder for temporary files, in memory if there is enough, and enables Node's compile cache
 * for the threads that tests start.
 */
export function setup(): void {
  // PostgreSQL may run as another user.
  chmodSync(folder, 0o711)
  process.env['TMPDIR'] = folder
  process.env[runFolderEnv] = folder
  process.env['NODE_COMPILE_CACHE'] ??= resolve('node_modules', '.cache', 'svc-router-tests')
}

/** After a run: deletes its files. */
export function teardown(): void {
  rmSync(folder, { recursive: true, force: true, maxRetries: 3 })
}

function freeBytes(path: string): number {
  try {
    const { bavail, bsize } = statfsSync(path)
    return bavail * bsize
  } catch {
    // Some systems lack it.
    return 0
  }
}
