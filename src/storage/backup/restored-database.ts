import { DatabaseSync } from 'node:sqlite'
import type { Kysely } from 'kysely'
import type { ChainLink } from '../../domain/audit-chain.ts'
import type { AuditRecord } from '../../domain/audit.ts'
import type { Reapplied } from '../../domain/backup.ts'
import { migrate } from '../migrations/migrate.ts'
import { change } from '../revision.ts'
import type { Tables } from '../schema/schema.ts'
import { queriesOn } from '../sqlite/open-sqlite.ts'
import { manifestTable } from './backup-file.ts'
import { reapplyChanges } from './later-changes.ts'

/** Every way to be signed in: what happened to them after the backup is unknown, and signing in again costs little. */
const signIns = ['sessions', 'operator_sessions', 'sign_in_proofs'] as const satisfies readonly (keyof Tables)[]

/** Opens a verified copy of a backup as the database that it becomes: its manifest is removed, its schema is current. */
export async function openRestored(path: string): Promise<Kysely<Tables>> {
  const db = queriesOn(() => {
    const database = new DatabaseSync(path, { enableForeignKeyConstraints: true })
    // In this mode the file alone is the whole database, so that it can be renamed.
    database.exec('pragma journal_mode = delete; pragma synchronous = full')
    database.exec(`drop table ${manifestTable}`)
    return database
  })
  try {
    await migrate(db, async () => {})
    return db
  } catch (error) {
    await db.destroy()
    throw error
  }
}

/**
 * Makes old data safe to serve: ends all sessions, deletes unused sign-in links and codes, applies later changes that
 * are known, and records the restore (contract 37.5, 37.6). `record` receives the number of entries that were kept.
 */
export async function settleRestored(
  db: Kysely<Tables>,
  later: AsyncIterable<ChainLink>,
  record: (reapplied: number) => AuditRecord,
): Promise<Reapplied> {
  let reapplied: Reapplied | undefined
  await db.transaction().execute(async (transaction) => {
    for (const table of signIns) await transaction.deleteFrom(table).execute()
    reapplied = await reapplyChanges(transaction, later)
  })
  const kept = reapplied!
  await change(db, record(kept.entries), () => Promise.resolve(true))
  return kept
}
