import type { Kysely, Transaction } from 'kysely'
import type { OperatorQueries, OperatorChange } from '../accounts/operators/operator-ports.ts'
import type { AuditRecord } from '../domain/audit.ts'
import type { Operator, OperatorRole } from '../domain/operators.ts'
import { defineStore } from './define-store.ts'
import { change } from './revision.ts'
import type { OperatorRow } from './schema/schema-identity.ts'
import type { Tables } from './schema/schema.ts'

/** Operators. */
export const operatorStore = defineStore<OperatorQueries>({
  async addOperator(db, operator, maxOperators, record) {
    let outcome: 'done' | 'taken' | 'full' = 'done'
    await change(db, record, async (transaction) => {
      const active = await transaction.selectFrom('operators').select('email').where('state', '=', 'active').execute()
      if (active.some(({ email }) => email === operator.email)) outcome = 'taken'
      else if (active.length >= maxOperators) outcome = 'full'
      if (outcome !== 'done') return false
      await transaction
        .insertInto('operators')
        .values({
          id: operator.id,
          email: operator.email,
          role: operator.role,
          state: operator.state,
          created_at_ms: operator.createdAtMs,
          removed_at_ms: operator.removedAtMs,
        })
        .execute()
      return true
    })
    return outcome
  },

  async findOperator(db, id) {
    const row = await db.selectFrom('operators').selectAll().where('id', '=', id).executeTakeFirst()
    return row === undefined ? undefined : readOperator(row)
  },

  async findOperatorByEmail(db, email) {
    const row = await db
      .selectFrom('operators')
      .selectAll()
      .where('email', '=', email)
      .where('state', '=', 'active')
      .executeTakeFirst()
    return row === undefined ? undefined : readOperator(row)
  },

  async listOperators(db, limit) {
    const rows = await db
      .selectFrom('operators')
      .selectAll()
      .orderBy('state')
      .orderBy('created_at_ms')
      .orderBy('id')
      .limit(limit)
      .execute()
    return rows.map(readOperator)
  },

  async setOperatorRole(db, id, role, record) {
    return changeOperator(db, record, async (transaction) => {
      const before = await activeRole(transaction, id)
      if (before === undefined) return 'unknown'
      if (before === role) return 'same'
      if (before === 'admin' && (await isLastAdmin(transaction, id))) return 'last_admin'
      await transaction.updateTable('operators').set({ role }).where('id', '=', id).execute()
      return 'done'
    })
  },

  async removeOperator(db, id, atMs, record) {
    return changeOperator(db, record, async (transaction) => {
      const before = await activeRole(transaction, id)
      if (before === undefined) return 'unknown'
      if (before === 'admin' && (await isLastAdmin(transaction, id))) return 'last_admin'
      await transaction
        .updateTable('operators')
        .set({ state: 'removed', removed_at_ms: Math.floor(atMs) })
        .where('id', '=', id)
        .execute()
      await transaction.deleteFrom('operator_sessions').where('operator_id', '=', id).execute()
      await transaction
        .updateTable('admin_tokens')
        .set({ revoked_at_ms: Math.floor(atMs) })
        .where('operator_id', '=', id)
        .where('revoked_at_ms', 'is', null)
        .execute()
      return 'done'
    })
  },
})

async function changeOperator(
  db: Kysely<Tables>,
  record: AuditRecord,
  work: (transaction: Transaction<Tables>) => Promise<OperatorChange>,
): Promise<OperatorChange> {
  let outcome: OperatorChange = 'unknown'
  await change(db, record, async (transaction) => {
    outcome = await work(transaction)
    return outcome === 'done'
  })
  return outcome
}

async function activeRole(transaction: Transaction<Tables>, id: string): Promise<string | undefined> {
  const row = await transaction
    .selectFrom('operators')
    .select('role')
    .where('id', '=', id)
    .where('state', '=', 'active')
    .executeTakeFirst()
  return row?.role
}

async function isLastAdmin(transaction: Transaction<Tables>, id: string): Promise<boolean> {
  const other = await transaction
    .selectFrom('operators')
    .select('id')
    .where('role', '=', 'admin')
    .where('state', '=', 'active')
    .where('id', '!=', id)
    .limit(1)
    .executeTakeFirst()
  return other === undefined
}

function readOperator(row: OperatorRow): Operator {
  return {
    id: row.id,
    email: row.email,
    role: row.role as OperatorRole,
    state: row.state as Operator['state'],
    createdAtMs: row.created_at_ms,
    removedAtMs: row.removed_at_ms,
  }
}
