/** Data of the status page and the support form; it belongs to no account and survives account deletion. */
export const incidentsMigration = {
  name: '007-incidents',
  statements: [
    `create table uptime (
        day text not null,
        kind text not null,
        name text not null,
        answered bigint not null,
        failed bigint not null,
        primary key (day, kind, name)
      )`,
    `create table incidents (
        id text primary key,
        title text not null,
        impact text not null,
        created_at_ms bigint not null,
        is_over bigint not null
      )`,
    `create index incidents_by_time on incidents (created_at_ms)`,
    `create table incident_updates (
        id text primary key,
        incident_id text not null references incidents (id),
        state text not null,
        body text not null,
        at_ms bigint not null
      )`,
    `create index incident_updates_by_incident on incident_updates (incident_id, at_ms)`,
    `create table tickets (
      id text primary key,
      account_id text,
      reply_to text not null,
      request_id text,
      body text not null,
      created_at_ms bigint not null
    )`,
  ],
} as const
