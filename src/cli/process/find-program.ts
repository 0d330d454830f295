import { accessSync, constants, statSync } from 'node:fs'
import { delimiter, join } from 'node:path'

/** Whether an executable program with that name is on PATH. */
export function isProgramThere(name: string, path: string | undefined): boolean {
  return (path ?? '').split(delimiter).some((folder) => folder !== '' && isRunnable(join(folder, name)))
}

function isRunnable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK)
    return statSync(file).isFile()
  } catch {
    return false
  }
}
