import { lockTimeout } from './migration.ts'

const hourMs = 3_600_000
const dayMs = 24 * hourMs
/** `rollingWindows` when this was written: a new window needs a new version of the function in a new migration. */
const lengths = `case kind when '5h' then ${5 * hourMs} when 'day' then ${dayMs} when 'week' then ${7 * dayMs} when 'month' then ${30 * dayMs} end`
const bucketLengths = `case kind when '5h' then 300000 when 'day' then ${hourMs} when 'week' then ${hourMs} when 'month' then ${6 * hourMs} end`

/** The same as `bucketsAt`. */
const buckets = `create function svc_router_buckets_1(kind text, rolling bigint, at_ms bigint,
  out current_ms bigint, out first_ms bigint)
language plpgsql immutable as $$
begin
  if rolling = 0 then
    current_ms := case kind
      when '5h' then at_ms - at_ms % ${5 * hourMs}
      when 'day' then at_ms - at_ms % ${dayMs}
      when 'week' then at_ms - (at_ms + ${3 * dayMs}) % ${7 * dayMs}
      else (extract(epoch from date_trunc('month', to_timestamp(at_ms / 1000.0) at time zone 'UTC')) * 1000)::bigint
    end;
    first_ms := current_ms;
  else
    current_ms := at_ms - at_ms % ${bucketLengths};
    first_ms := at_ms - ${lengths};
    first_ms := first_ms - first_ms % ${bucketLengths};
  end if;
end $$`

/** The same as `BudgetMeter.standing`, as `[current_ms, spent, held, oldest_ms]`. */
const standing = `create function svc_router_standing_1(budget text, kind text, rolling bigint, at_ms bigint)
returns jsonb language sql stable as $$
  select jsonb_build_array(w.current_ms, coalesce(sum(s.spent), 0)::bigint, coalesce(sum(s.held), 0)::bigint, min(s.bucket_ms))
  from svc_router_buckets_1(kind, rolling, at_ms) w
  left join budget_spending s on s.budget_id = budget and (s.spent <> 0 or s.held <> 0)
    and case when rolling = 0 then s.bucket_ms = w.current_ms else s.bucket_ms >= w.first_ms end
  group by w.current_ms
$$`

/**
 * `svc_router_admit_2` for a batch with claims of budgets (contract 46.3): the accounts are locked first, so that nobody
 * else takes anything from their budgets until this is committed. A settlement may change counters meanwhile, but takes
 * nothing that was not held. A claim is `{budgets: [[id, kind, rolling, limit, unit], …], base: [nanodollars, tokens], per,
 * least, most}`. What is taken is written only for requests that the minute and the month admit. A later migration
 * replaces it (`ordered-admissions.ts`).
 */
