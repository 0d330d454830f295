import { type Kysely, sql } from 'kysely'
import type { CostGroup } from '../accounts/ports.ts'
import { dayOf } from '../domain/uptime.ts'
import { dayMs } from '../runtime/durations.ts'
import { lowestIdAt } from '../runtime/ids.ts'
import { costSums, type CostSumsRow, dayByDay, lastAttempt, readCostSums } from './request-sums.ts'
import type { Tables } from './schema/schema.ts'

interface CostRow extends CostSumsRow {
  readonly account_id: string
  readonly profile: string
  readonly backend: string | null
  readonly requests: number
}

/** What requests of all accounts cost (contract 42.12). At most the latest `maxPerDay` of each day are counted. */
export async function addUpCosts(
  db: Kysely<Tables>,
  { fromMs, untilMs, maxPerDay }: { readonly fromMs: number; readonly untilMs: number; readonly maxPerDay: number },
): Promise<readonly CostGroup[]> {
  const groups: CostGroup[] = []
  await dayByDay(fromMs, untilMs, async (startMs) => {
    const day = dayOf(startMs)
    const { rows } = await sql<CostRow>`
      select account_id, profile, backend, count(*) as requests, ${costSums}
      from (
        select account_id, profile, cost, cache_saved, ${lastAttempt(db, 'backend')} as backend
        from requests
        where id >= ${lowestIdAt('req_', startMs)} and id < ${lowestIdAt('req_', startMs + dayMs)}
        order by id desc limit ${maxPerDay}
      ) as latest
      group by account_id, profile, backend
      order by requests desc, account_id, profile, backend nulls last`.execute(db)
    for (const row of rows) {
      const { account_id: accountId, profile, backend, requests } = row
      groups.push({ day, accountId, profile, backend, requests, cost: readCostSums(row) })
    }
  })
  return groups
}
