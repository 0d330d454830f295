/** Operators, separate from accounts, and the proofs that concern operators. */
export const operatorsMigration = {
  name: '009-operators',
  statements: [
    `create table operators (
      id text primary key,
      email text not null,
      role text not null,
      state text not null,
      created_at_ms bigint not null,
      removed_at_ms bigint
    )`,
    `create unique index operators_by_email on operators (email) where state = 'active'`,
    `create table operator_sessions (
      digest text primary key,
      id text not null unique,
      operator_id text not null references operators (id),
      method text not null,
      agent text not null,
      created_at_ms bigint not null,
      last_seen_at_ms bigint not null,
      expires_at_ms bigint not null,
      confirmed_at_ms bigint not null
    )`,
    `create index operator_sessions_by_operator on operator_sessions (operator_id, last_seen_at_ms)`,
    // Operators see the newest accounts first.
    `create index accounts_by_time on accounts (created_at_ms, id)`,
    `alter table sign_in_proofs add column operator_id text`,
    `alter table sign_in_proofs add column operator_session_id text`,
  ],
} as const
