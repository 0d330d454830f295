import { lockTimeout, type Migration } from './migration.ts'

/** The length of the sliding minute (contract 5.10). */
const minuteMs = 60_000

/**
 * Decides each request of a batch in all respects before the next one, as `MemoryLedger` does: its budgets, then the
 * minute and the month. What it would hold is taken from its budgets only if all of them admit it. Before, a request that
 * the minute denied took it from later requests of its batch, which were denied although nothing was held.
 *
 * It replaces a function of the same name, with the same arguments and results, so that nodes of earlier versions, which
 * continue to call it, decide in the same way. Its rules for the minute and the month must stay the same as those of
 * `svc_router_admit_1`, which decides batches without claims. Comments on the parts: `svc_router_admit_1` for the minute and the month, `_2` for `expires_ms`, and `_3` for claims.
 */
const admit = `create or replace function svc_router_admit_3(batch jsonb, node text, expires_ms bigint)
returns table (out_n bigint, out_denied text, out_now_ms bigint, out_period_id text, out_used bigint,
  out_open bigint, out_oldest_ms bigint, out_key_open bigint, out_key_oldest_ms bigint,
  out_output bigint, out_budgets jsonb)
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
  counters jsonb := '{}';
  next_counters jsonb;
  granted jsonb := '{}';
  holds jsonb;
  standings jsonb;
  b jsonb;
  c jsonb;
  unit_at int;
  output bigint;
  room bigint;
  base bigint;
  per bigint;
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
      per_month bigint, key_per_minute bigint, claim jsonb)
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
    out_output := null;
    out_budgets := null;
    holds := null;
    if jsonb_typeof(r.claim) = 'object' then
      output := (r.claim ->> 'most')::bigint;
      standings := '[]';
      for b in select value from jsonb_array_elements(r.claim -> 'budgets') loop
        c := counters -> (b ->> 0);
        if c is null then
          c := svc_router_standing_1(b ->> 0, b ->> 1, (b ->> 2)::bigint, now_ms);
          counters := jsonb_set(counters, array[b ->> 0], c);
        end if;
        standings := standings || jsonb_build_array(c);
        unit_at := case b ->> 4 when 'usd' then 0 else 1 end;
        base := (r.claim -> 'base' ->> unit_at)::bigint;
        per := (r.claim -> 'per' ->> unit_at)::bigint;
        room := (b ->> 3)::bigint - (c ->> 1)::bigint - (c ->> 2)::bigint - base;
        if room < 0 then
          output := -1;
        elsif per > 0 then
          output := least(output, room / per);
        end if;
      end loop;
      if output < (r.claim ->> 'least')::bigint then
        out_denied := 'budget';
        out_now_ms := now_ms;
        out_budgets := standings;
        return next;
        continue;
      end if;
      holds := '[]';
      next_counters := counters;
      for b in select value from jsonb_array_elements(r.claim -> 'budgets') loop
        c := counters -> (b ->> 0);
        unit_at := case b ->> 4 when 'usd' then 0 else 1 end;
        base := (r.claim -> 'base' ->> unit_at)::bigint + (r.claim -> 'per' ->> unit_at)::bigint * output;
        next_counters := jsonb_set(next_counters, array[b ->> 0, '2'], to_jsonb((c ->> 2)::bigint + base));
        holds := holds || jsonb_build_array(jsonb_build_object(
          'budgetId', b ->> 0, 'unit', b ->> 4, 'bucketMs', (c ->> 0)::bigint, 'amount', base));
      end loop;
    end if;
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
      if holds is not null then
        out_output := output;
        counters := next_counters;
        granted := jsonb_set(granted, array[r.n::text], holds);
      end if;
    end if;
    if r.key_per_minute is not null then
      key_counts := jsonb_set(key_counts, array[r.key_id], jsonb_build_array(out_key_open, out_key_oldest_ms));
    end if;
    return next;
  end loop;
  if cardinality(done_n) > 0 then
    insert into requests (id, account_id, key_id, profile, format, stream, units, period_id, admitted_at_ms, state,
        charged, due_mark, number, node_id, holds)
      select g.id, g.account_id, g.key_id, g.profile, g.format, g.stream, g.units, period, d.ms, 'open', 0, g.due_mark,
        d.number, node, (granted -> d.n::text)::text
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
    insert into budget_spending as s (budget_id, bucket_ms, account_id, spent, held)
      select h."budgetId", h."bucketMs", min(g.account_id), 0, sum(h.amount)
      from jsonb_to_recordset(batch) as g(n bigint, account_id text)
      cross join jsonb_to_recordset(granted -> g.n::text) as h("budgetId" text, "bucketMs" bigint, amount bigint)
      where granted ? g.n::text
      group by h."budgetId", h."bucketMs" order by h."budgetId", h."bucketMs"
      on conflict (budget_id, bucket_ms) do update set held = s.held + excluded.held;
  end if;
  if extract(epoch from clock_timestamp()) * 1000 > expires_ms then
    raise exception 'the node no longer waits for this batch' using errcode = 'query_canceled';
  end if;
end $$`

/** A request that is not admitted holds nothing of its budgets, not even for the other requests of its batch. */
export const orderedAdmissionsMigration: Migration = {
  name: '035-ordered-admissions',
  worksWith: '021-earlier-versions',
  statements: [],
  own: { sqlite: [], postgres: [admit] },
}
