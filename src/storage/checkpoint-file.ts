import { randomUUID } from 'node:crypto'
import { readFile, rename, rm, writeFile } from 'node:fs/promises'
import type { CheckpointStore } from '../accounts/ports.ts'
import { readCheckpoint, writeCheckpoint } from '../domain/checkpoint.ts'
import { checkpointPath } from './data-folder.ts'

const ownerOnly = 0o600

/** Stores the last checkpoint of the audit log in a file in the data folder, outside the database. */
export function checkpointFile(folder: string): CheckpointStore {
  const path = checkpointPath(folder)
  return {
    async read() {
      try {
        return readCheckpoint(await readFile(path, 'utf8'))
      } catch (error) {
        if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined
        throw error
      }
    },
    async keep(checkpoint) {
      // The service and a command may write at the same time.
      const draft = `${path}.${randomUUID()}`
      try {
        await writeFile(draft, `${writeCheckpoint(checkpoint)}\n`, { mode: ownerOnly, flush: true })
        await rename(draft, path)
      } finally {
        await rm(draft, { force: true })
      }
    },
  }
}