const admit = `create function svc_router_admit_3(batch jsonb, node text, expires_ms bigint)
returns table (out_n bigint, out_denied text, out_now_ms bigint, out_period_id text, out_used bigint,
  out_open bigint, out_oldest_ms bigint, out_key_open bigint, out_key_oldest_ms bigint,
  out_output bigint, out_budgets jsonb)
language plpgsql set enable_seqscan = off as $$
declare
  accounts text[];
  now_ms bigint;
  counters jsonb := '{}';
  granted jsonb := '{}';
  denied bigint[] := '{}';
  rest jsonb;
  r record;
  b jsonb;
  c jsonb;
  unit_at int;
  output bigint;
  least_output bigint;
  room bigint;
  base bigint;
  per bigint;
  holds jsonb;
begin
  if current_setting('transaction_isolation') <> 'read committed' then
    raise exception 'admissions need the isolation level read committed';
  end if;
  perform set_config('lock_timeout', '${lockTimeout}', true);
  select array_agg(distinct g.account_id) into accounts from jsonb_to_recordset(batch) as g(account_id text);
  insert into meters (account_id, admitted, last_at_ms)
    select id, 0, 0 from unnest(accounts) as id
    where not exists (select 1 from meters where account_id = id) order by id
    on conflict (account_id) do nothing;
  perform 1 from meters where account_id = any(accounts) order by account_id for update;
  now_ms := ceil(extract(epoch from clock_timestamp()) * 1000);
  for r in
    select g.n, g.claim from jsonb_to_recordset(batch) as g(n bigint, account_id text, claim jsonb)
    where jsonb_typeof(g.claim) = 'object' order by g.account_id, g.n
  loop
    output := (r.claim ->> 'most')::bigint;
    least_output := (r.claim ->> 'least')::bigint;
    out_budgets := '[]';
    for b in select value from jsonb_array_elements(r.claim -> 'budgets') loop
      c := counters -> (b ->> 0);
      if c is null then
        c := svc_router_standing_1(b ->> 0, b ->> 1, (b ->> 2)::bigint, now_ms);
        counters := jsonb_set(counters, array[b ->> 0], c);
      end if;
      out_budgets := out_budgets || jsonb_build_array(c);
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
    if output < least_output then
      denied := denied || r.n;
      out_n := r.n;
      out_denied := 'budget';
      out_now_ms := now_ms;
      out_used := 0;
      out_open := 0;
      return next;
    else
      holds := '[]';
      for b in select value from jsonb_array_elements(r.claim -> 'budgets') loop
        c := counters -> (b ->> 0);
        unit_at := case b ->> 4 when 'usd' then 0 else 1 end;
        base := (r.claim -> 'base' ->> unit_at)::bigint + (r.claim -> 'per' ->> unit_at)::bigint * output;
        counters := jsonb_set(counters, array[b ->> 0, '2'], to_jsonb((c ->> 2)::bigint + base));
        holds := holds || jsonb_build_array(jsonb_build_object(
          'budgetId', b ->> 0, 'unit', b ->> 4, 'bucketMs', (c ->> 0)::bigint, 'amount', base));
      end loop;
      granted := jsonb_set(granted, array[r.n::text], jsonb_build_object('output', output, 'holds', holds));
    end if;
  end loop;
  select jsonb_agg(e order by (e ->> 'n')::bigint) into rest
    from jsonb_array_elements(batch) e where (e ->> 'n')::bigint <> all(denied);
  if rest is null then
    return;
  end if;
  out_budgets := null;
  for r in select * from svc_router_admit_2(rest, node, expires_ms) loop
    out_n := r.out_n;
    out_denied := r.out_denied;
    out_now_ms := r.out_now_ms;
    out_period_id := r.out_period_id;
    out_used := r.out_used;
    out_open := r.out_open;
    out_oldest_ms := r.out_oldest_ms;
    out_key_open := r.out_key_open;
    out_key_oldest_ms := r.out_key_oldest_ms;
    out_output := (granted -> r.out_n::text ->> 'output')::bigint;
    if r.out_denied is not null then
      granted := granted - r.out_n::text;
    end if;
    return next;
  end loop;
  if granted = '{}' then
    return;
  end if;
  update requests q set holds = (granted -> g.n::text -> 'holds')::text
    from jsonb_to_recordset(batch) as g(n bigint, id text)
    where q.id = g.id and granted ? g.n::text;
  insert into budget_spending as s (budget_id, bucket_ms, account_id, spent, held)
    select h."budgetId", h."bucketMs", min(g.account_id), 0, sum(h.amount)
    from jsonb_to_recordset(batch) as g(n bigint, account_id text)
    cross join jsonb_to_recordset(granted -> g.n::text -> 'holds') as h("budgetId" text, "bucketMs" bigint, amount bigint)
    where granted ? g.n::text
    group by h."budgetId", h."bucketMs" order by h."budgetId", h."bucketMs"
    on conflict (budget_id, bucket_ms) do update set held = s.held + excluded.held;
end $$`

/**
 * Takes more for a running request, in the buckets that it already holds. False, with nothing taken, if a budget does not
 * allow it, or if the request holds nothing any more.
 */
