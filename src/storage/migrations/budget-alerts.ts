import type { Migration } from './migration.ts'

/** Which alerts of budgets were sent: one for each budget, window, and threshold (contract 46.11). */
export const budgetAlertsMigration: Migration = {
  name: '030-budget-alerts',
  worksWith: '021-earlier-versions',
  statements: [
    `create table budget_alerts (
      budget_id text not null,
      window_ms bigint not null,
      threshold bigint not null,
      account_id text not null,
      at_ms bigint not null,
      primary key (budget_id, window_ms, threshold)
    )`,
    `create index budget_alerts_by_time on budget_alerts (at_ms)`,
    `create index budget_alerts_by_account on budget_alerts (account_id)`,
  ],
}
