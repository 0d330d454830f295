import { type Insertable, sql, type Transaction } from 'kysely'
import type { KeyQueries } from '../accounts/ports.ts'
import type { StoredKey } from '../domain/accounts.ts'
import type { KeyLimits } from '../domain/key-limits.ts'
import type { KeyState } from '../domain/keys.ts'
import type { KeyStore } from '../gateway/ports.ts'
import { readAccount } from './accounts.ts'
import { budgetsOf, moveBudgetsToKey } from './budgets.ts'
import { defineStore } from './define-store.ts'
import { change } from './revision.ts'
import type { KeyRow, Tables } from './schema/schema.ts'

/** Which peppers keys are hashed with. */
export interface KeyPepperStore {
  /** Adds the digest under the current pepper to a key that was found under `found`, which stays valid. */
  rehashKey(keyId: string, found: string, current: string, pepperId: string): Promise<void>
  /** How many usable keys are not known to be hashed with this pepper. */
  countKeysWithOtherPeppers(pepperId: string, nowMs: number): Promise<number>
}

/** Keys, and the revision that key caches poll. */
export const keyStore = defineStore<KeyPepperStore & KeyQueries & KeyStore>({
  async find(db, digest) {
    const row = await db
      .selectFrom('keys')
      .innerJoin('accounts', 'accounts.id', 'keys.account_id')
      .selectAll('keys')
      .select([
        'accounts.name as account_name',
        'accounts.plan_id',
        'accounts.suspended',
        'accounts.created_at_ms as account_created_at_ms',
      ])
      .select((row) =>
        row.exists(row.selectFrom('budgets').select('id').whereRef('account_id', '=', 'accounts.id')).as('has_budgets'),
      )
      .where((row) => row.or([row('keys.digest', '=', digest), row('keys.next_digest', '=', digest)]))
      .executeTakeFirst()
    if (row === undefined) return undefined
    const account = readAccount({
      id: row.account_id,
      name: row.account_name,
      plan_id: row.plan_id,
      suspended: row.suspended,
      created_at_ms: row.account_created_at_ms,
    })
    const key = readKey(row)
    // SQLite has no booleans.
    if (Number(row.has_budgets) === 0) return { key, account }
    return { key, account, budgets: await budgetsOf(db, account.id) }
  },

  async revision(db) {
    // Each process asks four times a second: SQL text compiles faster than a query that is built.
    const { rows } = await sql<{ readonly value: number }>`select value from revisions where id = 1`.execute(db)
    return rows[0]!.value
  },

  async rehashKey(db, keyId, found, current, pepperId) {
    // No change of the revision: both digests find the key, so that no cache is wrong.
    await db
      .updateTable('keys')
      .set({ pepper_id: pepperId, ...(found === current ? {} : { digest: found, next_digest: current }) })
      .where('id', '=', keyId)
      .where((row) => row.or([row('digest', '=', found), row('next_digest', '=', found)]))
      .where((row) => row.or([row('pepper_id', 'is', null), row('pepper_id', '<>', pepperId)]))
      .execute()
  },

  async countKeysWithOtherPeppers(db, pepperId, nowMs) {
    const { count } = await db
      .selectFrom('keys')
      .select((row) => row.fn.countAll<number>().as('count'))
      .where('state', '<>', 'revoked')
      .where((row) => row.or([row('ends_at_ms', 'is', null), row('ends_at_ms', '>', Math.floor(nowMs))]))
      .where((row) => row.or([row('pepper_id', 'is', null), row('pepper_id', '<>', pepperId)]))
      .executeTakeFirstOrThrow()
    return count
  },

  addKey(db, key, digest, maxKeys, record) {
    return change(db, record, async (transaction) => {
      const { count } = await transaction
        .selectFrom('keys')
        .select((row) => row.fn.countAll<number>().as('count'))
        .where('account_id', '=', key.accountId)
        .where('state', '<>', 'revoked')
        // A retiring key after its end time is effectively revoked.
        .where((row) => row.or([row('state', '<>', 'retiring'), row('ends_at_ms', '>', Math.floor(key.createdAtMs))]))
        .executeTakeFirstOrThrow()
      if (count >= maxKeys) return false
      await insertKey(transaction, { ...keyRow(key, digest), ...limitColumns(key.limits) })
      return true
    })
  },

  async findKey(db, keyId) {
    const row = await db.selectFrom('keys').selectAll().where('id', '=', keyId).executeTakeFirst()
    return row === undefined ? undefined : readKey(row)
  },

  async findKeyByDigest(db, digest) {
    const row = await db
      .selectFrom('keys')
      .selectAll()
      .where((row) => row.or([row('digest', '=', digest), row('next_digest', '=', digest)]))
      .executeTakeFirst()
    return row === undefined ? undefined : readKey(row)
  },

  async listKeys(db, accountId, limit) {
    const rows = await db
      .selectFrom('keys')
      .selectAll()
      .where('account_id', '=', accountId)
      .orderBy('created_at_ms', 'desc')
      .orderBy('id', 'desc')
      .limit(limit)
      .execute()
    return rows.map(readKey)
  },

  rotateKey(db, { oldKeyId, nowMs, endsAtMs, next, nextDigest }, record) {
    return change(db, record, async (transaction) => {
      const old = await transaction
        .selectFrom('keys')
        .select(['ends_at_ms', 'profiles', 'per_minute', 'addresses'])
        .where('id', '=', oldKeyId)
        .where('account_id', '=', next.accountId)
        .where('state', '=', 'active')
        .where((row) => row.or([row('ends_at_ms', 'is', null), row('ends_at_ms', '>', Math.floor(nowMs))]))
        .executeTakeFirst()
      if (old === undefined) return false
      const ended = endsAtMs <= nowMs
      await transaction
        .updateTable('keys')
        .set({
          state: ended ? 'revoked' : 'retiring',
          // The overlap must not extend a key that expires sooner.
          ends_at_ms: Math.floor(Math.min(endsAtMs, old.ends_at_ms ?? endsAtMs)),
          revoked_at_ms: ended ? Math.floor(nowMs) : null,
        })
        .where('id', '=', oldKeyId)
        .execute()
      const { ends_at_ms: _, ...limits } = old
      await insertKey(transaction, { ...keyRow(next, nextDigest), ...limits })
      await moveBudgetsToKey(transaction, oldKeyId, next)
      return true
    })
  },

  limitKey(db, keyId, limits, nowMs, record) {
    return change(db, record, async (transaction) => {
      const result = await transaction
        .updateTable('keys')
        .set(limitColumns(limits))
        .where('id', '=', keyId)
        .where('state', '<>', 'revoked')
        .where((row) => row.or([row('state', '<>', 'retiring'), row('ends_at_ms', '>', Math.floor(nowMs))]))
        .executeTakeFirstOrThrow()
      return result.numUpdatedRows > 0n
    })
  },

  revokeKey(db, keyId, nowMs, record) {
    return change(db, record, async (transaction) => {
      const result = await transaction
        .updateTable('keys')
        .set({ state: 'revoked', revoked_at_ms: Math.floor(nowMs) })
        .where('id', '=', keyId)
        .where('state', '<>', 'revoked')
        .executeTakeFirstOrThrow()
      return result.numUpdatedRows > 0n
    })
  },
})

