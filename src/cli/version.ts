import { readFileSync } from 'node:fs'
import type { Command } from './command.ts'

export const version: Command = {
  name: 'version',
  summary: 'Print the version of this program and of Node.',
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

/** The version in the package's own package.json, which stands two folders above, in the sources as in what is published. */
export function readVersion(): string {
  const parsed = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
    readonly version: string
  }
  return parsed.version
}
