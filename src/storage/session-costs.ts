import { type Kysely, sql } from 'kysely'
import { readDollars, writeDollars } from '../domain/money.ts'
import type { SessionCost, SessionSelection } from '../domain/session-costs.ts'
import { dayMs } from '../runtime/durations.ts'
import { costSums, type CostSumsRow, dayByDay, readCostSums } from './request-sums.ts'
import type { Tables } from './schema/schema.ts'

/** Of one day, at most so many sessions are added up: the most expensive ones. */
const maxPerDay = 1_000
/** At most so many requests are added up, of one day or of one session. */
const maxRequests = 50_000

interface SessionRow extends CostSumsRow {
  readonly session: string
  readonly requests: number
  readonly input_tokens: number
  readonly cached_tokens: number
  readonly output_tokens: number
  readonly first_ms: number
  readonly last_ms: number
}

const sums = sql`session, count(*) as requests, ${costSums},
  cast(sum(coalesce(input_tokens, 0)) as bigint) as input_tokens,
  cast(sum(coalesce(cached_tokens, 0)) as bigint) as cached_tokens,
  cast(sum(coalesce(output_tokens, 0)) as bigint) as output_tokens,
  min(admitted_at_ms) as first_ms, max(admitted_at_ms) as last_ms`
const summed = sql`session, cost, cache_saved, input_tokens, cached_tokens, output_tokens, admitted_at_ms`

/** What one session of an account cost (contract 42.13); undefined if it has no request. */
export async function findSessionCost(
  db: Kysely<Tables>,
  accountId: string,
  session: string,
): Promise<SessionCost | undefined> {
  const { rows } = await sql<SessionRow>`
    select ${sums} from (
      select ${summed} from requests where account_id = ${accountId} and session = ${session} limit ${maxRequests}
    ) as its
    group by session`.execute(db)
  return rows[0] && costOf(rows[0])
}

/** The sessions of an account in `[fromMs, untilMs)`, the most expensive first. */
export async function addUpSessions(
  db: Kysely<Tables>,
  accountId: string,
  { fromMs, untilMs, limit, keyId }: SessionSelection,
): Promise<readonly SessionCost[]> {
  const found = new Map<string, SessionCost>()
  await dayByDay(fromMs, untilMs, async (startMs) => {
    const { rows } = await sql<SessionRow>`
      select ${sums} from (
        select ${summed} from requests
        where account_id = ${accountId} and admitted_at_ms >= ${startMs} and admitted_at_ms < ${startMs + dayMs}
          ${keyId === undefined ? sql`` : sql`and key_id = ${keyId}`}
        order by admitted_at_ms desc limit ${maxRequests}
      ) as latest
      where session is not null
      group by session order by sum(cost) desc nulls last, session limit ${maxPerDay}`.execute(db)
    for (const row of rows) {
      const before = found.get(row.session)
      found.set(row.session, before === undefined ? costOf(row) : joined(before, costOf(row)))
    }
  })
  return [...found.values()].sort((one, other) => compare(other.usd, one.usd)).slice(0, limit)
}

function costOf(row: SessionRow): SessionCost {
  return {
    session: row.session,
    requests: row.requests,
    ...readCostSums(row),
    inputTokens: row.input_tokens,
    cachedTokens: row.cached_tokens,
    outputTokens: row.output_tokens,
    firstMs: row.first_ms,
    lastMs: row.last_ms,
  }
}

function compare(one: string, other: string): number {
  const difference = (readDollars(one) ?? 0n) - (readDollars(other) ?? 0n)
  return difference === 0n ? 0 : difference < 0n ? -1 : 1
}

function added(one: string, other: string): string {
  return writeDollars((readDollars(one) ?? 0n) + (readDollars(other) ?? 0n))
}

/** The same session on two days. */
function joined(one: SessionCost, other: SessionCost): SessionCost {
  return {
    session: one.session,
    requests: one.requests + other.requests,
    priced: one.priced + other.priced,
    usd: added(one.usd, other.usd),
    savedUsd: added(one.savedUsd, other.savedUsd),
    inputTokens: one.inputTokens + other.inputTokens,
    cachedTokens: one.cachedTokens + other.cachedTokens,
    outputTokens: one.outputTokens + other.outputTokens,
    firstMs: Math.min(one.firstMs, other.firstMs),
    lastMs: Math.max(one.lastMs, other.lastMs),
  }
}
