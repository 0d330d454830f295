import type { DatabaseSync } from 'node:sqlite'
import { type Kysely, sql, type Transaction } from 'kysely'
import { BackupError } from '../../domain/backup-error.ts'
import { type BackupManifest, differingTables, type TableContent } from '../../domain/backup.ts'
import { connectPostgres, openPostgres } from '../postgres/open-postgres.ts'
import type { Tables } from '../schema/schema.ts'
import { assertKnownSchema } from './known-schemas.ts'
import { digestPostgresTable, insertPostgresRows } from './postgres-rows.ts'
import { digestTables, quote, readRows, readTables, type TableShape } from './table-contents.ts'

/** What the migrations insert themselves. `migrations` is equal by name and checksum, but not by time. */
const initial: ReadonlySet<string> = new Set(['revisions', 'audit_head', 'managed_access', 'migrations', 'ledger'])
/** Triggers fill it from other tables, so it comes last and replaces what they wrote. */
const derived = 'stored_bytes'

/**
 * Copies a SQLite database of the current schema into an empty PostgreSQL database, in one transaction, and compares
 * every table by content before it ends. No node can start meanwhile. @throws BackupError, and errors of the engines
 */
export async function copyToPostgres(source: DatabaseSync, url: string): Promise<BackupManifest['tables']> {
  await (await openPostgres(url)).destroy()
  const db = openForCopy(url)
  try {
    return await db.transaction().execute(async (transaction) => {
      const tables = inOrder(readTables(source))
      assertKnownSchema(source)
      await sql`lock table nodes in exclusive mode`.execute(transaction)
      await assertEmpty(transaction, tables)
      const copied = new Map<string, TableContent>()
      const found = new Map<string, TableContent>()
      for (const table of tables.filter(({ name }) => name !== 'migrations')) {
        if (initial.has(table.name) || table.name === derived)
          await sql.raw(`delete from ${quote(table.name)}`).execute(transaction)
        copied.set(table.name, await insertPostgresRows(transaction, table, readRows(source, table)))
      }
      for (const table of tables.filter(({ name }) => copied.has(name)))
        found.set(table.name, await digestPostgresTable(transaction, table))
      assertSame(Object.fromEntries(copied), Object.fromEntries(found))
      return Object.fromEntries(copied)
    })
  } finally {
    await db.destroy()
  }
}

/** A pool of one connection without time limits: a table can be large. */
export function openForCopy(url: string): Kysely<Tables> {
  return connectPostgres(url, { maxConnections: 1, queryTimeoutMs: 0 })
}

/** Verifies a copy in SQLite against what was read from the source. @throws BackupError */
export function assertCopied(copy: DatabaseSync, tables: BackupManifest['tables']): void {
  assertSame(tables, digestTables(copy, readTables(copy)))
}

function assertSame(from: BackupManifest['tables'], to: BackupManifest['tables']): void {
  const differing = differingTables(from, to)
  if (differing.length > 0)
    throw new BackupError(
      `the copy differs from the original (${differing.join(', ')}), so nothing was changed`,
      'report this, with the names of these tables',
    )
}

async function assertEmpty(transaction: Transaction<Tables>, tables: readonly TableShape[]): Promise<void> {
  for (const { name } of tables.filter((table) => !initial.has(table.name))) {
    const { rows } = await sql.raw(`select 1 from ${quote(name)} limit 1`).execute(transaction)
    if (rows.length > 0)
      throw new BackupError(
        `the PostgreSQL database is not empty: its table ${name} has rows, which will not be overwritten`,
        'use a new database, or drop the tables of this one',
      )
  }
}

/** Every table after those that it refers to, and the derived one last. */
function inOrder(tables: readonly TableShape[]): readonly TableShape[] {
  const done: TableShape[] = []
  let rest = tables.filter(({ name }) => name !== derived)
  while (rest.length > 0) {
    const names = new Set(rest.map(({ name }) => name))
    const ready = rest.filter(({ name, parents }) => !parents.some((parent) => parent !== name && names.has(parent)))
    if (ready.length === 0) throw new Error('foreign keys form a cycle')
    done.push(...ready)
    rest = rest.filter((table) => !ready.includes(table))
  }
  return [...done, ...tables.filter(({ name }) => name === derived)]
}
