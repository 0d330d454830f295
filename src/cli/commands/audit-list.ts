import { findAccount } from '../../accounts/accounts.ts'
import type { Actor, AuditEvent } from '../../domain/audit.ts'
import { accountOption, type Command } from '../command.ts'
import { readWhole } from '../command-line.ts'
import { whole } from '../value-shapes.ts'
import { writeTable, writeTime } from '../terminal/table.ts'

const defaultLimit = 20
const maxLimit = 1000
const longestSequence = 999_999_999

export const auditList: Command = {
  name: 'audit list',
  summary: 'List who changed what, newest first.',
  arguments: [],
  options: [
    {
      name: 'limit',
      value: 'COUNT',
      shape: whole(1, maxLimit, defaultLimit),
      summary: `Maximum number of entries, at most ${maxLimit}. Default ${defaultLimit}.`,
    },
    {
      name: 'before',
      value: 'NUMBER',
      shape: whole(1, longestSequence, 100),
      summary: 'Only entries before this one, to get the next page.',
    },
    { ...accountOption, summary: 'Only entries about this account. Default: all.' },
  ],
  example: 'audit list --limit 50',
  run(invocation) {
    const { line } = invocation
    const limit = readWhole(line, 'limit', 1, maxLimit) ?? defaultLimit
    const beforeSequence = readWhole(line, 'before', 1, longestSequence)
    return invocation.withStore(async ({ accountsDeps, audit }) => {
      const named = line.option('account')
      const accountId = named === undefined ? undefined : (await findAccount(accountsDeps, named)).id
      const entries = await audit.listAudit({
        limit,
        ...(accountId !== undefined && { accountId }),
        ...(beforeSequence !== undefined && { beforeSequence }),
      })
      const rows = entries.map(({ sequence, atMs, actor, event }) => [
        String(sequence),
        writeTime(atMs),
        writeActor(actor),
        event.type,
        writeFields(event),
      ])
      const last = entries.at(-1)
      return {
        text: entries.length === 0 ? '' : writeTable([['NUMBER', 'TIME', 'BY', 'EVENT', 'OF'], ...rows]),
        json: entries,
        talk: [
          last === undefined
            ? 'Nothing to show.'
            : `Next: ${invocation.command(last.sequence > 1 ? `audit list --before ${last.sequence}` : 'audit verify')}`,
        ],
      }
    })
  },
}

function writeActor(actor: Actor): string {
  if (actor.kind === 'operator') return actor.operatorId
  return actor.kind === 'session' ? `session ${actor.sessionId}` : actor.kind
}

function writeFields(event: AuditEvent): string {
  return Object.entries(event)
    .filter(([name]) => name !== 'type')
    .map(([name, value]) => `${name}=${String(value)}`)
    .join(' ')
}
