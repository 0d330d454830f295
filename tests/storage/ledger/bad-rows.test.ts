import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import type { Kysely } from 'kysely'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { type Budget, type BudgetClaim, nanoPerUsd } from '../../../src/domain/budgets.ts'
import type { Plan } from '../../../src/domain/plans.ts'
import { systemClock } from '../../../src/runtime/clock.ts'
import { openSqliteLedger, type SqliteLedger } from '../../../src/storage/ledger/ledger-sqlite.ts'
import { LedgerUnavailable } from '../../../src/storage/ledger/ledger-unavailable.ts'
import type { Tables } from '../../../src/storage/schema/schema.ts'
import { databasePath } from '../../../src/storage/sqlite/connect-sqlite.ts'
import { createStore } from '../../../src/storage/store.ts'
import { openEmptySqlite } from '../../empty-database.ts'
import { startReusedThread } from '../../reused-threads.ts'
import { someBudget } from '../../some-budget.ts'

const plan: Plan = { id: 'max', name: 'Max', requestsPerMinute: 1000, requestsPerMonth: 1000, premium: true }
const budget: Budget = someBudget({ limit: nanoPerUsd, createdAtMs: 0 })
const claim: BudgetClaim = {
  budgets: [budget],
  base: { nanoUsd: 700, tokens: 5 },
  perOutputToken: { nanoUsd: 10, tokens: 1 },
  leastOutput: 10,
  mostOutput: 10,
}
const answered = { charged: 1, attempts: [], totalMs: 1 }

let folder: string
let db: Kysely<Tables>
let ledger: SqliteLedger
let badRows: string[]
let failures: string[]

beforeEach(async () => {
  badRows = []
  failures = []
  folder = mkdtempSync(join(tmpdir(), 'svc-router-test-'))
  db = await openEmptySqlite(folder)
  ledger = await open()
})
afterEach(async () => {
  await ledger.close()
  await db.destroy()
  rmSync(folder, { recursive: true })
})

function open(): Promise<SqliteLedger> {
  const onBadRow = (reason: string): void => void badRows.push(reason)
  const onFailing = (reason: string): void => void failures.push(reason)
  return openSqliteLedger(folder, systemClock(), { onBadRow, onFailing, startThread: startReusedThread })
}

async function admit(id: string, accountId: string, asked?: BudgetClaim) {
  const facts = { keyId: 'key_1', profile: 'p', format: 'openai-chat', stream: false, units: 1 }
  return await ledger.admit({ id, accountId, ...facts }, plan, undefined, asked)
}

const rows = () => db.selectFrom('requests').select(['id', 'state']).orderBy('id').execute()
const spending = () => db.selectFrom('budget_spending').select(['budget_id', 'spent']).execute()

