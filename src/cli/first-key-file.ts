import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { FirstKeyFile } from '../accounts/first-run.ts'

/** Where the first key is kept, below the data folder. */
export const firstKeyName = 'first-key'

/** The file of the first key: replaced whole, readable by this user alone. */
export function firstKeyFile(dataDir: string): FirstKeyFile {
  const path = join(dataDir, firstKeyName)
  return {
    read() {
      try {
        return readFileSync(path, 'utf8')
      } catch (error) {
        if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined
        throw error
      }
    },
    write(key) {
      const draft = `${path}.${process.pid}`
      try {
        writeFileSync(draft, `${key.reveal()}\n`, { mode: 0o600 })
        renameSync(draft, path)
      } finally {
        rmSync(draft, { force: true })
      }
    },
  }
}
