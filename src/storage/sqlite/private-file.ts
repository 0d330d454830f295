import { chmodSync, closeSync, existsSync, openSync, statSync } from 'node:fs'

const forOthers = 0o077
const ownerOnly = 0o600

/**
 * Creates an empty file that only this user can access, or removes other users' access to an existing file of this
 * user. An existing file is not opened: closing it would release the locks that SQLite holds on it in this process.
 * Files that SQLite creates next to it get the same mode. @throws the system's error
 */
export function makePrivateFile(path: string): void {
  if (existsSync(path)) {
    const { mode, uid } = statSync(path)
    if ((mode & forOthers) !== 0 && uid === process.getuid?.()) chmodSync(path, ownerOnly)
    return
  }
  try {
    closeSync(openSync(path, 'ax', ownerOnly))
  } catch (error) {
    // Another process created it first.
    if (!(error instanceof Error && 'code' in error && error.code === 'EEXIST')) throw error
  }
}
