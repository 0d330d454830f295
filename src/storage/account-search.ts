import { type Kysely, sql } from 'kysely'
import type { AccountSelection } from '../accounts/operator-ports.ts'
import type { Account } from '../domain/accounts.ts'
import { readAccount } from './accounts.ts'
import type { Tables } from './schema.ts'

/** Accounts, newest first; see `AccountSearchStore.searchAccounts`. */
export async function searchAccounts(
  db: Kysely<Tables>,
  { name, beforeId, limit, among }: AccountSelection,
): Promise<readonly Account[]> {
  let latest = db.selectFrom('accounts').selectAll()
  if (beforeId !== undefined)
    latest = latest.where(
      sql<boolean>`(created_at_ms, id) < (select created_at_ms, id from accounts where id = ${beforeId})`,
    )
  let query = db
    .selectFrom(latest.orderBy('created_at_ms', 'desc').orderBy('id', 'desc').limit(among).as('latest'))
    .selectAll()
  if (name !== undefined) {
    const pattern = `%${name.toLowerCase().replaceAll(/[\\%_]/g, String.raw`\$&`)}%`
    query = query.where(sql<boolean>`lower(name) like ${pattern} escape '\\'`)
  }
  const rows = await query.orderBy('created_at_ms', 'desc').orderBy('id', 'desc').limit(limit).execute()
  return rows.map(readAccount)
}
