import type { DatabaseSync } from 'node:sqlite'
import type { BucketSpending } from '../../domain/budget-meter.ts'

/** Reads what the budgets of an account spent in buckets since a time (epoch milliseconds). */
export function spendingReader(
  database: DatabaseSync,
): (accountId: string, sinceMs: number) => readonly BucketSpending[] {
  const read = database.prepare(
    'select budget_id, bucket_ms, spent from budget_spending where account_id = ? and bucket_ms >= ?',
  )
  return (accountId, sinceMs) =>
    read.all(accountId, sinceMs).map((row) => ({
      budgetId: String(row['budget_id']),
      bucketMs: Number(row['bucket_ms']),
      spent: Number(row['spent']),
    }))
}
