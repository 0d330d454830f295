import { findAccount } from '../../accounts/accounts.ts'
import { cacheUses, type CacheGroup, writeMisses, writeReadShare } from '../../domain/cache-usage.ts'
import { linksFor } from '../../domain/links.ts'
import type { RefusedCount } from '../../domain/refused-requests.ts'
import { describeCost } from '../../domain/request-cost.ts'
import type { RequestRecord } from '../../domain/requests.ts'
import { type SessionCost, writeSessionSum } from '../../domain/session-costs.ts'
import { dayMs } from '../../runtime/durations.ts'
import { readWhole } from '../command-line.ts'
import { accountOption, type Command, type Result } from '../command.ts'
import { fusionInShort } from '../fusion-trail.ts'
import { writeTable, writeTime } from '../terminal/table.ts'
import { whole } from '../value-shapes.ts'

const defaultLimit = 20
const maxLimit = 1000
/** Rejected requests are counted over this many days. */
const refusedDays = 7
/** Caches are added up over this many days. */
const cacheDays = 30
/** Sessions are added up over this many days. */
const costDays = 30

export const requests: Command = {
  name: 'requests',
  summary: 'List the latest requests, newest first, without prompts and answers.',
  arguments: [],
  options: [
    {
      name: 'limit',
      value: 'COUNT',
      shape: whole(1, maxLimit, defaultLimit),
      summary: `How many requests to list, or sessions with --sessions, or rows with --refused: at most ${maxLimit}. Default ${defaultLimit}. Has no effect with --cache.`,
    },
    { ...accountOption, summary: 'Only requests from this account. Default: all accounts, except with --sessions.' },
    {
      name: 'refused',
      summary: `Instead, show how many requests were rejected in the last ${refusedDays} days, by error. Rejected requests have no records.`,
    },
    {
      name: 'cache',
      summary: `Instead, show how much of the input was read from providers' prompt caches in the last ${cacheDays} days, by key and client, and the reasons for cache misses.`,
    },
    {
      name: 'sessions',
      summary: `Instead, show the most expensive sessions of the last ${costDays} days. A session is a series of requests that continue one another. Default for --account: the account named "local", or the only one.`,
    },
  ],
  example: 'requests --limit 50',
  run(invocation) {
    const limit = readWhole(invocation.line, 'limit', 1, maxLimit) ?? defaultLimit
    return invocation.withStore(async ({ config, accountsDeps, requests: reader, account: soleAccount }) => {
      const named = invocation.line.option('account')
      const account = named === undefined ? undefined : await findAccount(accountsDeps, named)
      const nowMs = accountsDeps.clock.nowMs()
      const of = account === undefined ? {} : { accountId: account.id }
      if (invocation.line.flag('cache'))
        return listCache(
          await reader.cache({ ...of, fromMs: nowMs - cacheDays * dayMs, untilMs: nowMs }),
          config.appUrl,
        )
      if (invocation.line.flag('sessions')) {
        const owner = account ?? (await soleAccount())
        const span = { fromMs: nowMs - costDays * dayMs, untilMs: nowMs, limit }
        return listSessions(await reader.sessions(owner.id, span), config.appUrl)
      }
      const refused = await reader.refused({
        ...of,
        fromMs: nowMs - refusedDays * dayMs,
        untilMs: nowMs,
        limit: invocation.line.flag('refused') ? limit : maxLimit,
      })
      if (invocation.line.flag('refused')) return listRefused(refused, linksFor(config.appUrl).docsUrl)
      const records = await reader.list(limit, account?.id)
      const rows = records.map((record) => [
        record.id,
        writeTime(record.admittedAtMs),
        record.profile,
        record.errorCode ?? record.state,
        writeCourse(record),
        String(record.charged),
        record.cost === undefined ? '-' : describeCost(record.cost),
        `${Math.round(record.totalMs)} ms`,
      ])
      const next = records.length === 0 ? invocation.command('start') : invocation.command('request ID')
      const sum = refused.reduce((total, { requests: count }) => total + count, 0)
      return {
        text:
          records.length === 0
            ? ''
            : writeTable([['ID', 'ADMITTED', 'PROFILE', 'RESULT', 'ATTEMPTS', 'CHARGED', 'COST', 'TIME'], ...rows]),
        json: records,
        talk: [
          ...(sum === 0
            ? []
            : [
                `Rejected in the last ${refusedDays} days: ${sum}. See why: ${invocation.command('requests --refused')}`,
              ]),
          records.length === 0 ? `No requests yet. Next: ${next}` : `Next: ${next}`,
        ],
      }
    })
  },
}

function listRefused(refused: readonly RefusedCount[], docsUrl: string): Result {
  const rows = refused.map(({ code, requests: count, lastAtMs, lastRequestId, lastKeyId, accountId }) => [
    code,
    String(count),
    writeTime(lastAtMs),
    lastRequestId,
    lastKeyId,
    accountId,
  ])
  return {
    text: rows.length === 0 ? '' : writeTable([['ERROR', 'COUNT', 'LAST', 'REQUEST', 'KEY', 'ACCOUNT'], ...rows]),
    json: refused,
    talk: [
      rows.length === 0
        ? `No requests were rejected in the last ${refusedDays} days.`
        : `Causes and fixes: ${docsUrl}/errors/${refused[0]!.code}`,
    ],
  }
}

function listSessions(sessions: readonly SessionCost[], appUrl: string): Result {
  const rows = sessions.map((session) => [
    session.session,
    writeTime(session.lastMs),
    String(session.requests),
    writeSessionSum(session, session.usd),
    writeSessionSum(session, session.savedUsd),
    String(session.requests - session.priced),
  ])
  return {
    text:
      rows.length === 0
        ? ''
        : writeTable([['SESSION', 'LAST REQUEST', 'REQUESTS', 'COST', 'SAVED BY CACHING', 'COST UNKNOWN'], ...rows]),
    json: sessions,
    talk: [
      rows.length === 0
        ? `No request in the last ${costDays} days belongs to a session.`
        : `See the requests of a session: ${appUrl}/activity?session=ID`,
    ],
  }
}

function listCache(groups: readonly CacheGroup[], appUrl: string): Result {
  const uses = cacheUses(groups)
  const rows = uses.map((use) => [
    use.keyId,
    use.client,
    String(use.turns),
    String(use.inputTokens),
    writeReadShare(use),
    writeMisses(use),
  ])
  return {
    text:
      rows.length === 0
        ? ''
        : writeTable([['KEY', 'CLIENT', 'REQUESTS', 'INPUT TOKENS', 'FROM CACHES', 'MISSES'], ...rows]),
    json: uses,
    talk: [
      rows.length === 0
        ? `No figures about prompt caches in the last ${cacheDays} days. Requests of less than 2,000 bytes and fused answers have none.`
        : `Causes and fixes: ${linksFor(appUrl).docsUrl}/caching`,
    ],
  }
}

/** Summarizes each fusion or, without fusions, the outcome of each attempt. */
function writeCourse({ fusions, attempts }: RequestRecord): string {
  if (fusions !== undefined) return fusions.map((fusion) => `fusion:${fusionInShort(fusion)}`).join(' ')
  return attempts.map(({ backend, outcome }) => `${backend}:${outcome}`).join(' ')
}
