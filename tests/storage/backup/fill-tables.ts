import type { DatabaseSync } from 'node:sqlite'
import { readTables, type Row, type TableShape } from '../../../src/storage/backup/table-contents.ts'

/** What the migrations insert, what triggers write or refuse, and what only running processes have. */
const left = ['audit_log', 'migrations', 'revisions', 'audit_head', 'managed_access', 'ledger', 'stored_bytes', 'nodes']
const texts = [
  'plain',
  '',
  ' spaces and\ttabs\nand lines ',
  `'quotes' "double" \\back\\ {a,b} NULL`,
  'Grüße, 世界, 😀, e\u0301 and \u00e9',
  'x'.repeat(50_000),
]
const numbers = [0, 1, -1, 1_700_000_000_000, Number.MAX_SAFE_INTEGER, Number.MIN_SAFE_INTEGER]

/** Puts rows with difficult values into every table. Requests are done, so that nothing is left to decide. */
export function fillTables(database: DatabaseSync, rowsPerTable: number): void {
  // Parents first; their first text column is what the others refer to.
  const tables = readTables(database).filter(({ name }) => !left.includes(name))
  const ordered = [
    ...tables.filter(({ parents }) => parents.length === 0),
    ...tables.filter(({ parents }) => parents.length > 0),
  ]
  for (const table of ordered) {
    const required = new Set(
      database
        .prepare('select name from pragma_table_info(?) where "notnull" = 1 or pk > 0')
        .all(table.name)
        .map(({ name }) => String(name)),
    )
    const insert = database.prepare(
      `insert into "${table.name}" (${table.columns.map((name) => `"${name}"`).join(', ')}) values (${table.columns.map(() => '?').join(', ')})`,
    )
    for (let n = 0; n < rowsPerTable; n++) insert.run(...rowOf(table, n, required))
  }
  // Nothing runs, so nothing is held.
  database.exec('update budget_spending set held = 0')
}

function rowOf(
  { name: table, columns, types, key, parents }: TableShape,
  n: number,
  required: ReadonlySet<string>,
): Row {
  return columns.map((name, index) => {
    const isText = types[index] !== 'bigint'
    if (parents.some((parent) => name === `${parent.slice(0, -1)}_id`)) return `id-${n}`
    if (key.includes(name) || /digest|^id$|customer_id|request_id|event_id/.test(name))
      return isText ? `${name === 'id' ? 'id' : name}-${n}` : n + 1
    if (table === 'requests') {
      if (name === 'state') return 'done'
      if (name === 'due_mark' || name === 'node_id' || name === 'holds') return null
      if (name === 'charged' || name === 'units') return n % 3
      if (name === 'admitted_at_ms') return n
    }
    if (name === 'state') return n === 0 ? 'requested' : `state-${n}`
    if (name === 'position') return n
    if (!required.has(name) && n % 3 === 0) return null
    return isText ? texts[n % texts.length]! : numbers[n % numbers.length]!
  })
}
