import type { Migration } from './migration.ts'

/**
 * `svc_router_admit_1`, undone if it decides after `expires_ms` of the database's clock: a statement can arrive long
 * after its node refused the requests, because a network or the database was paused, and would then take places of the
 * minute that callers were told to wait for (contract 36.5).
 */
const admit = `create function svc_router_admit_2(batch jsonb, node text, expires_ms bigint)
returns table (out_n bigint, out_denied text, out_now_ms bigint, out_period_id text, out_used bigint,
  out_open bigint, out_oldest_ms bigint, out_key_open bigint, out_key_oldest_ms bigint)
language plpgsql as $$
begin
  return query select * from svc_router_admit_1(batch, node);
  if extract(epoch from clock_timestamp()) * 1000 > expires_ms then
    raise exception 'the node no longer waits for this batch' using errcode = 'query_canceled';
  end if;
end $$`

/** Requests whose callers were already refused are not admitted. Earlier versions continue to call the previous function. */
export const expiringBatchesMigration: Migration = {
  name: '025-expiring-batches',
  worksWith: '021-earlier-versions',
  statements: [],
  own: { sqlite: [], postgres: [admit] },
}
