import type { Migration } from './migration.ts'

/**
 * Answers that are stored for retries with the same `Idempotency-Key`, and background responses (decision 57). An earlier
 * version ignores them; they expire.
 */
export const generationsMigration: Migration = {
  name: '026-generations',
  worksWith: '021-earlier-versions',
  statements: [
    `create table generations (
      account_id text not null,
      key_digest text not null,
      request_id text not null unique,
      body_digest text not null,
      format text not null,
      stream bigint not null,
      background bigint not null,
      state text not null,
      has_content bigint not null,
      cancel_requested bigint not null,
      head text,
      sealed_response text,
      chunks bigint not null,
      bytes bigint not null,
      lease_until_ms bigint not null,
      created_at_ms bigint not null,
      expires_at_ms bigint not null,
      primary key (account_id, key_digest)
    )`,
    `create index generations_by_account on generations (account_id, created_at_ms, bytes)`,
    `create index generations_by_end on generations (expires_at_ms)`,
    // Recovery looks for running ones.
    `create index generations_running on generations (request_id) where state = 'running'`,
    `create table generation_chunks (
      request_id text not null,
      number bigint not null,
      account_id text not null,
      sealed text not null,
      primary key (request_id, number)
    )`,
    `create index generation_chunks_by_account on generation_chunks (account_id)`,
  ],
}
