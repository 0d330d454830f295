import { type Kysely, SqliteAdapter } from 'kysely'
import type { Tables } from './schema/schema.ts'

/** Whether queries run on SQLite. Every query whose statement depends on the engine asks here. */
export function isOnSqlite(db: Kysely<Tables>): boolean {
  return db.getExecutor().adapter instanceof SqliteAdapter
}
