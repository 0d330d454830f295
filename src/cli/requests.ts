import { findAccount } from '../accounts/accounts.ts'
import type { RequestRecord } from '../domain/requests.ts'
import { accountOption, type Command } from './command.ts'
import { readWhole } from './command-line.ts'
import { fusionInShort } from './fusion-trail.ts'
import { whole } from './value-shapes.ts'
import { writeTable, writeTime } from './table.ts'

const defaultLimit = 20
const maxLimit = 1000

export const requests: Command = {
  name: 'requests',
  summary: 'List the latest requests, newest first. Records hold no text.',
  arguments: [],
  options: [
    {
      name: 'limit',
      value: 'COUNT',
      shape: whole(1, maxLimit, defaultLimit),
      summary: `How many, at most ${maxLimit}. Default ${defaultLimit}.`,
    },
    { ...accountOption, summary: 'Only those of this account. Default: all accounts.' },
  ],
  example: 'requests --limit 50',
  run(invocation) {
    const limit = readWhole(invocation.line, 'limit', 1, maxLimit) ?? defaultLimit
    return invocation.withStore(async ({ plane, requests: reader }) => {
      const named = invocation.line.option('account')
      const account = named === undefined ? undefined : await findAccount(plane, named)
      const records = await reader.list(limit, account?.id)
      const rows = records.map((record) => [
        record.id,
        writeTime(record.admittedAtMs),
        record.profile,
        record.errorCode ?? record.state,
        writeCourse(record),
        String(record.charged),
        `${Math.round(record.totalMs)} ms`,
      ])
      return {
        text:
          records.length === 0
            ? ''
            : writeTable([['ID', 'ADMITTED', 'PROFILE', 'END', 'COURSE', 'CHARGED', 'TIME'], ...rows]),
        json: records,
        talk: [
          records.length === 0
            ? `No requests yet. Next: ${invocation.command('start')}`
            : `Next: ${invocation.command('request ID')}`,
        ],
      }
    })
  },
}

/** How each deliberation came about, or else what became of each attempt. */
function writeCourse({ fusions, attempts }: RequestRecord): string {
  if (fusions !== undefined) return fusions.map((fusion) => `fusion:${fusionInShort(fusion)}`).join(' ')
  return attempts.map(({ backend, outcome }) => `${backend}:${outcome}`).join(' ')
}
