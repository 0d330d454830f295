import { type Kysely, sql } from 'kysely'
import type { Tables } from '../schema/schema.ts'

/**
 * How many accounts' months count fewer units than their records charged. Zero in a sound ledger: a unit is counted in
 * the transaction that charges it, and only records expire.
 */
export async function countUncounted(db: Kysely<Tables>): Promise<number> {
  const charged = db
    .selectFrom('requests')
    .select(['account_id', 'period_id', (row) => row.fn.sum<number>('charged').as('units')])
    .groupBy(['account_id', 'period_id'])
  const { count } = await db
    .selectFrom(charged.as('charged'))
    .leftJoin('usage', (join) =>
      join.onRef('usage.account_id', '=', 'charged.account_id').onRef('usage.period_id', '=', 'charged.period_id'),
    )
    .select((row) => row.fn.countAll<number>().as('count'))
    .where('charged.units', '>', sql<number>`coalesce(usage.used, 0)`)
    .executeTakeFirstOrThrow()
  return count
}
