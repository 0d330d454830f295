import type { AdminTokenStore } from '../accounts/admin/admin-ports.ts'
import type { AdminScope, AdminToken } from '../domain/admin-tokens.ts'
import { defineStore } from './define-store.ts'
import { change } from './revision.ts'
import type { AdminTokenRow } from './schema/schema-identity.ts'

/** Tokens of the admin API. */
export const adminTokenStore = defineStore<AdminTokenStore>({
  addAdminToken(db, token, digest, maxTokens, record) {
    return change(db, record, async (transaction) => {
      const { count } = await transaction
        .selectFrom('admin_tokens')
        .select((row) => row.fn.countAll<number>().as('count'))
        .where('revoked_at_ms', 'is', null)
        .where('expires_at_ms', '>', token.createdAtMs)
        .executeTakeFirstOrThrow()
      if (count >= maxTokens) return false
      await transaction
        .insertInto('admin_tokens')
        .values({
          id: token.id,
          digest,
          hint: token.hint,
          name: token.name,
          scope: token.scope,
          operator_id: token.operatorId,
          created_at_ms: token.createdAtMs,
          expires_at_ms: token.expiresAtMs,
          last_used_at_ms: token.lastUsedAtMs,
          revoked_at_ms: token.revokedAtMs,
        })
        .execute()
      return true
    })
  },

  async listAdminTokens(db, limit) {
    const rows = await db
      .selectFrom('admin_tokens')
      .selectAll()
      .orderBy('created_at_ms', 'desc')
      .orderBy('id', 'desc')
      .limit(limit)
      .execute()
    return rows.map(readToken)
  },

  async findAdminToken(db, digest) {
    const row = await db.selectFrom('admin_tokens').selectAll().where('digest', '=', digest).executeTakeFirst()
    return row === undefined ? undefined : readToken(row)
  },

  revokeAdminToken(db, id, atMs, record) {
    return change(db, record, async (transaction) => {
      const { numUpdatedRows } = await transaction
        .updateTable('admin_tokens')
        .set({ revoked_at_ms: Math.floor(atMs) })
        .where('id', '=', id)
        .where('revoked_at_ms', 'is', null)
        .executeTakeFirstOrThrow()
      return numUpdatedRows > 0n
    })
  },

  /** The revision stays the same: nothing that is cached changes. */
  async touchAdminToken(db, id, atMs) {
    await db
      .updateTable('admin_tokens')
      .set({ last_used_at_ms: Math.floor(atMs) })
      .where('id', '=', id)
      .execute()
  },
})

function readToken(row: AdminTokenRow): AdminToken {
  return {
    id: row.id,
    name: row.name,
    hint: row.hint,
    scope: row.scope as AdminScope,
    operatorId: row.operator_id,
    createdAtMs: row.created_at_ms,
    expiresAtMs: row.expires_at_ms,
    lastUsedAtMs: row.last_used_at_ms,
    revokedAtMs: row.revoked_at_ms,
  }
}
