import { type Kysely, type RawBuilder, sql, SqliteAdapter } from 'kysely'
import { defineStore } from './define-store.ts'
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

/** The nodes that share a database: none on SQLite, where the service is one process. */
export interface NodeStore {
  /** Those with a heartbeat within the last minute. */
  listNodes(): Promise<readonly StoredNode[]>
}

export const nodeStore = defineStore<NodeStore>({
  async listNodes(db) {
    const { rows } = await sql<StoredNode>`
      select id, report, now_ms - started_at_ms as "startedAgoMs", now_ms - seen_at_ms as "seenAgoMs"
      from nodes cross join (select ${nowOf(db)} as now_ms) as clock
      where seen_at_ms > now_ms - ${deadAfterMs} order by seen_at_ms desc limit ${maxNodes}`.execute(db)
    return rows
  },
})

function nowOf(db: Kysely<Tables>): RawBuilder<number> {
  return db.getExecutor().adapter instanceof SqliteAdapter
    ? sql<number>`cast(unixepoch('subsec') * 1000 as integer)`
    : databaseMs
}
