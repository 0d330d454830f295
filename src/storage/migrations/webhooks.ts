import type { Migration } from './migration.ts'

/**
 * Webhooks of accounts (contract 46.16). An earlier version ignores them, and deletes them with their account: hence the foreign key with
 * a cascade.
 */
export const webhooksMigration: Migration = {
  name: '034-webhooks',
  worksWith: '021-earlier-versions',
  statements: [
    `create table webhooks (
      id text primary key,
      account_id text not null references accounts (id) on delete cascade,
      url text not null,
      sealed_secret text not null,
      sealed_previous text,
      previous_until_ms bigint,
      created_at_ms bigint not null
    )`,
    `create index webhooks_by_account on webhooks (account_id, created_at_ms)`,
    // The deliveries of one webhook, the latest first.
    `create index alert_deliveries_by_target on alert_deliveries (target, id)`,
  ],
}
