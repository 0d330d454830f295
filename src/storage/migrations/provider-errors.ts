/**
 * Encrypted error messages of failing backends, readable by the backend's owner (contract 21.11), and settings of
 * upstreams. No foreign keys to requests or accounts: rows are written independently of both, and deleted within days.
 */
export const providerErrorsMigration = {
  name: '014-provider-errors',
  statements: [
    `create table provider_errors (
        id text primary key,
        request_id text not null,
        backend text not null,
        account_id text,
        at_ms bigint not null,
        sealed text not null
      )`,
    `create index provider_errors_by_request on provider_errors (request_id)`,
    `create index provider_errors_by_account on provider_errors (account_id)`,
    `alter table upstreams add column timeouts text`,
    `alter table upstreams add column headers text`,
  ],
} as const
