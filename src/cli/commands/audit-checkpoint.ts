import { AuditBroken } from '../../accounts/audit/audit.ts'
import { signRemembered } from '../../accounts/audit/checkpoints.ts'
import { sealingKeys } from '../../config/sealing-keys.ts'
import { checkpointKeys, writeCheckpoint } from '../../domain/checkpoint.ts'
import type { Command } from '../command.ts'
import { CommandError, exitCodes } from '../failures.ts'

export const auditCheckpoint: Command = {
  name: 'audit checkpoint',
  summary: 'Sign the current audit log. Store the output on another machine: it reveals any later truncation.',
  arguments: [],
  options: [],
  example: 'audit checkpoint > checkpoint.json',
  run: (invocation) =>
    invocation.withStore(async ({ config, audit, checkpoints: memory }) => {
      const keys = checkpointKeys(sealingKeys(config.secrets))
      const checkpoint = await signRemembered({ store: audit, keys, memory }, invocation.ports.clock.nowMs()).catch(
        (error: unknown) => {
          if (!(error instanceof AuditBroken)) throw error
          throw new CommandError(
            exitCodes.failure,
            `the audit log is broken at entry ${error.at.sequence}, so it was not signed`,
            `see why: ${invocation.command('audit verify')}`,
          )
        },
      )
      if (checkpoint === undefined) return { text: '', json: null, talk: ['The audit log is empty.'] }
      return {
        text: writeCheckpoint(checkpoint),
        json: JSON.parse(writeCheckpoint(checkpoint)) as unknown,
        talk: [
          `Signed up to entry ${checkpoint.sequence}. Verify any time later: ${invocation.command('audit verify')} --checkpoint checkpoint.json`,
        ],
      }
    }),
}
