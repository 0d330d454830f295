import { renameSync, rmSync, writeFileSync } from 'node:fs'

/** Writes a file atomically; only this user can read it. @throws the system error */
export function replaceFile(path: string, text: string): void {
  const draft = `${path}.${process.pid}`
  try {
    writeFileSync(draft, text, { mode: 0o600 })
    renameSync(draft, path)
  } finally {
    rmSync(draft, { force: true })
  }
}
