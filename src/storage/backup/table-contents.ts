import { createHash } from 'node:crypto'
import type { DatabaseSync, SQLOutputValue } from 'node:sqlite'
import type { TableContent } from '../../domain/backup.ts'

/** How much text is hashed at once. */
const pieceCharacters = 65_536

/** A value of a row, as both engines store it. */
export type Cell = SQLOutputValue

/** The values of a row, in the order of `TableShape.columns`. */
export type Row = readonly Cell[]

/** A table by its columns, sorted by name, and those of its primary key in order. */
export interface TableShape {
  readonly name: string
  readonly columns: readonly string[]
  /** The type of each column: `text` or `bigint`. */
  readonly types: readonly string[]
  readonly key: readonly string[]
  /** The tables that its foreign keys refer to. */
  readonly parents: readonly string[]
}

/**
 * The tables of a SQLite database, sorted by name, without those of SQLite itself. PostgreSQL has the same ones, because
 * the same migrations create them.
 */
export function readTables(database: DatabaseSync): readonly TableShape[] {
  const names = database
    .prepare(
      `select name from sqlite_schema where type = 'table' and name not like 'sqlite\\_%' escape '\\' order by name`,
    )
    .all()
  const info = database.prepare('select name, type, pk from pragma_table_info(?) order by name')
  const parents = database.prepare('select distinct "table" as name from pragma_foreign_key_list(?) order by name')
  return names.map((row) => {
    const name = String(row['name'])
    const columns = info.all(name)
    const key = columns.filter(({ pk }) => Number(pk) > 0).toSorted((a, b) => Number(a['pk']) - Number(b['pk']))
    return {
      name,
      columns: columns.map((column) => String(column['name'])),
      types: columns.map(({ type }) => String(type)),
      key: key.map((column) => String(column['name'])),
      parents: parents.all(name).map((parent) => String(parent['name'])),
    }
  })
}

/** Digests rows one by one. Rows are lists of text, whole numbers, and null, in the order of `TableShape.columns`. */
export class ContentDigest {
  readonly #hash = createHash('sha256')
  #piece = ''
  #rows = 0

  /** Returns the length of the row as text. */
  add(row: Row): number {
    const text = `${JSON.stringify(row)}\n`
    this.#piece += text
    this.#rows += 1
    if (this.#piece.length >= pieceCharacters) {
      this.#hash.update(this.#piece)
      this.#piece = ''
    }
    return text.length
  }

  /** The content of all rows so far. Call it once. */
  end(): TableContent {
    return { rows: this.#rows, digest: this.#hash.update(this.#piece).digest('base64url') }
  }
}

/** Reads whole tables and digests them. Blocks its thread. */
export function digestTables(
  database: DatabaseSync,
  tables: readonly TableShape[],
): Readonly<Record<string, TableContent>> {
  return Object.fromEntries(
    tables.map((table) => {
      const digest = new ContentDigest()
      for (const row of readRows(database, table)) digest.add(row)
      return [table.name, digest.end()]
    }),
  )
}

/** The rows of a table in the order of its primary key, each as a list of its columns' values. */
export function readRows(database: DatabaseSync, { name, columns, key }: TableShape): Iterable<Row> {
  const order = key.length === 0 ? '' : ` order by ${list(key)}`
  const statement = database.prepare(`select ${list(columns)} from ${quote(name)}${order}`)
  statement.setReturnArrays(true)
  return statement.iterate() as Iterable<unknown> as Iterable<Row>
}

/** The statement that inserts one such row. */
export function insertStatement({ name, columns }: TableShape): string {
  return `insert into ${quote(name)} (${list(columns)}) values (${columns.map(() => '?').join(', ')})`
}

export function list(names: readonly string[]): string {
  return names.map(quote).join(', ')
}

export function quote(name: string): string {
  return `"${name.replaceAll('"', '""')}"`
}
