import { readFileSync } from 'node:fs'
import type { Command } from './command.ts'

export const version: Command = {
  name: 'version',
  summary: 'Print the versions of svc-router and Node.',
  arguments: [],
  options: [],
  example: 'version --json',
  async run(invocation) {
    const own = readVersion()
    return {
      text: `svc-router ${own}`,
      json: { version: own, node: process.versions.node },
      talk: [`Node ${process.versions.node}`, `Next: ${invocation.command('help')}`],
    }
  },
}

/** The version from package.json, two folders above this file in the source tree and in the published package. */
export function readVersion(): string {
  const parsed = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
    readonly version: string
  }
  return parsed.version
}
