import { setImmediate as nextTurn } from 'node:timers/promises'
import { type Kysely, type RawBuilder, sql } from 'kysely'
import { writeDollars } from '../domain/money.ts'
import { dayMs } from '../runtime/durations.ts'
import { isOnSqlite } from './engine.ts'
import type { Tables } from './schema/schema.ts'

/** A member of the last attempt in a request's record, by its path. The engines have no common syntax for it. */
export function lastAttempt(db: Kysely<Tables>, ...path: readonly [string, ...string[]]): RawBuilder<unknown> {
  if (isOnSqlite(db)) return sql`json_extract(attempts, ${sql.lit(['$[#-1]', ...path].join('.'))})`
  const outer = path.slice(0, -1).map((name) => sql`-> ${sql.lit(name)}`)
  return sql`attempts::json -> -1 ${sql.join(outer, sql` `)} ->> ${sql.lit(path.at(-1)!)}`
}

/**
 * What requests cost, and what caching saved. A sum of picodollars could exceed what a double, or SQLite, represents
 * exactly: millions and the rest are added apart.
 */
export const costSums: RawBuilder<unknown> = sql`count(cost) as priced,
  cast(sum(coalesce(cost / 1000000, 0)) as bigint) as cost_micro,
  cast(sum(coalesce(cost % 1000000, 0)) as bigint) as cost_rest,
  cast(sum(coalesce(cache_saved / 1000000, 0)) as bigint) as saved_micro,
  cast(sum(coalesce(cache_saved % 1000000, 0)) as bigint) as saved_rest`

/** The columns of `costSums`. */
export interface CostSumsRow {
  readonly priced: number
  readonly cost_micro: number
  readonly cost_rest: number
  readonly saved_micro: number
  readonly saved_rest: number
}

/** As exact decimal US dollars. */
export function readCostSums(row: CostSumsRow): {
  readonly usd: string
  readonly savedUsd: string
  readonly priced: number
} {
  const write = (micro: number, rest: number): string => writeDollars(BigInt(micro) * 1_000_000n + BigInt(rest))
  return {
    usd: write(row.cost_micro, row.cost_rest),
    savedUsd: write(row.saved_micro, row.saved_rest),
    priced: row.priced,
  }
}

/** Reads one day at a time, yielding to the event loop in between, because a statement on SQLite blocks it. */
export async function dayByDay(
  fromMs: number,
  untilMs: number,
  read: (startMs: number) => Promise<void>,
): Promise<void> {
  for (let startMs = Math.floor(fromMs / dayMs) * dayMs; startMs < untilMs; startMs += dayMs) {
    await read(startMs)
    await nextTurn()
  }
}
