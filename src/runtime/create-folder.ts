import { existsSync, mkdirSync } from 'node:fs'
import { dirname, resolve } from 'node:path'

/**
 * Creates a folder for this user only, and missing parents one by one, because Node's recursive mode never ends below
 * /proc. @throws the system's error
 */
export function createFolder(path: string): void {
  const whole = resolve(path)
  if (existsSync(whole)) return
  if (dirname(whole) !== whole) createFolder(dirname(whole))
  mkdirSync(whole, { mode: 0o700 })
}
