import type { SQLInputValue } from 'node:sqlite'
import type { MonthUsage } from '../../domain/account-meter.ts'

/** The connections of the database thread that run queries. The ledger has its own connection. */
export type ConnectionName = 'store' | 'responses'

/** A call from the main thread; each gets exactly one answer. */
export type Call =
  | {
      readonly type: 'execute'
      readonly connection: ConnectionName
      readonly sql: string
      readonly parameters: readonly SQLInputValue[]
    }
  /** Ends the connection's transaction, if one is open. */
  | { readonly type: 'rollback'; readonly connection: ConnectionName }
  /** The counters of an account: see `AccountCounters`. */
  | { readonly type: 'counters'; readonly accountId: string; readonly periodId: string; readonly sinceMs: number }
  /** What an account's budgets spent in buckets since a time: see `BucketSpending`. */
  | { readonly type: 'spending'; readonly accountId: string; readonly sinceMs: number }
  /** See `proveQuotasOnSqlite`. */
  | { readonly type: 'prove' }

/** Units used in the period and all later ones, and the admissions after `sinceMs`; times in epoch milliseconds. */
export interface AccountCounters {
  readonly usage: readonly MonthUsage[]
  readonly recent: readonly { readonly atMs: number; readonly keyId: string }[]
}

/** The result of a statement: its rows, or how many rows it changed. */
export interface SqliteResult {
  readonly rows: readonly unknown[]
  readonly changes?: number | bigint
}

export interface CallMessage {
  readonly type: 'call'
  readonly id: number
  /** By `threadClockMs`. A call read later is rejected: its caller has already received an error. */
  readonly expiresAtMs: number
  readonly call: Call
}

/** The last message. `finishFrom`: all requests with this ID or a higher one were delivered. */
interface CloseMessage {
  readonly type: 'close'
  readonly finishFrom: string | undefined
}

/** A string is a ledger batch as JSON, which costs both threads a quarter of what a list of values costs. */
export type ToWorker = string | CallMessage | CloseMessage

/** An error as sent between threads: structured clones lose its codes. */
export interface ErrorMessage {
  readonly message: string
  readonly code: unknown
  readonly errcode: unknown
}

/**
 * `committed`: the ledger's batches up to `number` are on disk. `failed`: a commit failed and is retried. `bad_row`: a row was
 * left out.
 */
export type FromWorker =
  | { readonly type: 'ready' }
  | { readonly type: 'committed'; readonly number: number }
  | { readonly type: 'failed'; readonly reason: string }
  | { readonly type: 'bad_row'; readonly reason: string }
  | { readonly type: 'answer'; readonly id: number; readonly value: unknown }
  | { readonly type: 'error'; readonly id: number; readonly error: ErrorMessage }

export interface WorkerStart {
  readonly path: string
  /** How long a ledger commit waits for another writer, in milliseconds. */
  readonly busyTimeoutMs: number
}

/** A monotonic clock in milliseconds that all threads of the process share. */
export function threadClockMs(): number {
  return Number(process.hrtime.bigint() / 1_000_000n)
}
