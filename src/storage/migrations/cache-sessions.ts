import type { Migration } from './migration.ts'

/**
 * Which backends hold the prompts of sessions in a cache (contract 45.8): digests and figures, no text. An earlier version
 * ignores them; they expire. No foreign key to accounts: `saveCacheSessions` checks that they exist.
 */
export const cacheSessionsMigration: Migration = {
  name: '028-cache-sessions',
  worksWith: '021-earlier-versions',
  statements: [
    `create table cache_sessions (
      account_id text not null,
      session text not null,
      state text not null,
      updated_at_ms bigint not null,
      expires_at_ms bigint not null,
      primary key (account_id, session)
    )`,
    `create index cache_sessions_by_end on cache_sessions (expires_at_ms)`,
    // For deleting the oldest of an account that has too many.
    `create index cache_sessions_by_time on cache_sessions (account_id, updated_at_ms)`,
  ],
}
