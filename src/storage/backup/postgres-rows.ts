import { type RawBuilder, sql, type Transaction } from 'kysely'
import type { TableContent } from '../../domain/backup.ts'
import type { Tables } from '../schema/schema.ts'
import { type Cell, ContentDigest, list, quote, type Row, type TableShape } from './table-contents.ts'

/** Rows per round trip, unless they are long. */
const batchRows = 500
const batchCharacters = 1_000_000
const cursor = 'svc_router_copy'

/**
 * The rows of a table in the order of its primary key, which compares by bytes as in SQLite. One table at a time in a
 * transaction.
 */
export async function* readPostgresRows(
  transaction: Transaction<Tables>,
  { name, columns, key }: TableShape,
): AsyncGenerator<Row> {
  const order = key.length === 0 ? '' : ` order by ${list(key)}`
  await sql
    .raw(`declare ${cursor} no scroll cursor for select ${list(columns)} from ${quote(name)}${order}`)
    .execute(transaction)
  for (;;) {
    const { rows } = await sql.raw<Record<string, Cell>>(`fetch ${batchRows} from ${cursor}`).execute(transaction)
    for (const row of rows) yield columns.map((column) => row[column]!)
    if (rows.length < batchRows) break
  }
  await sql.raw(`close ${cursor}`).execute(transaction)
}

/** Inserts rows in batches. Returns what was inserted. */
export async function insertPostgresRows(
  transaction: Transaction<Tables>,
  table: TableShape,
  rows: Iterable<Row>,
): Promise<TableContent> {
  const digest = new ContentDigest()
  let batch: Row[] = []
  let characters = 0
  for (const row of rows) {
    batch.push(row)
    characters += digest.add(row)
    if (batch.length < batchRows && characters < batchCharacters) continue
    await insertBatch(transaction, table, batch)
    batch = []
    characters = 0
  }
  if (batch.length > 0) await insertBatch(transaction, table, batch)
  return digest.end()
}

/** One array per column, so that the statement is the same for any number of rows. */
async function insertBatch(transaction: Transaction<Tables>, table: TableShape, batch: readonly Row[]): Promise<void> {
  const { name, columns, types } = table
  const arrays = columns.map((_, index): RawBuilder<unknown> => {
    const values = batch.map((row) => row[index])
    return sql`${sql.val(values)}::${sql.raw(types[index] === 'bigint' ? 'bigint[]' : 'text[]')}`
  })
  await sql`insert into ${sql.raw(quote(name))} (${sql.raw(list(columns))}) select * from unnest(${sql.join(arrays)})`.execute(
    transaction,
  )
}

/** What a table contains now. */
export async function digestPostgresTable(transaction: Transaction<Tables>, table: TableShape): Promise<TableContent> {
  const digest = new ContentDigest()
  for await (const row of readPostgresRows(transaction, table)) digest.add(row)
  return digest.end()
}
