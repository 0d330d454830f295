import { type Kysely, sql } from 'kysely'
import type { BudgetQueries } from '../accounts/ports.ts'
import type { BucketCounters } from '../domain/budget-meter.ts'
import {
  type Budget,
  type BudgetScope,
  type BudgetSetter,
  type BudgetUnit,
  type BudgetWindow,
  isAmount,
  isSameKind,
} from '../domain/budgets.ts'
import { defineStore } from './define-store.ts'
import { readHolds } from './ledger/lost-holds.ts'
import { change } from './revision.ts'
import type { BudgetRow, Tables } from './schema/schema.ts'

/** Budgets and what they have spent. The ledger counts; this reads its counters. */
export const budgetStore = defineStore<BudgetQueries>({
  listBudgets: (db, accountId) => budgetsOf(db, accountId),

  async listOperatorBudgets(db, limit) {
    const rows = await db
      .selectFrom('budgets')
      .selectAll()
      .where('set_by', '=', 'operator')
      .orderBy('account_id')
      .orderBy('created_at_ms')
      .orderBy('id')
      .limit(limit)
      .execute()
    return rows.map(readBudget)
  },

  putBudget(db, budget, maxOfSetter, record) {
    return change(db, record, async (transaction) => {
      const known = await transaction.selectFrom('accounts').select('id').where('id', '=', budget.accountId).execute()
      if (known.length === 0) return false
      const others = (await budgetsOf(transaction, budget.accountId)).filter(
        ({ id, setBy }) => setBy === budget.setBy && id !== budget.id,
      )
      // Changes are made one after another, so nobody else adds the same one meanwhile.
      if (others.length >= maxOfSetter || others.some((other) => isSameKind(other, budget))) return false
      await transaction
        .insertInto('budgets')
        .values(budgetRow(budget))
        .onConflict((conflict) => conflict.column('id').doUpdateSet({ amount: budget.limit }))
        .execute()
      return true
    })
  },

  removeBudget(db, accountId, budgetId, record) {
    return change(db, record, async (transaction) => {
      const result = await transaction
        .deleteFrom('budgets')
        .where('account_id', '=', accountId)
        .where('id', '=', budgetId)
        .executeTakeFirstOrThrow()
      return result.numDeletedRows > 0n
    })
  },

  readBudgetSpending: (db, accountId, sinceMs) => spendingOf(db, [accountId], sinceMs),

  async readBudgetBooks(db, accountIds, sinceMs) {
    if (accountIds.length === 0) return { budgets: [], counters: [] }
    return { budgets: await budgetsOf(db, ...accountIds), counters: await spendingOf(db, accountIds, sinceMs) }
  },

  async deleteSpendingBefore(db, timeMs, limit) {
    const before = Math.floor(timeMs)
    const spending = await sql`delete from budget_spending where (budget_id, bucket_ms) in (
      select budget_id, bucket_ms from budget_spending where bucket_ms < ${before} and held = 0
      order by bucket_ms limit ${limit})`.execute(db)
    return Number(spending.numAffectedRows ?? 0)
  },
})

/** Those of an account are in the order in which they were set. */
export async function budgetsOf(db: Kysely<Tables>, ...accountIds: readonly string[]): Promise<readonly Budget[]> {
  const rows = await db
    .selectFrom('budgets')
    .selectAll()
    .where('account_id', 'in', accountIds)
    .orderBy('created_at_ms')
    .orderBy('id')
    .execute()
  return rows.map(readBudget)
}

async function spendingOf(
  db: Kysely<Tables>,
  accountIds: readonly string[],
  sinceMs: number,
): Promise<readonly BucketCounters[]> {
  const rows = await db
    .selectFrom('budget_spending')
    .select(['budget_id', 'bucket_ms', 'spent'])
    .where('account_id', 'in', accountIds)
    .where('bucket_ms', '>=', Math.floor(sinceMs))
    .execute()
  const running = await db
    .selectFrom('requests')
    .select('holds')
    .where('account_id', 'in', accountIds)
    .where('holds', 'is not', null)
    .execute()
  const holds = running.flatMap((row) => readHolds(row.holds!)).filter(({ amount }) => isAmount(amount))
  return [
    ...rows.map((row) => ({ budgetId: row.budget_id, bucketMs: row.bucket_ms, spent: row.spent, held: 0 })),
    ...holds.map(({ budgetId, bucketMs, amount }) => ({ budgetId, bucketMs, spent: 0, held: amount })),
  ]
}

/** A key's budgets go to the key that replaces it, and count both while both work (contract 46.7). */
export async function moveBudgetsToKey(db: Kysely<Tables>, oldKeyId: string, next: { id: string; accountId: string }) {
  const rows = await db
    .selectFrom('budgets')
    .select(['id', 'former'])
    .where('account_id', '=', next.accountId)
    .where('scope', '=', 'key')
    .where('subject', '=', oldKeyId)
    .execute()
  for (const { id, former } of rows) {
    const keys = [oldKeyId, ...(former === null ? [] : former.split(','))].slice(0, maxFormerKeys)
    await db
      .updateTable('budgets')
      .set({ subject: next.id, former: keys.join(',') })
      .where('id', '=', id)
      .execute()
  }
}

/** Keys that a budget still counts after they were replaced. */
const maxFormerKeys = 8

function budgetRow(budget: Budget): BudgetRow {
  return {
    id: budget.id,
    account_id: budget.accountId,
    scope: budget.scope,
    subject: budget.subject,
    former: null,
    unit: budget.unit,
    period: budget.window,
    rolling: budget.rolling ? 1 : 0,
    amount: budget.limit,
    set_by: budget.setBy,
    created_at_ms: Math.floor(budget.createdAtMs),
  }
}

function readBudget(row: BudgetRow): Budget {
  return {
    id: row.id,
    accountId: row.account_id,
    scope: row.scope as BudgetScope,
    subject: row.subject,
    ...(row.former !== null && { formerKeys: row.former.split(',') }),
    unit: row.unit as BudgetUnit,
    window: row.period as BudgetWindow,
    rolling: row.rolling !== 0,
    limit: row.amount,
    setBy: row.set_by as BudgetSetter,
    createdAtMs: row.created_at_ms,
  }
}
