import { readAll } from '../../accounts/audit/audit.ts'
import { writeLink } from '../../domain/audit-chain.ts'
import type { Command } from '../command.ts'

export const auditExport: Command = {
  name: 'audit export',
  summary: 'Print the whole audit log as JSON lines, to store and verify elsewhere.',
  arguments: [],
  options: [],
  example: 'audit export > audit.jsonl',
  run: (invocation) =>
    invocation.withStore(async ({ audit }) => {
      let count = 0
      // Line by line, because a log may be larger than memory.
      for await (const link of readAll(audit)) {
        invocation.terminal.jsonLine(writeLink(link))
        count += 1
      }
      return {
        text: '',
        json: undefined,
        talk: [
          `Exported ${count} entries. Next, sign the last one: ${invocation.command('audit checkpoint')} > checkpoint.json`,
        ],
      }
    }),
}
