import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { FirstKeyFile } from '../../accounts/identity/first-run.ts'
import { replaceFile } from './replace-file.ts'

/** The file in the data folder that stores the first key (contract 33.7). */
export const firstKeyName = 'first-key'

/** The first key's file. It is replaced atomically and only this user can read it. */
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