describe('one request that cannot be stored fails alone (contract 46.19)', () => {
  test.each([-1e308, -1, 0.1, 1e308, Number.NaN, Number.POSITIVE_INFINITY])(
    'a claim with %s is an error for its caller, and nothing of it is written',
    async (wrong) => {
      const claims: BudgetClaim[] = [
        { ...claim, leastOutput: wrong, mostOutput: wrong },
        { ...claim, base: { nanoUsd: wrong, tokens: 0 } },
        { ...claim, perOutputToken: { nanoUsd: wrong, tokens: 0 } },
      ]
      for (const [at, asked] of claims.entries())
        await expect(admit(`req_${at}`, 'acc_1', asked)).rejects.toThrow(RangeError)
      const other = await admit('req_9', 'acc_2')
      await other.durable()
      expect(await rows()).toEqual([{ id: 'req_9', state: 'open' }])
    },
  )

  test.each(['{', 'null', '[null]', '[{"budgetId":"bud_1","bucketMs":0,"amount":-5}]'])(
    'damaged holds, such as %s, hide nothing else that an account spent',
    async (holds) => {
      const admissions = [await admit('req_1', 'acc_1', claim), await admit('req_2', 'acc_1', claim)]
      admissions[0]!.settle(answered, 'done', { nanoUsd: 7, tokens: 0 })
      await ledger.flush()
      await db.updateTable('requests').set({ holds }).where('id', '=', 'req_2').execute()
      const found = await createStore(db).readBudgetSpending('acc_1', 0)
      expect(found).toMatchObject([{ budgetId: 'bud_1', spent: 7, held: 0 }])
      admissions[1]!.settle(answered, 'none', { nanoUsd: 0, tokens: 0 })
    },
  )

  test('a spending that is no amount costs what the request held', async () => {
    for (const [at, nanoUsd] of [Number.NaN, -5, Number.NEGATIVE_INFINITY].entries()) {
      const admission = await admit(`req_${at}`, 'acc_1', claim)
      admission.settle(answered, 'done', { nanoUsd, tokens: 0 })
    }
    await ledger.flush()
    expect(await spending()).toEqual([{ budget_id: 'bud_1', spent: 3 * 800 }])
  })

  test('a spending larger than any budget is counted as the largest, and can be read again', async () => {
    for (let at = 0; at < 12; at += 1) {
      const asked = { ...claim, budgets: [{ ...budget, id: `bud_${at % 2}` }] }
      const admission = await admit(`req_${at}`, `acc_${at}`, asked)
      admission.settle(answered, 'done', { nanoUsd: 1e300, tokens: 0 })
    }
    await ledger.flush()
    expect((await spending()).map(({ spent }) => spent)).toEqual([6e15, 6e15])
  })

  test('a row of a budget that the database refuses is left out of its batch, and the others are written', async () => {
    using database = new DatabaseSync(databasePath(folder))
    database.exec(`create trigger refusing before insert on budget_spending when new.spent = 13
      begin select raise(abort, 'no'); end`)
    for (const [at, nanoUsd] of [13, 14].entries()) {
      const asked = { ...claim, budgets: [{ ...budget, id: `bud_${at}` }] }
      const admission = await admit(`req_${at}`, `acc_${at}`, asked)
      admission.settle(answered, 'done', { nanoUsd, tokens: 0 })
    }
    await ledger.flush()
    expect(badRows).toEqual(['ERR_SQLITE_ERROR 1811'])
    expect([failures, ledger.healthy()]).toEqual([[], true])
    expect(await spending()).toEqual([{ budget_id: 'bud_1', spent: 14 }])
    expect(database.prepare('select count(*) as count from requests').get()).toEqual({ count: 2 })
  })

  test('a request that the database refuses is not admitted, and nothing is admitted until it is written', async () => {
    using database = new DatabaseSync(databasePath(folder))
    database.exec(`create trigger refusing before insert on requests begin select raise(abort, 'no'); end`)
    const refused = await admit('req_1', 'acc_1')
    await expect(refused.durable()).rejects.toThrow(LedgerUnavailable)
    expect([badRows, ledger.healthy()]).toEqual([[], false])
    database.exec('drop trigger refusing')
    await expect.poll(() => ledger.healthy()).toBe(true)
  })

  test('a start settles a hold that is no amount with the whole budget, and others with what they hold', async () => {
    for (const [at, id] of ['req_1', 'req_2', 'req_3', 'req_4'].entries())
      await (await admit(id, 'acc_1', { ...claim, budgets: [{ ...budget, id: `bud_${at}` }] })).durable()
    await ledger.close()
    using database = new DatabaseSync(databasePath(folder))
    database.exec('pragma foreign_keys = off')
    const amount = (value: string, id: string): void => {
      database.prepare(`update requests set holds = replace(holds, '"amount":800', ?) where id = ?`).run(value, id)
    }
    amount('"amount":null', 'req_1')
    amount('"amount":-1e308', 'req_2')
    database.exec(`update requests set holds = 'broken' where id = 'req_3'`)
    database.exec(`insert into budgets (id, account_id, scope, subject, unit, period, rolling, amount, set_by, created_at_ms)
      values ('bud_0', 'acc_1', 'account', '', 'usd', 'month', 0, 1000000000, 'account', 0)`)
    ledger = await open()
    expect(badRows).toEqual(['holds', 'holds', 'holds'])
    const spent = new Map((await spending()).map((row) => [row.budget_id, row.spent]))
    expect(Object.fromEntries(spent)).toEqual({ bud_0: nanoPerUsd, bud_1: 0, bud_3: 800 })
    expect((await rows()).every(({ state }) => state === 'lost')).toBe(true)
  })
})
