import { describe, expect, test } from 'vitest'
import { RetryBudget } from '../../../src/gateway/routing/retry-budget.ts'

function start(budget: RetryBudget, accountId: string, count: number): void {
  for (let started = 0; started < count; started++) budget.requestStarted(accountId)
}

function take(budget: RetryBudget, accountId: string, backendId: string, tries = 1_000): number {
  return Array.from({ length: tries }, () => budget.take(accountId, backendId)).filter(Boolean).length
}

describe('the retry budget', () => {
  test('lets one account retry 16 times at once however quiet it is', () => {
    const budget = new RetryBudget()
    start(budget, 'a', 1)
    expect(take(budget, 'a', 'x')).toBe(16)
    budget.release('a', 'x')
    expect(take(budget, 'a', 'x')).toBe(1)
  })

  test('of one account and one backend: a fifth of the requests under way, and no more', () => {
    const budget = new RetryBudget()
    start(budget, 'a', 1_000)
    expect(take(budget, 'a', 'x')).toBe(200)
    for (let ended = 0; ended < 200; ended++) budget.release('a', 'x')
    for (let ended = 0; ended < 600; ended++) budget.requestEnded('a')
    expect(take(budget, 'a', 'x')).toBe(80)
  })

  test('an account that used up its own takes nothing from others, nor a backend from other backends', () => {
    const budget = new RetryBudget()
    start(budget, 'hostile', 75)
    start(budget, 'other', 1)
    expect(take(budget, 'hostile', 'hostiles-own')).toBe(16)
    expect(take(budget, 'other', 'shared')).toBe(16)
    const many = Array.from({ length: 10 }, (_, place) => `many-${place}`)
    for (const account of many) start(budget, account, 1)
    expect(many.map((account) => take(budget, account, 'down')).reduce((sum, taken) => sum + taken)).toBe(64)
    start(budget, 'last', 1)
    expect(budget.take('last', 'down')).toBe(false)
    expect(budget.take('last', 'elsewhere')).toBe(true)
  })
})
