import { readVersion } from '../../runtime/version.ts'
import type { Command } from '../command.ts'

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
