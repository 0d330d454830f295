import { type Kysely, sql } from 'kysely'
import type { Tables } from '../../src/storage/schema/schema.ts'
import type { RecordRow } from '../faults/service-process.ts'
import type { RecordPlace } from './crash-cycles.ts'

/** For a service on PostgreSQL; `env` has its URL as `DATABASE_URL`. */
export function recordsInPostgres(db: Kysely<Tables>, env: NodeJS.ProcessEnv): RecordPlace {
  return {
    settings: { database: { url_env: 'DATABASE_URL' } },
    env,
    async records(afterId) {
      const { rows } = await sql<RecordRow>`select id, state, charged, admitted_at_ms as "admittedAtMs",
        error_code as "errorCode" from requests where id > ${afterId} order by id`.execute(db)
      return rows
    },
    async usedUnits() {
      const { rows } = await sql<{ used: number }>`select coalesce(sum(used), 0)::bigint as used from usage`.execute(db)
      return rows[0]!.used
    },
  }
}
