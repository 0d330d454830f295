/** A value of a column as it travels to the worker. */
export type Cell = string | number | null

/** What the worker is sent: records in the order in which they happened, each its kind followed by that kind's columns. */
export interface Batch {
  readonly number: number
  readonly records: readonly Cell[]
  /** Account, period and units to add to `usage`, again and again. */
  readonly usage: readonly Cell[]
  /** Where recovery has to begin, when that has moved. */
  readonly recoverFrom?: string
}

/** The `ledger` entry with the request id from which on records may be undecided. */
export const recoverFromName = 'recover_from'

const openingColumns = [
  'id',
  'account_id',
  'key_id',
  'profile',
  'format',
  'stream',
  'units',
  'period_id',
  'admitted_at_ms',
]
const outcomeColumns = [
  'charged',
  'due_mark',
  'attempts',
  'input_tokens',
  'output_tokens',
  'cached_tokens',
  'reasoning_tokens',
  'usage_source',
  'error_code',
  'first_content_ms',
  'total_ms',
  'fusions',
  'passed_by',
]

/** The kinds of records by number: how many cells follow, and the statement that they are passed to. */
export const recordKinds = [
  {
    cells: openingColumns.length,
    sql: `insert into requests (${openingColumns.join(', ')}, state, charged)
          values (${openingColumns.map(() => '?').join(', ')}, 'open', 0)`,
  },
  {
    cells: openingColumns.length + outcomeColumns.length,
    sql: `insert into requests (${[...openingColumns, ...outcomeColumns].join(', ')}, state)
          values (${[...openingColumns, ...outcomeColumns].map(() => '?').join(', ')}, 'done')`,
  },
  { cells: 1, sql: `update requests set state = 'delivered' where id = ? and state = 'open'` },
  {
    cells: outcomeColumns.length + 1,
    sql: `update requests set ${outcomeColumns.map((name) => `${name} = ?`).join(', ')}, state = 'done'
          where id = ? and state in ('open', 'delivered')`,
  },
  { cells: 1, sql: `update requests set state = 'lost', charged = 0, due_mark = null where id = ?` },
] as const

/** Numbers of `recordKinds`. */
export const opening = 0
export const whole = 1
export const delivered = 2
export const outcome = 3
export const voided = 4
