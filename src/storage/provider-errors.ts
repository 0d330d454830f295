import type { SealedProviderError } from '../domain/provider-error.ts'
import { lowestIdAt } from '../runtime/ids.ts'
import { defineStore } from './define-store.ts'

/** Maximum number of messages read per request. */
const maxOfRequest = 50

/** Providers' error messages, encrypted. */
export interface ProviderErrorStore {
  addProviderErrors(errors: readonly SealedProviderError[]): Promise<void>
  /**
   * The error messages of one owner's backends for one request, in order. `accountId` is null for the operator's
   * backends.
   */
  listProviderErrors(requestId: string, accountId: string | null): Promise<readonly SealedProviderError[]>
  /** Deletes at most `limit` of the oldest messages from before `timeMs` and returns how many. */
  deleteProviderErrorsBefore(timeMs: number, limit: number): Promise<number>
}

/** Stores them on either engine. */
export const providerErrorStore = defineStore<ProviderErrorStore>({
  async addProviderErrors(db, errors) {
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
  },

  async listProviderErrors(db, requestId, accountId) {
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
  },

  async deleteProviderErrorsBefore(db, timeMs, limit) {
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
  },
})
