import { DatabaseSync } from 'node:sqlite'
import { assertKnown, migrationsTableSql, SchemaMismatch } from '../migrations/migrate.ts'
import type { Migration } from '../migrations/migration.ts'
import { migrations } from '../migrations/steps.ts'
import { manifestTable } from './backup-file.ts'

/**
 * Verifies that a database has exactly the tables, indexes, and triggers that its migrations create, and returns the name
 * of the last one. Reads only the schema before it knows that: a view or a trigger that someone added could run endlessly.
 * @throws SchemaMismatch if it was written by a newer version, or if anything was added, changed, or removed
 */
export function assertKnownSchema(database: DatabaseSync, steps: readonly Migration[] = migrations): string {
  const found = readSchema(database)
  const known = schemasOf(steps)
  if (!found.some((definition) => known.migrations.has(definition))) throw foreign()
  const applied = database.prepare('select name, checksum from migrations order by name').all()
  assertKnown(
    applied.map(({ name, checksum }) => ({ name: String(name), checksum: String(checksum) })),
    steps,
  )
  const last = steps[applied.length - 1]
  if (last === undefined || known.after[applied.length - 1] !== found.join('\n')) throw foreign()
  return last.name
}

function foreign(): SchemaMismatch {
  return new SchemaMismatch('The database has tables, indexes, or triggers that svc-router did not create.')
}

/** The statements that create the schema after a migration: tables and indexes first, then what acts on rows. */
export function schemaStatements(last: string): {
  readonly tables: readonly string[]
  readonly others: readonly string[]
} {
  using database = new DatabaseSync(':memory:')
  migrateTo(database, migrations.slice(0, migrations.findIndex(({ name }) => name === last) + 1))
  const rows = database.prepare('select type, sql from sqlite_schema where sql is not null order by rowid').all()
  const of = (isTrigger: boolean): readonly string[] =>
    rows.filter(({ type }) => (type === 'trigger') === isTrigger).map(({ sql }) => String(sql))
  return { tables: of(false), others: of(true) }
}

/** The schema after each migration, and every definition that the table that records them has had. */
function schemasOf(steps: readonly Migration[]): {
  readonly migrations: ReadonlySet<string>
  readonly after: readonly string[]
} {
  using database = new DatabaseSync(':memory:')
  migrateTo(database, [])
  const definitions = new Set(readSchema(database))
  const after = steps.map((step) => {
    run(database, step)
    const schema = readSchema(database)
    for (const definition of schema) if (definition.startsWith('table migrations ')) definitions.add(definition)
    return schema.join('\n')
  })
  return { migrations: definitions, after }
}

function migrateTo(database: DatabaseSync, steps: readonly Migration[]): void {
  database.exec(migrationsTableSql)
  for (const step of steps) run(database, step)
}

function run(database: DatabaseSync, { statements, own }: Migration): void {
  for (const statement of [...statements, ...(own?.sqlite ?? [])]) database.exec(statement)
}

/** One text per table, index, view, and trigger, sorted. SQLite's own indexes follow from the tables. */
function readSchema(database: DatabaseSync): readonly string[] {
  return database
    .prepare('select type, name, tbl_name, sql from sqlite_schema where name <> ? and sql is not null')
    .all(manifestTable)
    .map(({ type, name, tbl_name: table, sql }) => [type, name, table, sql].join(' '))
    .sort()
}
