import { type Kysely, sql } from 'kysely'
import type { CacheSelection } from '../accounts/ports.ts'
import type { CacheGroup } from '../domain/cache-usage.ts'
import { dayMs } from '../runtime/durations.ts'
import { lowestIdAt } from '../runtime/ids.ts'
import { dayByDay, lastAttempt } from './request-sums.ts'
import type { Tables } from './schema/schema.ts'

/** At most this many requests are counted per day. */
const maxPerDay = 50_000

/** What providers read from their caches. */
export async function addUpCache(
  db: Kysely<Tables>,
  { accountId, fromMs, untilMs }: CacheSelection,
): Promise<readonly CacheGroup[]> {
  const groups = new Map<string, CacheGroup>()
  await dayByDay(fromMs, untilMs, async (startMs) => {
    for (const group of await addUpDay(db, accountId, startMs)) {
      const name = `${group.keyId} ${group.client} ${group.reason}`
      const before = groups.get(name)
      groups.set(name, before === undefined ? group : joined(before, group))
    }
  })
  return [...groups.values()]
}

function joined(one: CacheGroup, other: CacheGroup): CacheGroup {
  return {
    ...one,
    turns: one.turns + other.turns,
    inputTokens: one.inputTokens + other.inputTokens,
    readTokens: one.readTokens + other.readTokens,
  }
}

async function addUpDay(
  db: Kysely<Tables>,
  accountId: string | undefined,
  startMs: number,
): Promise<readonly CacheGroup[]> {
  const untilMs = startMs + dayMs
  const of = (name: string) => lastAttempt(db, 'cache', name)
  const selected =
    accountId === undefined
      ? sql`id >= ${lowestIdAt('req_', startMs)} and id < ${lowestIdAt('req_', untilMs)} order by id desc`
      : sql`account_id = ${accountId} and admitted_at_ms >= ${startMs} and admitted_at_ms < ${untilMs}
        order by admitted_at_ms desc`
  const { rows } = await sql<CacheGroup>`
    select key_id as "keyId", client, reason, count(*) as turns,
      cast(sum(coalesce(input_tokens, 0)) as bigint) as "inputTokens",
      cast(sum(coalesce(cached_tokens, 0)) as bigint) as "readTokens"
    from (
      select key_id, input_tokens, cached_tokens, ${of('client')} as client, ${of('reason')} as reason
      from (select key_id, attempts, input_tokens, cached_tokens from requests where ${selected} limit ${maxPerDay}) as latest
      where attempts is not null
    ) as turns
    where reason is not null
    group by key_id, client, reason`.execute(db)
  return rows
}
