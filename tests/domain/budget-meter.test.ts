import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { BudgetMeter, type BucketSpending } from '../../src/domain/budget-meter.ts'
import { bucketsAt, rollingWindows } from '../../src/domain/budget-windows.ts'
import {
  type Budget,
  budgetWindows,
  type BudgetClaim,
  type BudgetHold,
  type BudgetUnit,
} from '../../src/domain/budgets.ts'

const startMs = Date.parse('2026-11-30T20:00:00Z')

function budgetsOf(limits: readonly number[]): Budget[] {
  return limits.map((limit, at) => ({
    id: `bud_${at}`,
    accountId: 'acc_1',
    scope: 'account',
    subject: '',
    unit: (at % 2 === 0 ? 'usd' : 'tokens') satisfies BudgetUnit,
    window: budgetWindows[at % budgetWindows.length]!,
    rolling: at % 3 === 0,
    limit,
    setBy: 'operator',
    createdAtMs: 0,
  }))
}

/** One step of a history: a request begins, takes more, ends, or is lost; or the time passes; or the process starts again. */
const steps = fc.array(
  fc.oneof(
    fc.record({ do: fc.constant('claim' as const), base: fc.nat(400), least: fc.nat(50), most: fc.nat(400) }),
    fc.record({ do: fc.constant('more' as const), at: fc.nat(), amount: fc.nat(300) }),
    fc.record({ do: fc.constant('end' as const), at: fc.nat(), share: fc.double({ min: 0, max: 1, noNaN: true }) }),
    fc.record({ do: fc.constant('lose' as const), at: fc.nat() }),
    fc.record({ do: fc.constant('wait' as const), ms: fc.nat(20 * 3_600_000) }),
    fc.record({ do: fc.constant('restart' as const) }),
  ),
  { maxLength: 60 },
)

interface Running {
  holds: readonly BudgetHold[]
}

/** A history of one account, and the independent books that it is compared with. */
class History {
  meter = new BudgetMeter([])
  nowMs = startMs
  readonly running: Running[] = []
  /** What ended requests have spent: stored like this on disk. */
  readonly stored: BucketSpending[] = []
  readonly budgets: readonly Budget[]

  constructor(budgets: readonly Budget[]) {
    this.budgets = budgets
  }

  claim(base: number, least: number, most: number): void {
    const claim: BudgetClaim = {
      budgets: this.budgets,
      base: { nanoUsd: base, tokens: base },
      perOutputToken: { nanoUsd: 2, tokens: 1 },
      leastOutput: least,
      mostOutput: Math.max(least, most),
    }
    const decided = this.meter.claim(this.nowMs, claim)
    if (!('holds' in decided)) {
      // Refused only if the least that it needs does not fit.
      const needs = this.budgets.map(({ unit }) => base + (unit === 'usd' ? 2 : 1) * least)
      expect(this.budgets.some((budget, at) => this.used(budget) + needs[at]! > budget.limit)).toBe(true)
      return
    }
    expect(decided.outputTokens).toBeGreaterThanOrEqual(least)
    this.running.push({ holds: decided.holds })
  }

  more(at: number, amount: number): void {
    const request = this.running[at % this.running.length]
    if (request === undefined) return
    const amounts = { nanoUsd: amount, tokens: amount }
    request.holds = this.meter.more(this.nowMs, this.budgets, request.holds, amounts) ?? request.holds
  }

  end(at: number, share: number | undefined): void {
    const [request] = this.running.splice(at % Math.max(1, this.running.length), 1)
    if (request === undefined) return
    const held = Math.min(...request.holds.map(({ amount }) => amount))
    const spent = share === undefined ? undefined : Math.floor(held * share)
    this.stored.push(
      ...this.meter.settle(request.holds, spent === undefined ? undefined : { nanoUsd: spent, tokens: spent }),
    )
  }

  /** What is on disk is read again, and the requests that ran count with everything that they held. */
  restart(): void {
    while (this.running.length > 0) this.end(0, undefined)
    this.meter = new BudgetMeter(this.stored)
  }

  /** What the books say that a budget has lost or holds in its window. */
  used(budget: Budget): number {
    const { currentMs, firstMs } = bucketsAt(budget, this.nowMs)
    const counts = (bucketMs: number): boolean => (budget.rolling ? bucketMs >= firstMs : bucketMs === currentMs)
    const spent = this.stored.filter((entry) => entry.budgetId === budget.id && counts(entry.bucketMs))
    const held = this.running
      .flatMap(({ holds }) => holds)
      .filter((hold) => hold.budgetId === budget.id && counts(hold.bucketMs))
    return spent.reduce((sum, entry) => sum + entry.spent, 0) + held.reduce((sum, hold) => sum + hold.amount, 0)
  }
}

test('no history of claims, further calls, ends, losses, restarts, and time exceeds a budget', () => {
  fc.assert(
    fc.property(
      fc.array(fc.integer({ min: 200, max: 3_000 }), { minLength: 1, maxLength: 5 }),
      steps,
      (limits, all) => {
        const history = new History(budgetsOf(limits))
        for (const step of all) {
          if (step.do === 'claim') history.claim(step.base, step.least, step.most)
          else if (step.do === 'more') history.more(step.at, step.amount)
          else if (step.do === 'end') history.end(step.at, step.share)
          else if (step.do === 'lose') history.end(step.at, undefined)
          else if (step.do === 'wait') history.nowMs += step.ms
          else history.restart()
          for (const budget of history.budgets) {
            const { spent, held } = history.meter.standing(history.nowMs, budget)
            expect(spent + held).toBe(history.used(budget))
            expect(spent + held).toBeLessThanOrEqual(budget.limit)
          }
        }
      },
    ),
    { numRuns: 300 },
  )
})

test('old buckets are forgotten, and those that hold something are not', () => {
  const [budget] = budgetsOf([1_000_000]) as [Budget]
  const meter = new BudgetMeter([])
  const claim = (atMs: number) => {
    const decided = meter.claim(atMs, {
      budgets: [budget],
      base: { nanoUsd: 1, tokens: 1 },
      perOutputToken: { nanoUsd: 0, tokens: 0 },
      leastOutput: 0,
      mostOutput: 0,
    })
    if (!('holds' in decided)) throw new Error('refused')
    return decided.holds
  }
  const first = claim(startMs)
  const { bucketMs } = rollingWindows['5h']
  for (let step = 1; step < 2_000; step += 1) meter.settle(claim(startMs + step * bucketMs), { nanoUsd: 1, tokens: 1 })
  const laterMs = startMs + 2_000 * bucketMs
  expect(meter.standing(laterMs, budget)).toMatchObject({ spent: 60, held: 0 })
  expect(meter.settle(first, { nanoUsd: 1, tokens: 1 })).toHaveLength(1)
})
