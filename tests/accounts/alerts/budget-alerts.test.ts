import { sql } from 'kysely'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { BudgetAlerts } from '../../../src/accounts/alerts/budget-alerts.ts'
import type { Budget } from '../../../src/domain/budgets.ts'
import { systemClock } from '../../../src/runtime/clock.ts'
import { systemRandom } from '../../../src/runtime/random.ts'
import type { RequestRow } from '../../../src/storage/schema/schema.ts'
import { createStore, type Store } from '../../../src/storage/store.ts'
import { someRecord } from '../../audit-record.ts'
import { enginesFor } from '../../contract/engines.ts'
import { requestRow } from '../../contract/request-row.ts'
import { someBudget } from '../../some-budget.ts'

const [[, engine]] = enginesFor('budget alerts') as [ReturnType<typeof enginesFor>[0]]
let store: Store
let db: Awaited<ReturnType<Awaited<ReturnType<typeof engine.fresh>>>>
let nowMs = Date.parse('2026-11-25T12:00:00Z')
/** How far the wall clock has jumped; windows do not. */
let wallStepMs = 0

const budget: Budget = someBudget({ unit: 'tokens', window: 'day', limit: 1_000 })

beforeEach(async () => {
  db = await (await engine.fresh())()
  store = createStore(db)
  nowMs = Date.parse('2026-11-25T12:00:00Z')
  wallStepMs = 0
  const account = { id: 'acc_1', name: 'Ada', planId: 'free', suspended: false, createdAtMs: 1 }
  await store.addAccountWithEmail(account, 'ada@example.com', someRecord())
  await store.putBudget(budget, 9, someRecord())
})
afterEach(() => db.destroy())

