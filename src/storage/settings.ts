import type { Kysely } from 'kysely'
import type { DeclaredMarks, DeclaredQueries } from '../accounts/declared/declared-ports.ts'
import { settingKinds, type SettingKind } from '../domain/declared.ts'
import { objectOf } from '../domain/json.ts'
import { defineStore } from './define-store.ts'
import { readKey } from './keys.ts'
import { change } from './revision.ts'
import type { Tables } from './schema/schema.ts'

/** Maximum number of rows read: far more than the bounds of declarations allow. */
const maxSettings = 2_000
const maxMarks = 1_100_000
/** Rows per statement. */
const markedRows = 500

/** Declared settings, and which accounts and keys a file declares. */
export const settingStore = defineStore<DeclaredQueries>({
  async listSettings(db) {
    const rows = await db
      .selectFrom('settings')
      .selectAll()
      .where('kind', 'in', settingKinds)
      .orderBy('kind')
      .orderBy('name')
      .limit(maxSettings)
      .execute()
    return rows.map(({ kind, name, value, managed }) => ({
      kind: kind as SettingKind,
      name,
      value: objectOf(JSON.parse(value)),
      managed: managed !== 0,
    }))
  },

  putSetting(db, { kind, name, value, managed }, records) {
    return change(db, records, async (transaction) => {
      const row = { value: JSON.stringify(value), managed: managed ? 1 : 0 }
      await transaction
        .insertInto('settings')
        .values({ kind, name, ...row })
        .onConflict((conflict) => conflict.columns(['kind', 'name']).doUpdateSet(row))
        .execute()
      return true
    })
  },

  deleteSetting(db, kind, name, record) {
    return change(db, record, async (transaction) => {
      const { numDeletedRows } = await transaction
        .deleteFrom('settings')
        .where('kind', '=', kind)
        .where('name', '=', name)
        .executeTakeFirstOrThrow()
      return numDeletedRows > 0n
    })
  },

  async listWorkingKeys(db, nowMs, limit) {
    const rows = await db
      .selectFrom('keys')
      .selectAll()
      .where('state', '=', 'active')
      .where((row) => row.or([row('ends_at_ms', 'is', null), row('ends_at_ms', '>', Math.floor(nowMs))]))
      .orderBy('account_id')
      .orderBy('id')
      .limit(limit)
      .execute()
    return rows.map(readKey)
  },

  async listDeclared(db) {
    const rows = await db.selectFrom('declared').selectAll().limit(maxMarks).execute()
    return rows.map(({ account_id: accountId, key_name: keyName }) => ({ accountId, keyName }))
  },

  async markDeclared(db, marks) {
    if (db.isTransaction) await mark(db, marks)
    else await db.transaction().execute((transaction) => mark(transaction, marks))
  },

  async unmarkKey(db, accountId, keyName) {
    await db.deleteFrom('declared').where('account_id', '=', accountId).where('key_name', '=', keyName).execute()
  },
})

async function mark(db: Kysely<Tables>, { settings, objects }: DeclaredMarks): Promise<void> {
  for (const { kind, name } of settings)
    await db.updateTable('settings').set({ managed: 1 }).where('kind', '=', kind).where('name', '=', name).execute()
  const rows = objects.map(({ accountId, keyName }) => ({ account_id: accountId, key_name: keyName }))
  for (let start = 0; start < rows.length; start += markedRows)
    await db
      .insertInto('declared')
      .values(rows.slice(start, start + markedRows))
      .onConflict((conflict) => conflict.doNothing())
      .execute()
}
