import { existsSync, mkdirSync } from 'node:fs'
import { dirname, resolve } from 'node:path'

/** Makes a folder for this user alone, and those above it one by one: Node's own way never ends below /proc. @throws the system's error */
export function createFolder(path: string): void {
  const whole = resolve(path)
  if (existsSync(whole)) return
  if (dirname(whole) !== whole) createFolder(dirname(whole))
  mkdirSync(whole, { mode: 0o700 })
}
