import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { isBusy } from './connect-sqlite.ts'
import { makePrivateFile } from './private-file.ts'

/** Long enough for a killed predecessor to exit, short enough for a user. */
const lockTimeoutMs = 500

/** Another process has locked the ledger of this data folder (contract 32.2). */
export class DataFolderInUse extends Error {
  override readonly name = 'DataFolderInUse'

  constructor(folder: string) {
    super(`data folder in use: another svc-router runs on ${folder}`)
  }
}

/**
 * Locks a data folder for this process, with an operating system lock that ends with the process however it dies.
 * Returns what releases it. @throws DataFolderInUse
 */
export function lockDataFolder(folder: string, timeoutMs = lockTimeoutMs): () => void {
  return lockFile(join(folder, 'owner.db'), folder, timeoutMs)
}

/** The same lock on one file of a data folder, which is created. @throws DataFolderInUse */
export function lockFile(path: string, folder: string, timeoutMs = lockTimeoutMs): () => void {
  makePrivateFile(path)
  const owner = new DatabaseSync(path, { timeout: timeoutMs })
  try {
    // In this mode the exclusive lock is a lock on the file itself, held until the transaction ends.
    owner.exec('pragma journal_mode = delete; begin exclusive')
  } catch (error) {
    owner.close()
    throw isBusy(error) ? new DataFolderInUse(folder) : error
  }
  return () => owner.close()
}
