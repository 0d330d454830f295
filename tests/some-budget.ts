import type { Budget } from '../src/domain/budgets.ts'

/** A budget of an account, by default one US dollar for a fixed month. */
export function someBudget(changes: Partial<Budget> = {}): Budget {
  return {
    id: 'bud_1',
    accountId: 'acc_1',
    scope: 'account',
    subject: '',
    unit: 'usd',
    window: 'month',
    rolling: false,
    limit: 1_000_000_000,
    setBy: 'account',
    createdAtMs: 1,
    ...changes,
  }
}
