import { type Kysely, type RawBuilder, sql } from 'kysely'
import { defineStore } from './define-store.ts'
import { isOnSqlite } from './engine.ts'
import type { Tables } from './schema/schema.ts'

/** A node that has sent no heartbeat for this long is gone: its requests count as lost. */
export const deadAfterMs = 60_000
const maxNodes = 500

/** The time of the PostgreSQL server, epoch milliseconds. */
export const databaseMs = sql<number>`floor(extract(epoch from clock_timestamp()) * 1000)::bigint`

/** A node that sent a heartbeat recently. Ages, because its clock and the reader's may differ. */
export interface StoredNode {
  readonly id: string
  readonly startedAgoMs: number
  readonly seenAgoMs: number
  readonly report: string | null
}

/** A worker's sign of life. */
interface WorkerSign {
  /** How long it has been running. */
  readonly ageMs: number
  /** Whether it has reported before. Its start stays as it was then: computed again, it would differ by some milliseconds. */
  readonly isKnown: boolean
  readonly report: string | null
}

/** The nodes that share a database: on SQLite the workers, if there are several. */
export interface NodeStore {
  /** Those with a heartbeat within the last minute. */
  listNodes(): Promise<readonly StoredNode[]>
  /** Writes a worker's sign of life on SQLite. On PostgreSQL, `NodeLease` writes those of nodes. */
  reportWorker(id: string, worker: WorkerSign): Promise<void>
  /** Removes a worker that has ended. */
  forgetWorker(id: string): Promise<void>
}

export const nodeStore = defineStore<NodeStore>({
  async listNodes(db) {
    const { rows } = await sql<StoredNode>`
      select id, report, now_ms - started_at_ms as "startedAgoMs", now_ms - seen_at_ms as "seenAgoMs"
      from nodes cross join (select ${nowOf(db)} as now_ms) as clock
      where seen_at_ms > now_ms - ${deadAfterMs} order by seen_at_ms desc limit ${maxNodes}`.execute(db)
    return rows
  },

  async reportWorker(db, id, { ageMs, isKnown, report }) {
    const nowMs = nowOf(db)
    // A worker that was killed left its row to the next one with the same id.
    const startedAt = isKnown ? sql`nodes.started_at_ms` : sql`excluded.started_at_ms`
    await sql`insert into nodes (id, started_at_ms, seen_at_ms, report)
      values (${id}, ${nowMs} - cast(${ageMs} as integer), ${nowMs}, ${report})
      on conflict (id) do update set started_at_ms = ${startedAt}, seen_at_ms = excluded.seen_at_ms,
        report = excluded.report`.execute(db)
  },

  async forgetWorker(db, id) {
    await db.deleteFrom('nodes').where('id', '=', id).execute()
  },
})

/** The time of the database, epoch milliseconds. */
export function nowOf(db: Kysely<Tables>): RawBuilder<number> {
  return isOnSqlite(db) ? sql<number>`cast(unixepoch('subsec') * 1000 as integer)` : databaseMs
}
