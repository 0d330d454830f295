import type { Transaction } from 'kysely'
import type { EmailQueries } from '../accounts/ports.ts'
import type { AccountEmail } from '../domain/identity.ts'
import { accountRow } from './accounts.ts'
import { defineStore } from './define-store.ts'
import { change } from './revision.ts'
import type { EmailRow } from './schema/schema-identity.ts'
import type { Tables } from './schema/schema.ts'

/** Email addresses of accounts. */
export const emailStore = defineStore<EmailQueries>({
  addAccountWithEmail(db, account, address, record) {
    return change(db, record, async (transaction) => {
      if (await isTaken(transaction, address)) return false
      await transaction.insertInto('accounts').values(accountRow(account)).execute()
      await insertEmail(transaction, { address, accountId: account.id, createdAtMs: account.createdAtMs })
      return true
    })
  },

  addEmail(db, email, maxEmails, record) {
    return change(db, record, async (transaction) => {
      const { count } = await transaction
        .selectFrom('emails')
        .select((row) => row.fn.countAll<number>().as('count'))
        .where('account_id', '=', email.accountId)
        .executeTakeFirstOrThrow()
      if (count >= maxEmails || (await isTaken(transaction, email.address))) return false
      await insertEmail(transaction, email)
      return true
    })
  },

  async findEmail(db, address) {
    const row = await db.selectFrom('emails').selectAll().where('address', '=', address).executeTakeFirst()
    return row === undefined ? undefined : readEmail(row)
  },

  async listEmails(db, accountId) {
    const rows = await db
      .selectFrom('emails')
      .selectAll()
      .where('account_id', '=', accountId)
      .orderBy('created_at_ms')
      .orderBy('address')
      .execute()
    return rows.map(readEmail)
  },

  removeEmail(db, accountId, address, record) {
    return change(db, record, async (transaction) => {
      const result = await transaction
        .deleteFrom('emails')
        .where('account_id', '=', accountId)
        .where('address', '=', address)
        .executeTakeFirstOrThrow()
      return result.numDeletedRows > 0n
    })
  },
})

async function isTaken(transaction: Transaction<Tables>, address: string): Promise<boolean> {
  const row = await transaction
    .selectFrom('emails')
    .select('account_id')
    .where('address', '=', address)
    .executeTakeFirst()
  return row !== undefined
}

async function insertEmail(transaction: Transaction<Tables>, email: AccountEmail): Promise<void> {
  await transaction
    .insertInto('emails')
    .values({
      address: email.address,
      account_id: email.accountId,
      created_at_ms: Math.floor(email.createdAtMs),
    })
    .execute()
}

function readEmail(row: EmailRow): AccountEmail {
  return { address: row.address, accountId: row.account_id, createdAtMs: row.created_at_ms }
}
