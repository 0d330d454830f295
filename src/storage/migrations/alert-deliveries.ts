import type { Migration } from './migration.ts'

/**
 * Messages about alerts, until they are sent (contract 46.15). An earlier version ignores them, and deletes them with their account: hence the
 * foreign key with a cascade.
 */
export const alertDeliveriesMigration: Migration = {
  name: '033-alert-deliveries',
  worksWith: '021-earlier-versions',
  statements: [
    `create table alert_deliveries (
      id text primary key,
      event_id text not null,
      account_id text not null references accounts (id) on delete cascade,
      channel text not null,
      target text not null,
      body text not null,
      state text not null,
      attempts bigint not null,
      result text,
      created_at_ms bigint not null,
      attempted_at_ms bigint,
      due_at_ms bigint
    )`,
    // Each event once for each receiver.
    `create unique index alert_deliveries_by_event on alert_deliveries (event_id, channel, target)`,
    `create index alert_deliveries_by_due on alert_deliveries (channel, due_at_ms)`,
    `create index alert_deliveries_by_account on alert_deliveries (account_id, channel, created_at_ms)`,
    `create index alert_deliveries_by_time on alert_deliveries (created_at_ms)`,
  ],
}
