import type { Kysely } from 'kysely'
import { lowestIdAt } from '../runtime/ids.ts'
import type { SealedProviderError } from '../domain/provider-error.ts'
import type { Tables } from './schema/schema.ts'

/** Most messages read per request. */
const maxOfRequest = 50

/** Stores backends' error messages. */
export async function addProviderErrors(db: Kysely<Tables>, errors: readonly SealedProviderError[]): Promise<void> {
  if (errors.length === 0) return
  const rows = errors.map(({ id, requestId, backend, accountId, atMs, sealed }) => ({
    id,
    request_id: requestId,
    backend,
    account_id: accountId,
    at_ms: atMs,
    sealed,
  }))
  await db.insertInto('provider_errors').values(rows).execute()
}

/**
 * The error messages of one owner's backends for one request, in order. `accountId` is null for the operator's
 * backends.
 */
export async function listProviderErrors(
  db: Kysely<Tables>,
  requestId: string,
  accountId: string | null,
): Promise<readonly SealedProviderError[]> {
  const rows = await db
    .selectFrom('provider_errors')
    .selectAll()
    .where('request_id', '=', requestId)
    .where('account_id', accountId === null ? 'is' : '=', accountId)
    .orderBy('id')
    .limit(maxOfRequest)
    .execute()
  return rows.map((row) => ({
    id: row.id,
    requestId: row.request_id,
    backend: row.backend,
    accountId: row.account_id,
    atMs: row.at_ms,
    sealed: row.sealed,
  }))
}

/** Deletes at most `limit` of the oldest messages from before `timeMs` and returns how many. */
export async function deleteProviderErrorsBefore(db: Kysely<Tables>, timeMs: number, limit: number): Promise<number> {
  const result = await db
    .deleteFrom('provider_errors')
    .where('id', 'in', (inner) =>
      inner
        .selectFrom('provider_errors')
        .select('id')
        .where('id', '<', lowestIdAt('per_', timeMs))
        .orderBy('id')
        .limit(limit),
    )
    .executeTakeFirstOrThrow()
  return Number(result.numDeletedRows)
}
