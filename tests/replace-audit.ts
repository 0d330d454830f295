import { type Kysely, sql } from 'kysely'
import type { Tables } from '../src/storage/schema/schema.ts'

/**
 * Removes the audit log and its checkpoints without a trace in the database. The next entry starts a new log.
 */
export async function replaceAudit(db: Kysely<Tables>): Promise<void> {
  const { rows } = await sql<{ name: string }>`select name from sqlite_master where type = 'trigger'`.execute(db)
  for (const { name } of rows) await sql.raw(`drop trigger "${name}"`).execute(db)
  await sql`delete from audit_checkpoints`.execute(db)
  await sql`delete from audit_log`.execute(db)
  await sql`update audit_head set sequence = 0, hash = ''`.execute(db)
}
