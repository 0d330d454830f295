import { beforeEach, expect, test } from 'vitest'
import { type BudgetClaim, type BudgetStanding, noAmounts } from '../../../src/domain/budgets.ts'
import { BudgetRefusals } from '../../../src/storage/ledger/budget-refusals.ts'
import { ManualClock } from '../../gateway/manual-clock.ts'
import { someBudget } from '../../some-budget.ts'

const nowMs = Date.parse('2026-11-25T12:00:00Z')
const budgets = [someBudget({ unit: 'tokens', window: 'day', limit: 1_000 })]
const usedUp: BudgetStanding = { spent: 950, held: 0, oldestMs: nowMs }

let clock: ManualClock
let refusals: BudgetRefusals

beforeEach(() => {
  clock = new ManualClock()
  refusals = new BudgetRefusals(clock)
})

function claimOf(tokens: number): BudgetClaim {
  return { budgets, base: { nanoUsd: 0, tokens }, perOutputToken: noAmounts, leastOutput: 0, mostOutput: 0 }
}

function refuse(standing: BudgetStanding, atMs = nowMs): string {
  return refusals.note('acc_1', claimOf(100), { standings: [standing], nowMs: atMs }).code
}

const codeFor = (tokens: number) => refusals.errorFor('acc_1', claimOf(tokens))?.code

test('what is spent refuses requests that need as much for a second', async () => {
  expect(refuse(usedUp)).toBe('budget_exceeded')
  expect(codeFor(100)).toBe('budget_exceeded')
  expect(codeFor(99)).toBeUndefined()
  await clock.advance(999)
  expect(codeFor(100)).toBe('budget_exceeded')
  await clock.advance(1)
  expect(codeFor(100)).toBeUndefined()
})

test('a refusal because of what running requests hold is not repeated: they can end at any time', () => {
  refusals.ended('acc_1', 600_000)
  expect(refuse({ spent: 850, held: 100, oldestMs: nowMs })).toBe('budget_exceeded')
  expect(codeFor(100)).toBeUndefined()
})

test('a refusal is not repeated after the window has ended', async () => {
  refuse(usedUp, Date.parse('2026-11-25T23:59:59.700Z'))
  await clock.advance(299)
  expect(codeFor(100)).toBe('budget_exceeded')
  await clock.advance(1)
  expect(codeFor(100)).toBeUndefined()
})

test('a refusal is not repeated after a request of the account has ended, which may have cost less than was counted', () => {
  refuse(usedUp)
  refusals.ended('acc_2', 1_000)
  expect(codeFor(100)).toBe('budget_exceeded')
  refusals.ended('acc_1', 1_000)
  expect(codeFor(100)).toBeUndefined()
  refuse(usedUp)
  expect(codeFor(100)).toBe('budget_exceeded')
})
