import { expect, test } from 'vitest'
import { budgetError } from '../../src/domain/budget-error.ts'
import type { Budget, BudgetClaim } from '../../src/domain/budgets.ts'
import { errorMessage } from '../../src/domain/error-message.ts'
import { linksFor } from '../../src/domain/links.ts'
import { someBudget } from '../some-budget.ts'
import { nanoPerUsd } from '../test-budgets.ts'

const nowMs = Date.UTC(2026, 10, 26)
const budget: Budget = someBudget({ limit: 20 * nanoPerUsd })
const links = linksFor('https://svc-router.example.com')

/** The message of a refusal of a request that costs 0.25 USD at least. */
function refusal(changes: Partial<Budget>, spent: number, held = 0, heldForMs = 1): string {
  const amounts = { nanoUsd: 0.25 * nanoPerUsd, tokens: 1_000_000 }
  const claim: BudgetClaim = {
    budgets: [{ ...budget, ...changes }],
    base: amounts,
    perOutputToken: { nanoUsd: 0, tokens: 0 },
    leastOutput: 1_024,
    mostOutput: 1_024,
  }
  return errorMessage(budgetError(claim, [{ spent, held, oldestMs: nowMs }], nowMs, heldForMs), links)
}

test('says what is left, what is needed, when to try again, and where to raise the budget', () => {
  expect(refusal({}, 19.94 * nanoPerUsd)).toBe(
    'The monthly budget for this account has 0.06 of 20.00 USD left. This request needs 0.25 USD. Wait until Dec 1 at 00:00 UTC, or raise the budget: https://svc-router.example.com/account/budgets',
  )
})

test('does not advise to wait if the whole budget is not enough', () => {
  expect(refusal({ limit: 0.1 * nanoPerUsd }, 0)).toContain('Send a shorter request, or raise the budget: https://')
})

test.each([
  { scope: 'key', subject: 'key_0Vc4cSAA001tG62F7taHua8D', window: 'month', rolling: true, setBy: 'operator' },
  { scope: 'profile', subject: 'svc-router/frontier', window: '5h', rolling: true, setBy: 'operator' },
] as const)('is not cut, even for the longest name of a budget of a $scope', (changes) => {
  for (const message of [
    refusal({ ...changes, limit: 1_000 * nanoPerUsd }, 999.987654 * nanoPerUsd),
    refusal({ ...changes, limit: 1_000 * nanoPerUsd }, 0, 999.987654 * nanoPerUsd, 600_000),
    refusal({ ...changes, unit: 'tokens', limit: 100_000_000 }, 99_876_543),
    refusal({ ...changes, unit: 'tokens', limit: 100_000_000 }, 0, 99_876_543, 600_000),
  ]) {
    expect(message).not.toContain('…')
    expect(message).toContain('or ask for more: https://')
  }
  for (const [unit, limit] of [
    ['usd', 1_000 * nanoPerUsd],
    ['tokens', 100_000_000],
  ] as const)
    expect(refusal({ ...changes, unit, limit }, 0.123_456_78 * limit, 0.876_543_21 * limit, 10_000)).toMatch(
      /try again in 10s\.$/,
    )
})
