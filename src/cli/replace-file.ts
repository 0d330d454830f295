import { renameSync, rmSync, writeFileSync } from 'node:fs'

/** Writes a file whole or not at all, readable by this user alone. @throws the system's error */
export function replaceFile(path: string, text: string): void {
  const draft = `${path}.${process.pid}`
  try {
    writeFileSync(draft, text, { mode: 0o600 })
    renameSync(draft, path)
  } finally {
    rmSync(draft, { force: true })
  }
}
