import { describe, expect, test } from 'vitest'
import { RetryBudget } from '../../../src/gateway/routing/retry-budget.ts'

function start(budget: RetryBudget, accountId: string, count: number): void {
  for (let started = 0; started < count; started++) budget.requestStarted(accountId)
}

function take(budget: RetryBudget, accountId: string, backendId: string, tries = 1_000): number {
  return Array.from({ length: tries }, () => budget.take(accountId, backendId)).filter(Boolean).length
}

describe('the retry budget', () => {
  test('one account can retry 16 times at once, however few requests it sends', () => {
    const budget = new RetryBudget()
    start(budget, 'a', 1)
    expect(take(budget, 'a', 'x')).toBe(16)
    budget.release('a', 'x')
    expect(take(budget, 'a', 'x')).toBe(1)
  })

  test('for one account and backend, it is at most a fifth of the requests in flight', () => {
    const budget = new RetryBudget()
    start(budget, 'a', 1_000)
    expect(take(budget, 'a', 'x')).toBe(200)
    for (let ended = 0; ended < 200; ended++) budget.release('a', 'x')
    for (let ended = 0; ended < 600; ended++) budget.requestEnded('a')
    expect(take(budget, 'a', 'x')).toBe(80)
  })

  test('accounts without requests are forgotten, and those with requests are not', () => {
    const budget = new RetryBudget()
    start(budget, 'busy', 1)
    expect(take(budget, 'busy', 'x')).toBe(16)
    for (let account = 0; account < 3_000; account++) {
      start(budget, `idle-${account % 2_000}`, 1)
      budget.requestEnded(`idle-${account % 2_000}`)
    }
    expect(take(budget, 'busy', 'y')).toBe(0)
    start(budget, 'idle-0', 1)
    expect(take(budget, 'idle-0', 'y')).toBe(16)
  })

  test('an account that used up its budget does not affect other accounts, nor one backend another', () => {
    const budget = new RetryBudget()
    start(budget, 'hostile', 75)
    start(budget, 'other', 1)
    expect(take(budget, 'hostile', 'hostiles-own')).toBe(16)
    expect(take(budget, 'other', 'shared')).toBe(16)
    const many = Array.from({ length: 10 }, (_, index) => `many-${index}`)
    for (const account of many) start(budget, account, 1)
    expect(many.map((account) => take(budget, account, 'down')).reduce((sum, taken) => sum + taken)).toBe(64)
    start(budget, 'last', 1)
    expect(budget.take('last', 'down')).toBe(false)
    expect(budget.take('last', 'elsewhere')).toBe(true)
  })
})
