import { describe, expect, test } from 'vitest'
import { RetryBudget } from '../../../src/gateway/routing/retry-budget.ts'
import { ManualClock } from '../manual-clock.ts'

const shared = {}
const own = { owner: 'a' }

function opened() {
  const clock = new ManualClock()
  const budget = new RetryBudget(clock)
  return {
    clock,
    budget,
    start: (accountId: string, count: number, isRetry = false): void => {
      for (let started = 0; started < count; started++) budget.requestStarted(accountId, isRetry)
    },
    end: (accountId: string, count: number): void => {
      for (let ended = 0; ended < count; ended++) budget.requestEnded(accountId)
    },
    take: (accountId: string, backend: { owner?: string } = shared, tries = 1_000): number => {
      let taken = 0
      while (taken < tries && budget.take(accountId, backend) !== undefined) taken += 1
      expect(budget.has(accountId, backend)).toBe(taken === tries)
      return taken
    },
  }
}

describe('the retry budget', () => {
  test('an account can take 5 retries that it has not earned, and no more until debts are forgiven', () => {
    const { budget, clock, start, take } = opened()
    start('a', 1)
    expect(take('a')).toBe(5)
    clock.skip(299_000)
    expect(budget.has('a', shared)).toBe(false)
    clock.skip(1_000)
    expect(take('a')).toBe(5)
  })

  test('each request earns a tenth of a retry, unless the client says that it is a retry', () => {
    const { start, take } = opened()
    start('a', 1)
    take('a')
    start('a', 30)
    expect(take('a')).toBe(3)
    start('a', 1_000, true)
    expect(take('a')).toBe(0)
  })

  test('an account saves 5 retries, or a tenth of its running requests if that is more', () => {
    const { start, end, take } = opened()
    start('small', 1)
    for (let request = 0; request < 1_000; request++) {
      start('small', 1)
      end('small', 1)
    }
    expect(take('small')).toBe(5 + 5)
    start('large', 1_000)
    expect(take('large')).toBeGreaterThanOrEqual(99)
    expect(take('large')).toBe(0)
  })

  test('a retry that is refunded costs nothing, also if debts were forgiven in between', () => {
    const { budget, clock, start, take } = opened()
    start('a', 1)
    for (let round = 0; round < 100; round++) budget.take('a', shared)!.refund()
    const earlier = budget.take('a', shared)!
    expect(take('a')).toBe(4)
    clock.skip(300_000)
    take('a')
    earlier.refund()
    expect(take('a')).toBe(1)
  })

  test('all accounts together can take 25 unearned retries of shared backends, and each what it has earned', () => {
    const { start, end, take } = opened()
    start('earner', 51)
    end('earner', 50)
    const many = Array.from({ length: 10 }, (_, index) => `many-${index}`)
    for (const account of many) start(account, 1)
    expect(many.map((account) => take(account)).reduce((sum, taken) => sum + taken)).toBe(25)
    // No account can use up what another has earned, or the retries of its own connections.
    expect(take('earner')).toBe(5)
    expect(take('many-9', own)).toBe(5)
  })

  test('retries of an account’s own connections take nothing from the retries of others', () => {
    const { start, take } = opened()
    for (let account = 0; account < 20; account++) {
      start(`hostile-${account}`, 1)
      expect(take(`hostile-${account}`, { owner: `hostile-${account}` })).toBe(5)
    }
    start('other', 1)
    expect(take('other')).toBe(5)
  })

  test('thousands of other accounts take nothing from what an account has earned, nor do they end its debts', () => {
    const { start, end, take } = opened()
    const passBy = (): void => {
      for (let account = 0; account < 8_000; account++) {
        start(`idle-${account}`, 1)
        end(`idle-${account}`, 1)
      }
    }
    start('earner', 51)
    end('earner', 51)
    start('debtor', 1)
    expect(take('debtor', own)).toBe(5)
    end('debtor', 1)
    passBy()
    start('debtor', 1)
    expect(take('debtor', own)).toBe(0)
    start('earner', 1)
    expect(take('earner', own)).toBe(10)
  })

  test('of too many accounts, those without requests for the longest time are forgotten', () => {
    const { start, end, take } = opened()
    for (const account of ['busy', 'recent', 'early']) {
      start(account, 1)
      expect(take(account, own)).toBe(5)
    }
    end('early', 1)
    end('recent', 1)
    for (let account = 0; account < 20_000; account++) {
      start(`idle-${account}`, 1)
      end(`idle-${account}`, 1)
      if (account % 5_000 !== 0) continue
      start('recent', 1, true)
      end('recent', 1)
    }
    for (const account of ['recent', 'early']) start(account, 1, true)
    expect(['busy', 'recent', 'early'].map((account) => take(account, own))).toEqual([0, 0, 5])
  })
})
