import type { RequestRecord } from '../domain/requests.ts'
import type { Command } from './command.ts'
import { CommandError, exitCodes } from './failures.ts'
import { writeFusion } from './fusion-trail.ts'
import { writeTable, writeTime } from './table.ts'

export const request: Command = {
  name: 'request',
  summary: 'Show the record of one request. Records hold no text.',
  arguments: ['ID'],
  options: [],
  example: 'request req_… --json',
  run(invocation) {
    const id = invocation.argument(0, 'the id of the request', 'requests')
    return invocation.withStore(async ({ requests }) => {
      const record = await requests.find(id)
      if (record === undefined)
        throw new CommandError(
          exitCodes.failure,
          'there is no record of that request',
          `see the latest: ${invocation.command('requests')}. What was refused at once has no record: its error says why`,
        )
      return { text: writeRecord(record), json: record, talk: [`Next: ${invocation.command('requests')}`] }
    })
  },
}

function writeRecord(record: RequestRecord): string {
  const { usage } = record
  const rows = [
    ['id', record.id],
    ['admitted', writeTime(record.admittedAtMs)],
    ['account', record.accountId],
    ['key', record.keyId],
    ['profile', record.profile],
    ['format', record.format + (record.stream ? ', streamed' : '')],
    ['state', record.state],
    ['charged', `${record.charged} of ${record.units} units of ${record.periodId}`],
    ['error', record.errorCode ?? 'none'],
    [
      'time',
      `${Math.round(record.totalMs)} ms${record.firstContentMs === undefined ? '' : `, first content after ${Math.round(record.firstContentMs)} ms`}`,
    ],
    [
      'tokens',
      usage === undefined
        ? 'unknown'
        : `${usage.inputTokens} in, ${usage.outputTokens} out${usage.source === 'estimated' ? ' (estimated)' : ''}`,
    ],
    ...record.attempts.map((attempt, index) => [
      `attempt ${index + 1}`,
      [attempt.backend, attempt.outcome, attempt.status, `${Math.round(attempt.ms)} ms`, attempt.upstreamRequestId]
        .filter((part) => part !== undefined)
        .join(', '),
    ]),
  ]
  return [writeTable(rows), ...(record.fusions ?? []).map(writeFusion)].join('\n\n')
}
