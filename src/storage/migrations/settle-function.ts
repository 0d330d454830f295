import { lockTimeout } from './migration.ts'

/** Columns of requests that a later version added: what they are set to, and their types. */
interface MoreColumns {
  readonly values: string
  readonly types: string
}

/**
 * Creates a function that ends a batch of requests and refunds the units that they did not use. Safe to repeat: a request
 * ends once. Rows are locked in the order of their keys, requests before usage.
 */
export function createSettle(name: string, more: MoreColumns = { values: '', types: '' }): string {
  return `create function ${name}(batch jsonb) returns void
language plpgsql set enable_seqscan = off as $$
declare
  refunds jsonb;
begin
  perform set_config('lock_timeout', '${lockTimeout}', true);
  perform 1 from requests
    where id in (select g.id from jsonb_to_recordset(batch) as g(id text)) and state in ('open', 'lost')
    order by id for update;
  with ended as (
    update requests q set state = g.state, charged = g.charged, attempts = g.attempts,
      input_tokens = g.input_tokens, output_tokens = g.output_tokens, cached_tokens = g.cached_tokens,
      reasoning_tokens = g.reasoning_tokens, usage_source = g.usage_source, error_code = g.error_code,
      first_content_ms = g.first_content_ms, total_ms = g.total_ms, fusions = g.fusions, passed_by = g.passed_by,${more.values}
      due_mark = null, node_id = null
    from jsonb_to_recordset(batch) as g(id text, state text, charged bigint, attempts text, input_tokens bigint,
      output_tokens bigint, cached_tokens bigint, reasoning_tokens bigint, usage_source text, error_code text,
      first_content_ms bigint, total_ms bigint, fusions text, passed_by text${more.types})
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
}