/** A process that notices alerts. */
function node({ sendsMail = true, hasWebhook = true } = {}): BudgetAlerts {
  return new BudgetAlerts({
    store,
    clock: systemClock(),
    nowMs: () => nowMs + wallStepMs,
    quotaNowMs: () => nowMs,
    random: systemRandom(),
    sendsMail,
    hasWebhook,
    budgetsUrl: 'https://app.example.com/account/budgets',
    onAdded: () => {},
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

async function messages(channel: string) {
  const rows = await db
    .selectFrom('alert_deliveries')
    .selectAll()
    .where('channel', '=', channel)
    .orderBy(sql`rowid`)
    .execute()
  return rows.map((row) => ({ ...row, body: JSON.parse(row.body) as Record<string, unknown> }))
}

const subjects = async () => (await messages('email')).map(({ body }) => body['subject'])

test('each threshold is told once for each window, by one of several nodes', async () => {
  await spend(499)
  await Promise.all([node().check(), node().check()])
  expect(await subjects()).toEqual([])
  await spend(500)
  await Promise.all([node().check(), node().check()])
  await node().check()
  expect(await subjects()).toEqual(['50% of a budget is spent'])
  const [first] = await messages('email')
  expect(first).toMatchObject({ target: 'ada@example.com', account_id: 'acc_1', state: 'waiting', attempts: 0 })
  expect(first!.body['text']).toContain('Spent: 500 tokens of 1,000 tokens')
  expect(first!.body['text']).toContain('https://app.example.com/account/budgets')
  await spend(1_000)
  await node().check()
  await node().check()
  expect((await subjects()).slice(1)).toEqual(['A budget is used up'])
  nowMs += 86_400_000
  await spend(850)
  await node().check()
  expect((await subjects()).slice(2)).toEqual(['80% of a budget is spent'])
})

test('the webhook gets the same alerts with the same event ID, also without a mail server', async () => {
  await spend(850)
  const nodes = [node({ sendsMail: false }), node({ sendsMail: false })]
  await Promise.all(nodes.map((one) => one.check()))
  await nodes[0]!.check()
  const windowMs = Date.parse('2026-11-25T00:00:00Z')
  expect(await messages('operator')).toMatchObject([
    {
      event_id: `bud_1-${windowMs}-80`,
      body: {
        object: 'event',
        id: `bud_1-${windowMs}-80`,
        type: 'budget.alert',
        created_at: '2026-11-25T12:00:00.000Z',
        threshold_percent: 80,
        budget: { id: 'bud_1', account: 'acc_1', unit: 'tokens', limit: 1_000, spent: 850, left: 150 },
        url: 'https://app.example.com/account/budgets',
      },
    },
  ])
  await spend(1_000)
  await nodes[1]!.check()
  expect((await messages('operator')).map(({ body }) => body['threshold_percent'])).toEqual([80, 100])
  expect(await messages('email')).toEqual([])
})

test('an alert that was noticed is stored with its messages, or not at all', async () => {
  await spend(500)
  await db.schema.alterTable('alert_deliveries').renameTo('hidden').execute()
  await expect(node().check()).rejects.toThrow()
  await db.schema.alterTable('hidden').renameTo('alert_deliveries').execute()
  await node().check()
  expect(await subjects()).toEqual(['50% of a budget is spent'])
})

/** A request that a budget of the account rejects now. */
async function refuse(): Promise<void> {
  const refused = {
    accountId: 'acc_1',
    code: 'budget_exceeded',
    requests: 1,
    lastRequestId: 'req_1',
    lastKeyId: 'key_1',
  }
  await store.addRefused([{ ...refused, lastAtMs: nowMs, hourMs: Math.floor(nowMs / 3_600_000) * 3_600_000 }])
}

/** A request that is admitted a second later. */
async function admit(changes: Partial<RequestRow> = {}): Promise<void> {
  nowMs += 1_000
  await db
    .insertInto('requests')
    .values(requestRow(`req_${nowMs}`, nowMs, changes))
    .execute()
}

test('a budget that rejects requests is used up, although something is left', async () => {
  await admit()
  await spend(900)
  await node().check()
  await refuse()
  await node().check()
  expect(await subjects()).toEqual(['80% of a budget is spent', 'A budget is used up'])
})

test('a budget is not used up while it still pays for requests that cost less than a rejected one', async () => {
  await refuse()
  await admit()
  await spend(820)
  await node().check()
  expect(await subjects()).toEqual(['80% of a budget is spent'])
  await spend(1_000)
  await node().check()
  expect((await subjects()).slice(1)).toEqual(['A budget is used up'])
})

test('a clock that jumps does not hide what is spent in the window of the ledger', async () => {
  wallStepMs = 86_400_000
  await spend(500)
  await node().check()
  expect(await subjects()).toEqual(['50% of a budget is spent'])
  // The sender gives up messages by the wall clock.
  expect((await messages('email'))[0]).toMatchObject({ created_at_ms: nowMs + wallStepMs })
})

test('a threshold that is passed in the last seconds of a fixed window is told after it', async () => {
  nowMs = Date.parse('2026-11-25T23:59:58Z')
  await spend(850)
  await refuse()
  nowMs = Date.parse('2026-11-26T00:01:59Z')
  // What happens in the new window says nothing about the last one.
  await admit()
  nowMs -= 1_000
  await spend(500)
  await node().check()
  await node().check()
  expect(await subjects()).toEqual(['A budget was used up', '50% of a budget is spent'])
  const [first] = await messages('email')
  expect(first!.body['text']).toContain('It was reset on Nov 26 at 00:00 UTC.')
  expect(first!.body['text']).not.toContain('Until then')
  const windows = (await messages('operator')).map(({ event_id: id }) => id)
  const [last, current] = [Date.parse('2026-11-25T00:00:00Z'), Date.parse('2026-11-26T00:00:00Z')]
  expect(windows).toEqual([`bud_1-${last}-100`, `bud_1-${current}-50`])
})

test('a window that ended longer ago is not told', async () => {
  nowMs = Date.parse('2026-11-25T23:59:58Z')
  await spend(850)
  nowMs = Date.parse('2026-11-26T00:02:00Z')
  await node().check()
  expect(await subjects()).toEqual([])
})

test('a refusal after the end of a window says nothing about it', async () => {
  nowMs = Date.parse('2026-11-25T23:59:58Z')
  await spend(850)
  nowMs = Date.parse('2026-11-26T00:00:01Z')
  await refuse()
  await node().check()
  expect(await subjects()).toEqual(['80% of a budget was spent'])
})

test('a budget is not used up because a fuller one rejects requests', async () => {
  await spend(820)
  await store.putBudget(someBudget({ id: 'bud_2', unit: 'usd', limit: 1_000 }), 9, someRecord())
  const bucketMs = Date.parse('2026-11-01T00:00:00Z')
  await db
    .insertInto('budget_spending')
    .values({ budget_id: 'bud_2', bucket_ms: bucketMs, account_id: 'acc_1', spent: 950, held: 0 })
    .execute()
  await refuse()
  await node().check()
  expect(await subjects()).toEqual(['80% of a budget is spent', 'A budget is used up'])
  expect((await messages('operator')).map(({ event_id: id }) => id.slice(0, 5))).toEqual(['bud_1', 'bud_2'])
})

test('a budget of a key or profile is used up if what it counts was rejected last', async () => {
  const hasRefused = (changes: Partial<Budget>) => store.hasBudgetRefusals(someBudget(changes), 0)
  const [own, other] = [
    { scope: 'key', subject: 'key_1' },
    { scope: 'key', subject: 'key_2' },
  ] as const
  await refuse()
  await admit({ key_id: 'key_2', profile: 'svc-router/frontier' })
  expect(await hasRefused(own)).toBe(true)
  expect(await hasRefused({ scope: 'key', subject: 'key_3', formerKeys: ['key_1'] })).toBe(true)
  expect(await hasRefused(other)).toBe(false)
  expect(await hasRefused({ scope: 'profile', subject: 'svc-router/fusion' })).toBe(true)
  expect(await hasRefused({ scope: 'profile', subject: 'svc-router/frontier' })).toBe(false)
  expect(await hasRefused({ scope: 'account', subject: '' })).toBe(false)
})

test('old counters, alerts, and messages are deleted, and those that hold something are not', async () => {
  await spend(900)
  await node().check()
  await db
    .insertInto('budget_spending')
    .values({ budget_id: 'bud_2', bucket_ms: 1, account_id: 'acc_1', spent: 0, held: 5 })
    .execute()
  expect(await store.deleteSpendingBefore(nowMs - 86_400_000, 100)).toBe(0)
  expect(await store.deleteSpendingBefore(nowMs + 1, 100)).toBeGreaterThan(0)
  expect(await store.deleteAlertsBefore(nowMs - 86_400_000, 100)).toBe(0)
  expect(await store.deleteAlertsBefore(nowMs + 1, 100)).toBeGreaterThan(0)
  const left = await db.selectFrom('budget_spending').select('budget_id').execute()
  expect(left.map((row) => row.budget_id)).toEqual(['bud_2'])
  expect(await db.selectFrom('budget_alerts').selectAll().execute()).toEqual([])
  expect(await db.selectFrom('alert_deliveries').selectAll().execute()).toEqual([])
})
