import { readFileSync } from 'node:fs'

const version = readInstalledVersion()

/** The version of this process: the one that was installed when it started. */
export function readVersion(): string {
  return version
}

/**
 * The version that is installed now. It differs from `readVersion()` if the service was upgraded and not restarted. Read
 * from package.json, which is two folders above this file in the source tree and in the published package.
 */
export function readInstalledVersion(): string {
  const parsed = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
    readonly version: string
  }
  return parsed.version
}
