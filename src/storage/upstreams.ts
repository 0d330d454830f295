import type { UpstreamQueries } from '../accounts/ports.ts'
import type { Upstream } from '../domain/accounts.ts'
import { defineStore } from './define-store.ts'
import { change } from './revision.ts'
import type { UpstreamRow } from './schema/schema.ts'

/** Accounts' own upstreams. */
export const upstreamStore = defineStore<UpstreamQueries>({
  addUpstream(db, upstream, maxUpstreams, record) {
    return change(db, record, async (transaction) => {
      const { count, last } = await transaction
        .selectFrom('upstreams')
        .select((row) => [row.fn.countAll<number>().as('count'), row.fn.max<number | null>('position').as('last')])
        .where('account_id', '=', upstream.accountId)
        .executeTakeFirstOrThrow()
      if (count >= maxUpstreams) return false
      await transaction
        .insertInto('upstreams')
        .values({
          id: upstream.id,
          account_id: upstream.accountId,
          provider: upstream.provider,
          model: upstream.model,
          base_url: upstream.baseUrl,
          format: upstream.format,
          auth_header: upstream.authHeader,
          sealed_credential: upstream.sealedCredential,
          credential_hint: upstream.credentialHint,
          position: (last ?? 0) + 1,
          created_at_ms: Math.floor(upstream.createdAtMs),
          timeouts: writeJson(upstream.timeouts),
          headers: writeJson(upstream.headers),
        })
        .execute()
      return true
    })
  },

  async listUpstreams(db, accountId) {
    const rows = await db
      .selectFrom('upstreams')
      .selectAll()
      .where('account_id', '=', accountId)
      .orderBy('position')
      .execute()
    return rows.map(readUpstream)
  },

  removeUpstream(db, accountId, upstreamId, record) {
    return change(db, record, async (transaction) => {
      const result = await transaction
        .deleteFrom('upstreams')
        .where('id', '=', upstreamId)
        .where('account_id', '=', accountId)
        .executeTakeFirstOrThrow()
      return result.numDeletedRows > 0n
    })
  },
})

function writeJson(value: object | null | undefined): string | null {
  return value === undefined || value === null || Object.keys(value).length === 0 ? null : JSON.stringify(value)
}

function readUpstream(row: UpstreamRow): Upstream {
  return {
    id: row.id,
    accountId: row.account_id,
    provider: row.provider,
    model: row.model,
    baseUrl: row.base_url,
    format: row.format as Upstream['format'],
    authHeader: row.auth_header,
    sealedCredential: row.sealed_credential,
    credentialHint: row.credential_hint,
    position: row.position,
    createdAtMs: row.created_at_ms,
    ...(row.timeouts === null ? {} : { timeouts: JSON.parse(row.timeouts) as NonNullable<Upstream['timeouts']> }),
    ...(row.headers === null ? {} : { headers: JSON.parse(row.headers) as NonNullable<Upstream['headers']> }),
  }
}
