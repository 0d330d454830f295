import { chmodSync, closeSync, existsSync, openSync, statSync } from 'node:fs'

const forOthers = 0o077
const ownerOnly = 0o600

/**
 * Makes an empty file for this user alone, or takes from one of this user's that is there what others may do with it.
 * One that is there is not opened: closing it again would give up the locks that SQLite holds on it in this process.
 * What SQLite puts beside it gets the same mode. @throws the system's error
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
    // Another process was faster.
    if (!(error instanceof Error && 'code' in error && error.code === 'EEXIST')) throw error
  }
}
