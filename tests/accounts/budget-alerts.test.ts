import { afterEach, beforeEach, expect, test } from 'vitest'
import { BudgetAlerts } from '../../src/accounts/budget-alerts.ts'
import type { PassedThreshold } from '../../src/accounts/budget-webhook.ts'
import type { Mail } from '../../src/accounts/ports.ts'
import type { Budget } from '../../src/domain/budgets.ts'
import { systemClock } from '../../src/runtime/clock.ts'
import { createStore, type Store } from '../../src/storage/store.ts'
import { someRecord } from '../audit-record.ts'
import { enginesFor } from '../contract/engines.ts'

const [[, engine]] = enginesFor('budget alerts') as [ReturnType<typeof enginesFor>[0]]
const mails: Mail[] = []
const posted: PassedThreshold[] = []
let store: Store
let db: Awaited<ReturnType<Awaited<ReturnType<typeof engine.fresh>>>>
let nowMs = Date.parse('2026-11-25T12:00:00Z')

const budget: Budget = {
  id: 'bud_1',
  accountId: 'acc_1',
  scope: 'account',
  subject: '',
  unit: 'tokens',
  window: 'day',
  rolling: false,
  limit: 1_000,
  setBy: 'account',
  createdAtMs: 1,
}

beforeEach(async () => {
  db = await (await engine.fresh())()
  store = createStore(db)
  mails.length = 0
  posted.length = 0
  nowMs = Date.parse('2026-11-25T12:00:00Z')
  const account = { id: 'acc_1', name: 'Ada', planId: 'free', suspended: false, createdAtMs: 1 }
  await store.addAccountWithEmail(account, 'ada@example.com', someRecord())
  await store.putBudget(budget, 9, someRecord())
})
afterEach(() => db.destroy())

/** A process that sends alerts. */
function node({ sendsMail = true } = {}): BudgetAlerts {
  return new BudgetAlerts({
    store,
    clock: { ...systemClock(), nowMs: () => nowMs },
    sendMail: sendsMail ? async (mail) => void mails.push(mail) : undefined,
    webhook: { send: (passed) => void posted.push(passed), close: () => Promise.resolve() },
    budgetsUrl: 'https://app.example.com/account/budgets',
    onFailed: (error) => {
      throw error
    },
  })
}

async function spend(spent: number): Promise<void> {
  const bucket = { budget_id: 'bud_1', bucket_ms: Math.floor(nowMs / 86_400_000) * 86_400_000, account_id: 'acc_1' }
  await db.deleteFrom('budget_spending').where('bucket_ms', '=', bucket.bucket_ms).execute()
  await db
    .insertInto('budget_spending')
    .values({ ...bucket, spent, held: 0 })
    .execute()
}

const subjects = () => mails.map(({ subject }) => subject)

test('each threshold is told once for each window, by one of several nodes', async () => {
  await spend(499)
  await Promise.all([node().check(), node().check()])
  expect(subjects()).toEqual([])
  await spend(500)
  await Promise.all([node().check(), node().check()])
  await node().check()
  expect(subjects()).toEqual(['50% of a budget is spent'])
  expect(mails[0]).toMatchObject({ to: 'ada@example.com' })
  expect(mails[0]!.text).toContain('Spent: 500 tokens of 1000 tokens')
  expect(mails[0]!.text).toContain('https://app.example.com/account/budgets')
  await spend(1_000)
  await node().check()
  await node().check()
  expect(subjects().slice(1)).toEqual(['A budget is used up'])
  nowMs += 86_400_000
  await spend(850)
  await node().check()
  expect(subjects().slice(2)).toEqual(['80% of a budget is spent'])
})

test('the webhook gets the same alerts, also without a mail server', async () => {
  await spend(850)
  const nodes = [node({ sendsMail: false }), node({ sendsMail: false })]
  await Promise.all(nodes.map((one) => one.check()))
  await nodes[0]!.check()
  const windowMs = Date.parse('2026-11-25T00:00:00Z')
  expect(posted).toMatchObject([{ threshold: 80, windowMs, state: { spent: 850, budget: { id: 'bud_1' } } }])
  await spend(1_000)
  await nodes[1]!.check()
  expect(posted.map(({ threshold }) => threshold)).toEqual([80, 100])
  expect(mails).toEqual([])
})

test('a budget that refuses requests is used up, although something is left', async () => {
  await spend(900)
  await node().check()
  const hourMs = Math.floor(nowMs / 3_600_000) * 3_600_000
  const refused = {
    accountId: 'acc_1',
    code: 'budget_exceeded',
    requests: 1,
    lastRequestId: 'req_1',
    lastKeyId: 'key_1',
  }
  await store.addRefused([{ ...refused, lastAtMs: nowMs, hourMs }])
  await node().check()
  expect(subjects()).toEqual(['80% of a budget is spent', 'A budget is used up'])
})

test('old counters and alerts are deleted, and those that hold something are not', async () => {
  await spend(900)
  await node().check()
  await db
    .insertInto('budget_spending')
    .values({ budget_id: 'bud_2', bucket_ms: 1, account_id: 'acc_1', spent: 0, held: 5 })
    .execute()
  expect(await store.deleteSpendingBefore(nowMs - 86_400_000, 100)).toBe(0)
  expect(await store.deleteSpendingBefore(nowMs + 1, 100)).toBeGreaterThan(0)
  const left = await db.selectFrom('budget_spending').select('budget_id').execute()
  expect(left.map((row) => row.budget_id)).toEqual(['bud_2'])
  expect(await db.selectFrom('budget_alerts').selectAll().execute()).toEqual([])
})
