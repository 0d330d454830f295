/** A column's value as sent to the worker. */
export type Cell = string | number | null

/** A message to the worker: records in order, each as the number of its kind followed by that kind's columns. */
export interface Batch {
  readonly number: number
  readonly records: readonly Cell[]
  /** Additions to `usage` as a flat list: account, period, units, and so on. */
  readonly usage: readonly Cell[]
  /** Additions to `budget_spending` as a flat list: account, budget, bucket, amount, and so on. Absent if there are none. */
  readonly spending?: readonly Cell[]
  /** The request ID at which recovery has to start, if it changed. */
  readonly recoverFrom?: string
}

/** The `ledger` entry with the lowest request ID whose record may be undecided. */
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
  'cache_write_tokens',
  'usage_details',
  'cost',
  'cost_source',
  'cache_saved',
  'price_version',
  'session',
]

/** The kinds of records by number: the count of cells that follow, and the statement that takes them. */
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
  { cells: 2, sql: `update requests set state = 'lost', charged = ?, due_mark = null where id = ?` },
  { cells: 2, sql: `update requests set holds = ? where id = ?` },
  { cells: 2, sql: `update requests set holds = null, booked = ? where id = ?` },
] as const

/** Indexes of `recordKinds`. */
export const opening = 0
export const whole = 1
export const delivered = 2
export const outcome = 3
export const lost = 4
export const holding = 5
export const booked = 6

/** Adds to the spending of one bucket of a budget: account, budget, bucket, amount. */
export const addSpendingSql = `insert into budget_spending (account_id, budget_id, bucket_ms, spent, held) values (?, ?, ?, ?, 0)
  on conflict (budget_id, bucket_ms) do update set spent = min(spent + excluded.spent, ${Number.MAX_SAFE_INTEGER})`
