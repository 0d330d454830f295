import { budgetFunctions } from './budget-functions.ts'
import type { Migration } from './migration.ts'

/**
 * Budgets in money and tokens (contract 46). An earlier version ignores them: it admits without a claim, and what its
 * requests cost is not counted.
 */
export const budgetsMigration: Migration = {
  name: '029-budgets',
  worksWith: '021-earlier-versions',
  statements: [
    `create table budgets (
      id text primary key,
      account_id text not null references accounts (id),
      scope text not null,
      subject text not null,
      former text,
      unit text not null,
      period text not null,
      rolling bigint not null,
      amount bigint not null,
      set_by text not null,
      created_at_ms bigint not null
    )`,
    `create index budgets_by_account on budgets (account_id, created_at_ms)`,
    // No foreign keys: the check would cost every request. In nanodollars, or tokens.
    `create table budget_spending (
      budget_id text not null,
      bucket_ms bigint not null,
      account_id text not null,
      spent bigint not null,
      held bigint not null,
      primary key (budget_id, bucket_ms)
    )`,
    `create index budget_spending_by_account on budget_spending (account_id, bucket_ms)`,
    `create index budget_spending_by_time on budget_spending (bucket_ms)`,
    // JSON: what a request holds until it ends, and what its budgets lost then.
    `alter table requests add column holds text`,
    `alter table requests add column booked text`,
    `create index requests_holding on requests (id) where holds is not null`,
  ],
  own: { sqlite: [], postgres: budgetFunctions },
}
