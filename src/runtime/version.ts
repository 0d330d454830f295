import { readFileSync } from 'node:fs'

let version: string | undefined

/**
 * The version in package.json, which is two folders above this file in the source tree and in the published package.
 */
export function readVersion(): string {
  return (version ??= parseVersion())
}

function parseVersion(): string {
  const parsed = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
    readonly version: string
  }
  return parsed.version
}
