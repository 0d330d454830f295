import { lockTimeout, type Migration } from './migration.ts'
import { createSettle } from './settle-function.ts'

/** The length of the sliding minute (contract 5.10). */
const minuteMs = 60_000

/**
 * Decides a batch of admissions in one statement (contract 36.2): every account's row is locked in the order of their ids, then the
 * time is read, so that nodes decide one after another and nobody is back-dated by its wait.
 *
 * Admissions of an account are numbered without gaps, in the order of their times. The size of the sliding minute is
 * thus the difference of two numbers, and costs the same for 10 admissions as for 100,000.
 *
 * The function returns before its commit is durable, but the statement does not: with synchronous replication its answer
 * waits for a standby, too (contract 36.15).
 */
const admit = `create function svc_router_admit_1(batch jsonb, node text)
returns table (out_n bigint, out_denied text, out_now_ms bigint, out_period_id text, out_used bigint,
  out_open bigint, out_oldest_ms bigint, out_key_open bigint, out_key_oldest_ms bigint)
language plpgsql set enable_seqscan = off as $$
declare
  accounts text[];
  now_at timestamptz;
  now_ms bigint;
  period text;
  r record;
  account text;
  at_ms bigint;
  taken bigint;
  key_counts jsonb;
  key_count jsonb;
  done_n bigint[] := '{}';
  done_ms bigint[] := '{}';
  done_number bigint[] := '{}';
begin
  if current_setting('transaction_isolation') <> 'read committed' then
    raise exception 'admissions need the isolation level read committed';
  end if;
  perform set_config('lock_timeout', '${lockTimeout}', true);
  if current_setting('synchronous_commit') = 'off' then
    perform set_config('synchronous_commit', 'on', true);
  end if;
  select array_agg(distinct g.account_id) into accounts from jsonb_to_recordset(batch) as g(account_id text);
  insert into meters (account_id, admitted, last_at_ms)
    select id, 0, 0 from unnest(accounts) as id
    where not exists (select 1 from meters where account_id = id) order by id
    on conflict (account_id) do nothing;
  perform 1 from meters where account_id = any(accounts) order by account_id for update;
  now_at := clock_timestamp();
  now_ms := ceil(extract(epoch from now_at) * 1000);
  period := to_char(now_at at time zone 'UTC', 'YYYY-MM');
  for r in
    with known as materialized (
      select m.account_id, m.admitted, greatest(m.last_at_ms, now_ms) as at_ms, coalesce(u.used, 0) as used,
        f.number, f.admitted_at_ms as oldest_ms
      from meters m
      left join usage u on u.account_id = m.account_id and u.period_id = period
      left join lateral (
        select q.number, q.admitted_at_ms from requests q
        where q.account_id = m.account_id and q.admitted_at_ms > greatest(m.last_at_ms, now_ms) - ${minuteMs}
          and q.number is not null
        order by q.admitted_at_ms, q.number limit 1
      ) f on true
      where m.account_id = any(accounts)
    )
    select g.*, k.admitted, k.at_ms, k.used, coalesce(k.admitted - k.number + 1, 0) as open, k.oldest_ms
    from jsonb_to_recordset(batch) as g(n bigint, account_id text, key_id text, units bigint, per_minute bigint,
      per_month bigint, key_per_minute bigint)
    join known k on k.account_id = g.account_id
    order by g.account_id, g.n
  loop
    if account is distinct from r.account_id then
      account := r.account_id;
      at_ms := r.at_ms;
      taken := r.admitted;
      out_open := r.open;
      out_oldest_ms := r.oldest_ms;
      out_used := r.used;
      key_counts := '{}';
    end if;
    out_n := r.n;
    out_now_ms := at_ms;
    out_period_id := period;
    out_denied := null;
    out_key_open := null;
    out_key_oldest_ms := null;
    if r.key_per_minute is not null then
      key_count := key_counts -> r.key_id;
      if key_count is null then
        select count(*), min(latest.admitted_at_ms) into out_key_open, out_key_oldest_ms from (
          select q.admitted_at_ms from requests q
          where q.account_id = account and q.admitted_at_ms > at_ms - ${minuteMs} and q.key_id = r.key_id
          order by q.admitted_at_ms desc limit r.key_per_minute
        ) latest;
      else
        out_key_open := (key_count ->> 0)::bigint;
        out_key_oldest_ms := (key_count ->> 1)::bigint;
      end if;
    end if;
    if out_open >= r.per_minute or out_key_open >= r.key_per_minute then
      out_denied := 'minute';
      if out_open > r.per_minute then
        -- The limit was lowered: several admissions must leave the window first.
        select min(latest.admitted_at_ms) into out_oldest_ms from (
          select q.admitted_at_ms from requests q
          where q.account_id = account and q.admitted_at_ms > at_ms - ${minuteMs}
          order by q.admitted_at_ms desc limit r.per_minute
        ) latest;
      end if;
    elsif out_used + r.units > r.per_month then
      out_denied := 'month';
    else
      taken := taken + 1;
      out_open := out_open + 1;
      out_oldest_ms := coalesce(out_oldest_ms, at_ms);
      out_used := out_used + r.units;
      if r.key_per_minute is not null then
        out_key_open := out_key_open + 1;
        out_key_oldest_ms := coalesce(out_key_oldest_ms, at_ms);
      end if;
      done_n := done_n || r.n;
      done_ms := done_ms || at_ms;
      done_number := done_number || taken;
    end if;
    if r.key_per_minute is not null then
      key_counts := jsonb_set(key_counts, array[r.key_id], jsonb_build_array(out_key_open, out_key_oldest_ms));
    end if;
    return next;
  end loop;
  if cardinality(done_n) = 0 then
    return;
  end if;
  insert into requests (id, account_id, key_id, profile, format, stream, units, period_id, admitted_at_ms, state,
      charged, due_mark, number, node_id)
    select g.id, g.account_id, g.key_id, g.profile, g.format, g.stream, g.units, period, d.ms, 'open', 0, g.due_mark,
      d.number, node
    from unnest(done_n, done_ms, done_number) as d(n, ms, number)
    join jsonb_to_recordset(batch) as g(n bigint, id text, account_id text, key_id text, profile text, format text,
      stream bigint, units bigint, due_mark bigint) on g.n = d.n;
  update meters m set admitted = d.number, last_at_ms = d.ms from (
      select g.account_id, max(d.number) as number, max(d.ms) as ms
      from unnest(done_n, done_ms, done_number) as d(n, ms, number)
      join jsonb_to_recordset(batch) as g(n bigint, account_id text) on g.n = d.n
      group by g.account_id
    ) d where m.account_id = d.account_id;
  insert into usage as u (account_id, period_id, used)
    select g.account_id, period, sum(g.units)
    from unnest(done_n) as d(n) join jsonb_to_recordset(batch) as g(n bigint, account_id text, units bigint) on g.n = d.n
    group by g.account_id order by g.account_id
    on conflict (account_id, period_id) do update set used = u.used + excluded.used;
end $$`

/** Several nodes on one PostgreSQL database. SQLite has the columns, too, so that data can move between engines. */
export const nodesMigration: Migration = {
  name: '020-nodes',
  statements: [
    `create table nodes (id text primary key, started_at_ms bigint not null, seen_at_ms bigint not null)`,
    `create table meters (account_id text primary key, admitted bigint not null, last_at_ms bigint not null)`,
    `alter table requests add column number bigint`,
    `alter table requests add column node_id text`,
  ],
  own: {
    sqlite: [],
    postgres: [
      `drop index requests_by_account`,
      `create index requests_by_account on requests (account_id, admitted_at_ms, number)`,
      `create index requests_by_node on requests (node_id, id) where node_id is not null`,
      admit,
      createSettle('svc_router_settle_1'),
    ],
  },
}
