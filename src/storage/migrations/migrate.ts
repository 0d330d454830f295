import { createHash } from 'node:crypto'
import { type Kysely, type Transaction, sql } from 'kysely'
import { SetupError } from '../../runtime/setup-error.ts'
import { isOnSqlite } from '../engine.ts'
import type { Tables } from '../schema/schema.ts'
import type { Migration } from './migration.ts'
import { migrations } from './steps.ts'

/** Sorts after the name of every migration. */
const maxName = '~'

/** Data that this version must not touch: written by a newer version, or by a migration that was changed later. */
export class SchemaMismatch extends Error {
  override readonly name = 'SchemaMismatch'
}

/**
 * Applied after all migrations to a database whose data was moved to SQLite: every version refuses to use it, also those that
 * only know migrations (contract 37.8).
 */
const movedMark = '999-moved-to-sqlite'

/** The table that records which migrations were applied. */
export const migrationsTableSql =
  'create table if not exists migrations (name text primary key, checksum text not null, applied_at_ms bigint not null)'

/** A migration that was applied to a database. */
interface AppliedMigration {
  readonly name: string
  readonly checksum: string
  /** The oldest version, by its last migration, that works with the schema after it; absent if that does not matter. */
  readonly works_with?: string | null
}

/**
 * Verifies that these migrations, sorted by name, are the first ones of `steps`, or later ones that this version works
 * with. @throws SchemaMismatch, or SetupError if the data was moved away
 */
export function assertKnown(applied: readonly AppliedMigration[], steps: readonly Migration[] = migrations): void {
  const lastName = steps.at(-1)?.name ?? ''
  if (applied.some(({ name }) => name === movedMark)) throw movedAway()
  for (const [index, { name, checksum, works_with: worksWith }] of applied.entries()) {
    const step = steps[index]
    if (step === undefined && (worksWith ?? maxName) <= lastName) continue
    if (step?.name !== name) {
      throw new SchemaMismatch(
        `The data was written by a newer version of svc-router (migration "${name}" is unknown to this version). Start that version, or a newer one.`,
      )
    }
    if (checksumOf(step) !== checksum) {
      throw new SchemaMismatch(`Migration "${name}" differs from the one that was applied to this data.`)
    }
  }
}

/**
 * Migrates the schema to the current version in one transaction (contract 36.4, 36.8). `lock` must make a second process wait until that
 * transaction ends; `finish` runs in it, too. @throws SchemaMismatch, SetupError
 */
export async function migrate(
  db: Kysely<Tables>,
  lock: (transaction: Transaction<Tables>) => Promise<void>,
  steps: readonly Migration[] = migrations,
  finish: (transaction: Transaction<Tables>) => Promise<void> = async () => {},
): Promise<void> {
  await db.transaction().execute(async (transaction) => {
    await lock(transaction)
    await sql.raw(migrationsTableSql).execute(transaction)
    const applied = await transaction.selectFrom('migrations').selectAll().orderBy('name').execute()
    assertKnown(applied, steps)
    for (const step of steps.slice(applied.length)) {
      for (const statement of [...step.statements, ...ownStatements(db, step)])
        await sql.raw(statement).execute(transaction)
      await transaction
        .insertInto('migrations')
        .values({
          name: step.name,
          checksum: checksumOf(step),
          applied_at_ms: Date.now(),
          // The column exists only when a migration needs it.
          ...(step.worksWith === undefined ? {} : { works_with: step.worksWith }),
        })
        .execute()
    }
    await finish(transaction)
  })
}

/** Marks a database whose data was moved to SQLite. Undone by deleting the row. */
export async function markMoved(db: Kysely<Tables>): Promise<void> {
  await db.insertInto('migrations').values({ name: movedMark, checksum: '', applied_at_ms: Date.now() }).execute()
}

/** For processes that opened the database before its data was moved to SQLite. @throws SetupError if it was */
export async function assertNotMoved(db: Kysely<Tables>): Promise<void> {
  if (isOnSqlite(db)) return
  const mark = await db.selectFrom('migrations').select('name').where('name', '=', movedMark).executeTakeFirst()
  if (mark !== undefined) throw movedAway()
}

function movedAway(): SetupError {
  return new SetupError(
    'the data of this PostgreSQL database was moved to SQLite',
    `remove database.url_env and start with the data folder that has the copy; to use this database again, without what changed in the copy, run in psql: delete from migrations where name = '${movedMark}'`,
  )
}

/** The data was not moved after all. */
export async function unmarkMoved(db: Kysely<Tables>): Promise<void> {
  await db.deleteFrom('migrations').where('name', '=', movedMark).execute()
}

function ownStatements(db: Kysely<Tables>, { own }: Migration): readonly string[] {
  if (own === undefined) return []
  return isOnSqlite(db) ? own.sqlite : own.postgres
}

/** Covers both engines' statements, so that it is the same on either. */
export function checksumOf({ statements, own }: Migration): string {
  const all = [...statements, ...(own?.sqlite ?? []), ...(own?.postgres ?? [])]
  return createHash('sha256').update(all.join(';\n')).digest('hex')
}
