/**
 * Rejected requests, counted by hour (decision 47). No foreign key to accounts: `addRefused` checks that they exist.
 */
export const refusedRequestsMigration = {
  name: '019-refused-requests',
  statements: [
    `create table refused_requests (
        account_id text not null,
        hour_ms bigint not null,
        code text not null,
        requests bigint not null,
        last_request_id text not null,
        last_key_id text not null,
        last_at_ms bigint not null,
        primary key (account_id, hour_ms, code)
      )`,
    `create index refused_requests_by_hour on refused_requests (hour_ms)`,
  ],
} as const
