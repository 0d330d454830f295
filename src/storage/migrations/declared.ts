import type { Migration } from './migration.ts'

/**
 * Settings that operators declare while the service runs, which accounts and keys a file declares, and the tokens of the
 * admin API. No foreign keys: plans, backends, and profiles may also be in the configuration file.
 */
export const declaredMigration: Migration = {
  name: '024-declared',
  worksWith: '021-earlier-versions',
  statements: [
    `create table settings (
      kind text not null,
      name text not null,
      value text not null,
      managed bigint not null,
      primary key (kind, name)
    )`,
    // An empty name is the account itself.
    `create table declared (
      account_id text not null,
      key_name text not null,
      primary key (account_id, key_name)
    )`,
    `create table admin_tokens (
      id text primary key,
      digest text not null unique,
      hint text not null,
      name text not null,
      scope text not null,
      operator_id text,
      created_at_ms bigint not null,
      expires_at_ms bigint not null,
      last_used_at_ms bigint,
      revoked_at_ms bigint
    )`,
    `create index admin_tokens_by_time on admin_tokens (created_at_ms, id)`,
    // Planning a change reads the working keys of all accounts.
    `create index keys_by_state on keys (state, account_id)`,
  ],
}
