import type { Migration } from './migration.ts'
import { createSettle } from './settle-function.ts'

/** What requests cost. */
export const costColumns = {
  values: `
      cache_write_tokens = g.cache_write_tokens, usage_details = g.usage_details, cost = g.cost,
      cost_source = g.cost_source, cache_saved = g.cache_saved, price_version = g.price_version,`,
  types: `, cache_write_tokens bigint,
      usage_details text, cost bigint, cost_source text, cache_saved bigint, price_version text`,
}
/** `svc_router_settle_1` with what requests cost. Earlier versions continue to call that one. */
const settle = createSettle('svc_router_settle_2', costColumns)

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
