import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { Budget, BudgetClaim } from '../../src/domain/budgets.ts'
import { ServiceError } from '../../src/domain/errors.ts'
import type { RequestOpening, RequestOutcome } from '../../src/domain/requests.ts'
import { someBudget } from '../some-budget.ts'
import { type ClosableLedger, ledgersFor, type LedgerPlace, roomy } from './ledger-engines.ts'

const { engines, openingOf } = ledgersFor('budgets')

function budgetOf(changes: Partial<Budget> = {}): Budget {
  return someBudget({ limit: 1_000, createdAtMs: 0, ...changes })
}

/** A claim of `base` and one nanodollar, or token, per output token. */
function claimOf(budgets: readonly Budget[], base: number, least = 0, most = least): BudgetClaim {
  return {
    budgets,
    base: { nanoUsd: base, tokens: base },
    perOutputToken: { nanoUsd: 1, tokens: 1 },
    leastOutput: least,
    mostOutput: most,
  }
}

const answered: RequestOutcome = { charged: 1, attempts: [], totalMs: 12 }

describe.each(engines)('budgets on %s', (_, engine) => {
  let place: LedgerPlace
  let ledger: ClosableLedger

  beforeAll(() => engine.start())
  afterAll(() => engine.stop())
  beforeEach(async () => {
    place = await engine.fresh()
    ledger = await place.open()
  })
  afterEach(async () => {
    await ledger.close()
    await place.db.destroy()
  })

  const admit = async (claim: BudgetClaim, opening = openingOf()) => ledger.admit(opening, roomy, undefined, claim)
  const refused = async (claim: BudgetClaim, opening?: RequestOpening): Promise<ServiceError> => {
    const error: unknown = await admit(claim, opening).then(
      () => undefined,
      (thrown: unknown) => thrown,
    )
    expect(error).toBeInstanceOf(ServiceError)
    return error as ServiceError
  }

  /** What is stored of each budget, with the records' own sums. */
  async function books() {
    const spending = await place.db.selectFrom('budget_spending').selectAll().execute()
    const records = await place.db.selectFrom('requests').select(['holds', 'booked']).execute()
    const sums = { spent: 0, held: 0, booked: 0, holds: 0 }
    for (const { spent, held } of spending) {
      sums.spent += spent
      sums.held += held
    }
    for (const { holds, booked } of records) {
      for (const { amount } of JSON.parse(holds ?? '[]') as { amount: number }[]) sums.holds += amount
      for (const { spent } of JSON.parse(booked ?? '[]') as { spent: number }[]) sums.booked += spent
    }
    return sums
  }

  test('a claim is held until its request ends, and then only what was spent counts', async () => {
    const budgets = [budgetOf()]
    const admission = await admit(claimOf(budgets, 600))
    expect(admission.held?.outputTokens).toBe(0)
    const error = await refused(claimOf(budgets, 600))
    expect(error.code).toBe('budget_held')
    expect(error.facts.budget).toMatchObject({ spent: 0, held: 600, limit: 1_000 })
    admission.settle(answered, 'none', { nanoUsd: 250, tokens: 9 })
    await expect.poll(async () => (await books()).spent).toBe(250)
    const next = await admit(claimOf(budgets, 750))
    next.settle(answered, 'none', { nanoUsd: 750, tokens: 9 })
    await expect.poll(async () => (await books()).spent).toBe(1_000)
    expect((await refused(claimOf(budgets, 1))).code).toBe('budget_exceeded')
    expect(await books()).toEqual({ spent: 1_000, held: 0, booked: 1_000, holds: 0 })
  })

  test('the output limit is lowered to what is left, but not below what the request needs', async () => {
    const budgets = [budgetOf()]
    const first = await admit(claimOf(budgets, 100, 50, 5_000))
    expect(first.held?.outputTokens).toBe(900)
    first.settle(answered, 'none', { nanoUsd: 880, tokens: 0 })
    await expect.poll(async () => (await books()).spent).toBe(880)
    expect((await admit(claimOf(budgets, 50, 50, 5_000))).held?.outputTokens).toBe(70)
    expect((await refused(claimOf(budgets, 50, 50, 5_000))).code).toBe('budget_held')
  })

  test('all budgets of a claim must allow it, each in its unit, and a refusal takes from none', async () => {
    const wide = budgetOf({ id: 'bud_wide', limit: 10_000 })
    const narrow = budgetOf({ id: 'bud_narrow', unit: 'tokens', limit: 1_200, window: 'day' })
    const admission = await admit(claimOf([wide, narrow], 1_000))
    expect((await refused(claimOf([wide, narrow], 1_000))).facts.budget).toMatchObject({ unit: 'tokens', held: 1_000 })
    const another = await admit(claimOf([wide], 9_000))
    admission.settle(answered, 'none', { nanoUsd: 7, tokens: 1_100 })
    another.settle(answered, 'none', { nanoUsd: 11, tokens: 5 })
    await expect.poll(async () => (await books()).spent).toBe(7 + 1_100 + 11)
  })

  test('a request takes more for a further call, and no more than its budget allows', async () => {
    const budgets = [budgetOf()]
    const admission = await admit(claimOf(budgets, 400))
    expect(await admission.held?.more({ nanoUsd: 400, tokens: 1 })).toBe(true)
    expect(await admission.held?.more({ nanoUsd: 400, tokens: 1 })).toBe(false)
    expect(await admission.held?.more({ nanoUsd: 200, tokens: 1 })).toBe(true)
    expect((await refused(claimOf(budgets, 1))).facts.budget).toMatchObject({ held: 1_000 })
    admission.settle(answered, 'none', { nanoUsd: 500, tokens: 0 })
    await expect.poll(books).toEqual({ spent: 500, held: 0, booked: 500, holds: 0 })
  })

  test('what a request without an outcome held counts as spent', async () => {
    const budgets = [budgetOf()]
    const admission = await admit(claimOf(budgets, 400))
    admission.settle(answered, 'none')
    await expect.poll(books).toEqual({ spent: 400, held: 0, booked: 400, holds: 0 })
  })

  test('a restart keeps what was spent, and books what open requests held', async () => {
    const budgets = [budgetOf()]
    const settled = await admit(claimOf(budgets, 300))
    settled.settle(answered, 'none', { nanoUsd: 100, tokens: 0 })
    const open = await admit(claimOf(budgets, 300))
    await open.held?.more({ nanoUsd: 50, tokens: 0 })
    await open.durable()
    await ledger.close()
    ledger = await place.open()
    const after = await books()
    if (after.held === 0) expect(after).toEqual({ spent: 450, held: 0, booked: 450, holds: 0 })
    // On PostgreSQL another node decides that the first one is dead, a minute later; until then it is held.
    else expect(after).toEqual({ spent: 100, held: 350, booked: 100, holds: 350 })
    expect((await refused(claimOf(budgets, 551))).facts.budget).toMatchObject({ limit: 1_000 })
    await admit(claimOf(budgets, 550))
  })

  test('1,000 concurrent requests never hold or spend more than the budget', async () => {
    const budgets = [budgetOf({ limit: 100_000 })]
    const results = await Promise.allSettled(
      Array.from({ length: 1_000 }, async (_unused, at) => {
        const admission = await admit(claimOf(budgets, 1_000, 100, 2_000))
        await admission.durable()
        const held = 1_000 + admission.held!.outputTokens
        admission.settle(answered, 'none', { nanoUsd: at % 3 === 0 ? 0 : held - (at % 7), tokens: 0 })
      }),
    )
    const admitted = results.filter(({ status }) => status === 'fulfilled').length
    expect(admitted).toBeGreaterThan(30)
    await expect.poll(async () => (await books()).holds).toBe(0)
    const { spent, booked } = await books()
    expect(spent).toBeLessThanOrEqual(100_000)
    expect(spent).toBe(booked)
  })

  test('a request that the minute refuses takes nothing from its budgets', async () => {
    const budgets = [budgetOf()]
    const narrow = { ...roomy, requestsPerMinute: 1 }
    const first = await ledger.admit(openingOf(), narrow, undefined, claimOf(budgets, 100))
    await expect(async () => ledger.admit(openingOf(), narrow, undefined, claimOf(budgets, 100))).rejects.toMatchObject(
      {
        code: 'rate_limit_exceeded',
      },
    )
    first.settle(answered, 'none', { nanoUsd: 0, tokens: 0 })
    await expect.poll(books).toMatchObject({ held: 0, holds: 0 })
    await admit(claimOf(budgets, 1_000))
  })

  test('a request that the minute refuses leaves its budgets to the requests that arrive with it', async () => {
    const budgets = [budgetOf()]
    const rate = { keyId: 'key_1', perMinute: 1 }
    await ledger.admit(openingOf(), roomy, rate)
    const [first, second, third] = await Promise.allSettled([
      (async () => ledger.admit(openingOf(), roomy, rate, claimOf(budgets, 100, 50, 5_000)))(),
      admit(claimOf(budgets, 100, 50, 600), openingOf({ keyId: 'key_2' })),
      admit(claimOf(budgets, 100, 50, 5_000), openingOf({ keyId: 'key_2' })),
    ])
    expect(first).toMatchObject({ reason: { code: 'rate_limit_exceeded' } })
    expect(second).toMatchObject({ value: { held: { outputTokens: 600 } } })
    expect(third).toMatchObject({ value: { held: { outputTokens: 200 } } })
    await expect.poll(books).toMatchObject({ holds: 1_000, spent: 0 })
  })

  test('accounts do not affect each other', async () => {
    await admit(claimOf([budgetOf()], 1_000))
    const other = budgetOf({ id: 'bud_2', accountId: 'acc_2' })
    await admit(claimOf([other], 1_000), openingOf({ accountId: 'acc_2', keyId: 'key_2' }))
    expect((await refused(claimOf([budgetOf()], 1))).code).toBe('budget_held')
  })
})
