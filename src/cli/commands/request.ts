import { describeVerdict, verdictIn } from '../../domain/cache-verdict.ts'
import type { Usage } from '../../domain/conversation.ts'
import { shownName } from '../../domain/fusion-record.ts'
import type { ProviderError } from '../../domain/provider-error.ts'
import { describeCost, describeSavings } from '../../domain/request-cost.ts'
import type { RequestRecord } from '../../domain/requests.ts'
import { describeExclusion } from '../../domain/routing-plan-text.ts'
import { describeSessionCost, type SessionCost } from '../../domain/session-costs.ts'
import { uuidOf } from '../../runtime/ids.ts'
import { terminalLine } from '../../runtime/safe-text.ts'
import type { Command } from '../command.ts'
import { CommandError, exitCodes } from '../failures.ts'
import { writeFusion } from '../fusion-trail.ts'
import { writeTable, writeTime } from '../terminal/table.ts'

/** The record of one request (contract 28.5). */
export const request: Command = {
  name: 'request',
  summary: 'Show the record of one request, without its prompt and answer.',
  arguments: ['ID'],
  options: [],
  example: 'request req_… --json',
  run(invocation) {
    const id = invocation.argument(0, 'the ID of the request', 'requests')
    return invocation.withStore(async ({ config, requests }) => {
      const record = await requests.find(id)
      if (record === undefined)
        throw new CommandError(
          exitCodes.failure,
          'there is no record of that request',
          `list the latest: ${invocation.command('requests')}. Rejected requests have no record: ${invocation.command('requests --refused')}`,
        )
      const session =
        record.session === undefined ? undefined : await requests.session(record.accountId, record.session)
      // The operator may read errors of configured backends and, in local mode only, of accounts' own providers.
      const sealed = await Promise.all([
        requests.errorsOf(id, null),
        config.mode === 'local' ? requests.errorsOf(id, record.accountId) : [],
      ])
      const errors = invocation.ports.openErrors(config, sealed.flat())
      return {
        text: writeRecord(record, errors, session),
        json: {
          ...record,
          ...(session === undefined ? {} : { sessionCost: session }),
          ...(errors.length === 0 ? {} : { providerErrors: errors }),
        },
        talk: [`Next: ${invocation.command('requests')}`],
      }
    })
  },
}

function writeRecord(
  record: RequestRecord,
  errors: readonly ProviderError[],
  session: SessionCost | undefined,
): string {
  const { usage } = record
  const cache = verdictIn(record.attempts)
  const rows = [
    ['id', record.id],
    ['ID sent upstream', uuidOf(record.id)],
    ['admitted', writeTime(record.admittedAtMs)],
    ['account', record.accountId],
    ['key', record.keyId],
    ['profile', record.profile],
    ['format', record.format + (record.stream ? ', streamed' : '')],
    ['state', record.state],
    ['charged', `${record.charged} of ${record.units} in ${record.periodId}`],
    ['error', record.errorCode ?? 'none'],
    [
      'time',
      `${Math.round(record.totalMs)} ms${record.firstContentMs === undefined ? '' : `, first content after ${Math.round(record.firstContentMs)} ms`}`,
    ],
    ['tokens', usage === undefined ? 'unknown' : writeTokens(usage)],
    ['cost', writeCost(record)],
    ...(session === undefined ? [] : [['session', `${session.session}: ${describeSessionCost(session)}`]]),
    ...(cache === undefined ? [] : [['cache', describeVerdict(cache)]]),
    ...record.attempts.map((attempt, index) => [
      `attempt ${index + 1}`,
      [
        attempt.backend,
        shownName(attempt.outcome),
        attempt.refused === true ? 'refused' : undefined,
        attempt.rescued === undefined ? undefined : `continued the answer, ${attempt.rescued}`,
        attempt.status,
        `${Math.round(attempt.ms)} ms`,
        attempt.costUsd === undefined ? undefined : `${attempt.costUsd ?? 'unknown'} USD`,
        attempt.upstreamRequestId,
      ]
        .filter((part) => part !== undefined)
        .join(', '),
    ]),
    ...(record.passedBy ?? []).map(({ backend, reason }) => [
      'skipped',
      `${backend}: ${describeExclusion({ reason, untilMs: undefined }, 0)}`,
    ]),
  ]
  const said = errors.map(({ backend, text }) => `${terminalLine(backend)} said: ${terminalLine(text)}`)
  return [
    writeTable(rows),
    ...(said.length === 0 ? [] : [said.join('\n')]),
    ...(record.fusions ?? []).map(writeFusion),
  ].join('\n\n')
}

function writeCost({ cost, state }: RequestRecord): string {
  if (cost === undefined) return state === 'open' || state === 'delivered' ? 'not known yet' : 'unknown'
  const savings = describeSavings(cost)
  return [describeCost(cost), savings, cost.prices === undefined ? undefined : `price version ${cost.prices}`]
    .filter((part) => part !== undefined)
    .join(', ')
}

function writeTokens({ inputTokens, outputTokens, cachedTokens, cacheWriteTokens = 0, source }: Usage): string {
  const cached =
    cachedTokens === 0 && cacheWriteTokens === 0
      ? ''
      : ` (${cachedTokens} from the cache, ${cacheWriteTokens} to the cache)`
  return `${inputTokens} in${cached}, ${outputTokens} out${source === 'estimated' ? ' (estimated)' : ''}`
}
