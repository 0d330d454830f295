import { readAll } from '../accounts/audit.ts'
import { writeLink } from '../domain/audit-chain.ts'
import type { Command } from './command.ts'

export const auditExport: Command = {
  name: 'audit export',
  summary: 'Print the whole audit log as JSON lines, to be kept and verified elsewhere.',
  arguments: [],
  options: [],
  example: 'audit export > audit.jsonl',
  run: (invocation) =>
    invocation.withStore(async ({ audit }) => {
      let count = 0
      // Line by line: a log may be larger than what is held at once.
      for await (const link of readAll(audit)) {
        invocation.terminal.jsonLine(writeLink(link))
        count += 1
      }
      return {
        text: '',
        json: undefined,
        talk: [
          `${count} entries. Next, what proves their end: ${invocation.command('audit checkpoint')} > checkpoint.json`,
        ],
      }
    }),
}
