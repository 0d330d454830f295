import { setImmediate as nextTurn } from 'node:timers/promises'
import { type Kysely, type RawBuilder, sql, SqliteAdapter } from 'kysely'
import { dayMs } from '../runtime/durations.ts'
import type { Tables } from './schema/schema.ts'

/** A member of the last attempt in a request's record, by its path. The engines have no common syntax for it. */
export function lastAttempt(db: Kysely<Tables>, ...path: readonly [string, ...string[]]): RawBuilder<unknown> {
  if (db.getExecutor().adapter instanceof SqliteAdapter)
    return sql`json_extract(attempts, ${sql.lit(['$[#-1]', ...path].join('.'))})`
  const outer = path.slice(0, -1).map((name) => sql`-> ${sql.lit(name)}`)
  return sql`attempts::json -> -1 ${sql.join(outer, sql` `)} ->> ${sql.lit(path.at(-1)!)}`
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
