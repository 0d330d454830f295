import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { FirstKeyFile } from '../accounts/first-run.ts'
import { replaceFile } from './replace-file.ts'

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
    write: (key) => replaceFile(path, `${key.reveal()}\n`),
  }
}