const holdMore = `create function svc_router_hold_more_1(request text, account text, budgets jsonb, nano_usd bigint, tokens bigint)
returns boolean language plpgsql set enable_seqscan = off as $$
declare
  mine jsonb;
  now_ms bigint;
  b jsonb;
  h jsonb;
  c jsonb;
  more bigint;
  result jsonb := '[]';
begin
  perform set_config('lock_timeout', '${lockTimeout}', true);
  perform 1 from meters where account_id = account for update;
  select q.holds::jsonb into mine from requests q where q.id = request and q.holds is not null for update;
  if mine is null then
    return false;
  end if;
  now_ms := ceil(extract(epoch from clock_timestamp()) * 1000);
  for h in select value from jsonb_array_elements(mine) loop
    select value into b from jsonb_array_elements(budgets) where value ->> 0 = h ->> 'budgetId';
    more := case h ->> 'unit' when 'usd' then nano_usd else tokens end;
    if b is not null then
      c := svc_router_standing_1(b ->> 0, b ->> 1, (b ->> 2)::bigint,
        case when (b ->> 2)::bigint = 0 then (h ->> 'bucketMs')::bigint else now_ms end);
      if (c ->> 1)::bigint + (c ->> 2)::bigint + more > (b ->> 3)::bigint then
        return false;
      end if;
    end if;
    result := result || jsonb_build_array(jsonb_set(h, '{amount}', to_jsonb((h ->> 'amount')::bigint + more)));
  end loop;
  update requests q set holds = result::text where q.id = request;
  update budget_spending s set held = s.held + case e.value ->> 'unit' when 'usd' then nano_usd else tokens end
    from jsonb_array_elements(mine) e
    where s.budget_id = e.value ->> 'budgetId' and s.bucket_ms = (e.value ->> 'bucketMs')::bigint;
  return true;
end $$`

/**
 * Ends what requests hold, and books what they spent: `[{id, nano_usd, tokens}]`, null if it is unknown. Safe to repeat: what
 * was booked before is replaced. Locks requests before budgets, each in the order of its key.
 */
const book = `create function svc_router_book_1(batch jsonb) returns void
language plpgsql set enable_seqscan = off as $$
declare
  changes jsonb;
begin
  perform set_config('lock_timeout', '${lockTimeout}', true);
  perform 1 from requests
    where id in (select g.id from jsonb_to_recordset(batch) as g(id text)) and (holds is not null or booked is not null)
    order by id for update;
  with entries as (
    select q.id, q.account_id, e.value ->> 'budgetId' as budget_id, e.value ->> 'unit' as unit,
      (e.value ->> 'bucketMs')::bigint as bucket_ms,
      case when q.holds is null then 0 else (e.value ->> 'amount')::bigint end as held,
      case when q.holds is null then (e.value ->> 'spent')::bigint else 0 end as was,
      coalesce(case e.value ->> 'unit' when 'usd' then g.nano_usd else g.tokens end,
        (e.value ->> case when q.holds is null then 'spent' else 'amount' end)::bigint) as spent
    from jsonb_to_recordset(batch) as g(id text, nano_usd bigint, tokens bigint)
    join requests q on q.id = g.id
    cross join jsonb_array_elements(coalesce(q.holds, q.booked)::jsonb) e
    where q.holds is not null or q.booked is not null
  ), written as (
    update requests q set holds = null, booked = (
      select jsonb_agg(jsonb_build_object('budgetId', e.budget_id, 'unit', e.unit, 'bucketMs', e.bucket_ms, 'spent', e.spent)
        order by e.budget_id) from entries e where e.id = q.id)::text
    where q.id in (select e.id from entries e)
  )
  select jsonb_agg(s) into changes from (
    select budget_id, bucket_ms, min(account_id) as account_id, sum(spent - was) as spent, sum(held) as held
    from entries group by budget_id, bucket_ms having sum(spent - was) <> 0 or sum(held) <> 0
  ) s;
  if changes is null then
    return;
  end if;
  insert into budget_spending as s (budget_id, bucket_ms, account_id, spent, held)
    select g.budget_id, g.bucket_ms, g.account_id, g.spent, -g.held
    from jsonb_to_recordset(changes) as g(budget_id text, bucket_ms bigint, account_id text, spent bigint, held bigint)
    order by g.budget_id, g.bucket_ms
    on conflict (budget_id, bucket_ms) do update set spent = s.spent + excluded.spent, held = s.held + excluded.held;
end $$`

/** What PostgreSQL decides of budgets. */
export const budgetFunctions: readonly string[] = [buckets, standing, admit, holdMore, book]
