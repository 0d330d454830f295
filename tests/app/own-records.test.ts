import { expect, test } from 'vitest'
import { ownRecords } from '../../src/app/own-records.ts'
import type { Runtime } from '../../src/app/runtime.ts'
import type { Storage } from '../../src/app/storage.ts'
import type { Budget } from '../../src/domain/budgets.ts'
import { hourMs } from '../../src/runtime/durations.ts'
import { QuotaCalendar } from '../../src/storage/ledger/quota-calendar.ts'
import { someBudget } from '../some-budget.ts'

test('a key shows the window that admission counts, also after a step of the clock (contract 5.13, 5.14)', async () => {
  const dayMs = Date.UTC(2026, 10, 26)
  let wallMs = dayMs + 20 * hourMs
  const clock = { nowMs: () => wallMs, monotonicMs: () => 1_000, after: () => ({ cancel: () => {} }) }
  const calendar = new QuotaCalendar(clock, () => 1_000)
  wallMs += 6 * hourMs
  const budget: Budget = someBudget({ unit: 'tokens', window: 'day', limit: 1_000, createdAtMs: 0 })
  const store = {
    findKey: async () => ({ id: 'key_1', name: 'ci', endsAtMs: null, limits: {} }),
    listBudgets: async () => [budget],
    readBudgetSpending: async () => [{ budgetId: 'bud_1', bucketMs: dayMs, spent: 900, held: 0 }],
  } as unknown as Storage['store']
  const records = ownRecords({} as Runtime, { store, quotaNowMs: () => calendar.nowMs() })
  expect(await records.describeKey('acc_1', 'key_1')).toMatchObject({ budgets: [{ spent: 900, left: 100 }] })
})
