import type { Migration } from './migration.ts'

/** `svc_router_settle_1` with what requests cost. Earlier versions continue to call that one. */
const settle = `create function svc_router_settle_2(batch jsonb) returns void
language plpgsql set enable_seqscan = off as $$
declare
  refunds jsonb;
begin
  perform set_config('lock_timeout', '2s', true);
  perform 1 from requests
    where id in (select g.id from jsonb_to_recordset(batch) as g(id text)) and state in ('open', 'lost')
    order by id for update;
  with ended as (
    update requests q set state = g.state, charged = g.charged, attempts = g.attempts,
      input_tokens = g.input_tokens, output_tokens = g.output_tokens, cached_tokens = g.cached_tokens,
      reasoning_tokens = g.reasoning_tokens, usage_source = g.usage_source, error_code = g.error_code,
      first_content_ms = g.first_content_ms, total_ms = g.total_ms, fusions = g.fusions, passed_by = g.passed_by,
      cache_write_tokens = g.cache_write_tokens, usage_details = g.usage_details, cost = g.cost,
      cost_source = g.cost_source, cache_saved = g.cache_saved, price_version = g.price_version,
      due_mark = null, node_id = null
    from jsonb_to_recordset(batch) as g(id text, state text, charged bigint, attempts text, input_tokens bigint,
      output_tokens bigint, cached_tokens bigint, reasoning_tokens bigint, usage_source text, error_code text,
      first_content_ms bigint, total_ms bigint, fusions text, passed_by text, cache_write_tokens bigint,
      usage_details text, cost bigint, cost_source text, cache_saved bigint, price_version text)
    where q.id = g.id and q.node_id is not null and q.state in ('open', 'lost')
    returning q.account_id, q.period_id, q.units - q.charged as back
  )
  select jsonb_agg(jsonb_build_object('account_id', s.account_id, 'period_id', s.period_id, 'back', s.back)) into refunds
  from (select account_id, period_id, sum(back) as back from ended group by account_id, period_id having sum(back) <> 0) s;
  if refunds is null then
    return;
  end if;
  perform 1 from usage u
    join jsonb_to_recordset(refunds) as g(account_id text, period_id text)
      on u.account_id = g.account_id and u.period_id = g.period_id
    order by u.account_id, u.period_id for update of u;
  update usage u set used = u.used - g.back
    from jsonb_to_recordset(refunds) as g(account_id text, period_id text, back bigint)
    where u.account_id = g.account_id and u.period_id = g.period_id;
end $$`

/** What requests cost (contract 42.8). Of requests that an earlier version ends, it is unknown. */
export const costsMigration: Migration = {
  name: '031-costs',
  worksWith: '021-earlier-versions',
  statements: [
    `alter table requests add column cache_write_tokens bigint`,
    // JSON: what is known of the usage beyond the columns, such as writes by lifetime and the service tier.
    `alter table requests add column usage_details text`,
    // Picodollars.
    `alter table requests add column cost bigint`,
    `alter table requests add column cost_source text`,
    `alter table requests add column cache_saved bigint`,
    `alter table requests add column price_version text`,
  ],
  own: { sqlite: [], postgres: [settle] },
}
