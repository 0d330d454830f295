import { chmodSync, mkdtempSync, rmSync, statfsSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'

const memoryFolder = '/dev/shm'
const enoughBytes = 1024 ** 3

const folder = mkdtempSync(join(freeBytes(memoryFolder) >= enoughBytes ? memoryFolder : tmpdir(), 'svc-router-run-'))

/**
 * Before a run: temporary files are in one folder, in memory where the system has room for it; threads that tests start
 * reuse what Node compiled before.
 */
export function setup(): void {
  // PostgreSQL may run as another user.
  chmodSync(folder, 0o711)
  process.env['TMPDIR'] = folder
  process.env['NODE_COMPILE_CACHE'] ??= resolve('node_modules', '.cache', 'svc-router-tests')
}

/** After a run: its files go. */
export function teardown(): void {
  rmSync(folder, { recursive: true, force: true, maxRetries: 3 })
}

function freeBytes(path: string): number {
  try {
    const { bavail, bsize } = statfsSync(path)
    return bavail * bsize
  } catch {
    // Not every system has it.
    return 0
  }
}