async function insertKey(transaction: Transaction<Tables>, row: Insertable<KeyRow>): Promise<void> {
  await transaction.insertInto('keys').values(row).execute()
}

function keyRow(key: StoredKey, digest: string) {
  return {
    id: key.id,
    account_id: key.accountId,
    name: key.name,
    hint: key.hint,
    digest,
    state: key.state,
    ends_at_ms: key.endsAtMs === null ? null : Math.floor(key.endsAtMs),
    created_at_ms: Math.floor(key.createdAtMs),
    revoked_at_ms: key.revokedAtMs === null ? null : Math.floor(key.revokedAtMs),
  }
}

function limitColumns({ profiles, perMinute, addresses }: KeyLimits) {
  const list = (entries: readonly string[] | null): string | null => (entries === null ? null : JSON.stringify(entries))
  return { profiles: list(profiles), per_minute: perMinute, addresses: list(addresses) }
}

function readList(text: string | null): readonly string[] | null {
  return text === null ? null : (JSON.parse(text) as readonly string[])
}

export function readKey(row: KeyRow): StoredKey {
  return {
    id: row.id,
    accountId: row.account_id,
    name: row.name,
    hint: row.hint,
    state: row.state as KeyState,
    endsAtMs: row.ends_at_ms,
    createdAtMs: row.created_at_ms,
    revokedAtMs: row.revoked_at_ms,
    limits: { profiles: readList(row.profiles), perMinute: row.per_minute, addresses: readList(row.addresses) },
  }
}
