import type { PasskeyQueries } from '../accounts/ports.ts'
import type { Passkey } from '../domain/identity.ts'
import { defineStore } from './define-store.ts'
import { change } from './revision.ts'
import type { PasskeyRow } from './schema/schema-identity.ts'

/** Passkeys, and the challenges that were used. */
export const passkeyStore = defineStore<PasskeyQueries>({
  addPasskey(db, passkey, maxPasskeys, record) {
    return change(db, record, async (transaction) => {
      const { count } = await transaction
        .selectFrom('passkeys')
        .select((row) => row.fn.countAll<number>().as('count'))
        .where('account_id', '=', passkey.accountId)
        .executeTakeFirstOrThrow()
      if (count >= maxPasskeys) return false
      const result = await transaction
        .insertInto('passkeys')
        .values({
          id: passkey.id,
          account_id: passkey.accountId,
          name: passkey.name,
          public_key: passkey.publicKey,
          counter: passkey.counter,
          transports: JSON.stringify(passkey.transports),
          created_at_ms: Math.floor(passkey.createdAtMs),
          last_used_at_ms: null,
        })
        .onConflict((conflict) => conflict.column('id').doNothing())
        .executeTakeFirstOrThrow()
      return (result.numInsertedOrUpdatedRows ?? 0n) > 0n
    })
  },

  async findPasskey(db, passkeyId) {
    const row = await db.selectFrom('passkeys').selectAll().where('id', '=', passkeyId).executeTakeFirst()
    return row === undefined ? undefined : readPasskey(row)
  },

  async listPasskeys(db, accountId) {
    const rows = await db
      .selectFrom('passkeys')
      .selectAll()
      .where('account_id', '=', accountId)
      .orderBy('created_at_ms')
      .orderBy('id')
      .execute()
    return rows.map(readPasskey)
  },

  async usePasskey(db, passkeyId, counter, nowMs) {
    await db
      .updateTable('passkeys')
      .set({ counter, last_used_at_ms: Math.floor(nowMs) })
      .where('id', '=', passkeyId)
      .execute()
  },

  removePasskey(db, accountId, passkeyId, record) {
    return change(db, record, async (transaction) => {
      const result = await transaction
        .deleteFrom('passkeys')
        .where('account_id', '=', accountId)
        .where('id', '=', passkeyId)
        .executeTakeFirstOrThrow()
      return result.numDeletedRows > 0n
    })
  },

  async useChallenge(db, digest, expiresAtMs, nowMs) {
    await db.deleteFrom('used_challenges').where('expires_at_ms', '<=', Math.floor(nowMs)).execute()
    const result = await db
      .insertInto('used_challenges')
      .values({ digest, expires_at_ms: Math.floor(expiresAtMs) })
      .onConflict((conflict) => conflict.column('digest').doNothing())
      .executeTakeFirstOrThrow()
    return (result.numInsertedOrUpdatedRows ?? 0n) > 0n
  },
})

function readPasskey(row: PasskeyRow): Passkey {
  return {
    id: row.id,
    accountId: row.account_id,
    name: row.name,
    publicKey: row.public_key,
    counter: row.counter,
    transports: JSON.parse(row.transports) as string[],
    createdAtMs: row.created_at_ms,
    lastUsedAtMs: row.last_used_at_ms,
  }
}
