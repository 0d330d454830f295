/** Operators' decisions about backends, and closed tickets. No foreign keys: backends are in the configuration. */
export const backendControlsMigration = {
  name: '012-backend-controls',
  statements: [
    `create table backend_controls (
        backend_id text not null,
        kind text not null,
        at_ms bigint not null,
        set_by text not null,
        reason text,
        primary key (backend_id, kind)
      )`,
    `alter table tickets add column closed_at_ms bigint`,
  ],
} as const
