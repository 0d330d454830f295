import type { Kysely } from 'kysely'
import type { AuditRecord } from '../domain/audit.ts'
import type { Passkey } from '../domain/identity.ts'
import { change } from './revision.ts'
import type { PasskeyRow } from './schema/schema-identity.ts'
import type { Tables } from './schema/schema.ts'

/** Adds a passkey; false if it is already registered or the account has `maxPasskeys`. */
export function addPasskey(
  db: Kysely<Tables>,
  passkey: Passkey,
  maxPasskeys: number,
  record: AuditRecord,
): Promise<boolean> {
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
}

/** The passkey with that id, whichever account it belongs to. */
export async function findPasskey(db: Kysely<Tables>, passkeyId: string): Promise<Passkey | undefined> {
  const row = await db.selectFrom('passkeys').selectAll().where('id', '=', passkeyId).executeTakeFirst()
  return row === undefined ? undefined : readPasskey(row)
}

/** An account's passkeys; their number is bounded by `addPasskey`. */
export async function listPasskeys(db: Kysely<Tables>, accountId: string): Promise<readonly Passkey[]> {
  const rows = await db
    .selectFrom('passkeys')
    .selectAll()
    .where('account_id', '=', accountId)
    .orderBy('created_at_ms')
    .orderBy('id')
    .execute()
  return rows.map(readPasskey)
}

/** Records the use of a passkey and its signature counter. */
export async function usePasskey(db: Kysely<Tables>, passkeyId: string, counter: number, nowMs: number): Promise<void> {
  await db
    .updateTable('passkeys')
    .set({ counter, last_used_at_ms: Math.floor(nowMs) })
    .where('id', '=', passkeyId)
    .execute()
}

/** Removes a passkey from an account; false if the account has none with that id. */
export function removePasskey(
  db: Kysely<Tables>,
  accountId: string,
  passkeyId: string,
  record: AuditRecord,
): Promise<boolean> {
  return change(db, record, async (transaction) => {
    const result = await transaction
      .deleteFrom('passkeys')
      .where('account_id', '=', accountId)
      .where('id', '=', passkeyId)
      .executeTakeFirstOrThrow()
    return result.numDeletedRows > 0n
  })
}

/** Consumes a challenge; see `IdentityStore.useChallenge`. */
export async function useChallenge(
  db: Kysely<Tables>,
  digest: string,
  expiresAtMs: number,
  nowMs: number,
): Promise<boolean> {
  await db.deleteFrom('used_challenges').where('expires_at_ms', '<=', Math.floor(nowMs)).execute()
  const result = await db
    .insertInto('used_challenges')
    .values({ digest, expires_at_ms: Math.floor(expiresAtMs) })
    .onConflict((conflict) => conflict.column('digest').doNothing())
    .executeTakeFirstOrThrow()
  return (result.numInsertedOrUpdatedRows ?? 0n) > 0n
}

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
