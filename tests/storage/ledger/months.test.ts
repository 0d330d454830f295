import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Kysely } from 'kysely'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { BudgetClaim } from '../../../src/domain/budgets.ts'
import type { Plan } from '../../../src/domain/plans.ts'
import type { RequestOpening } from '../../../src/domain/requests.ts'
import type { Admission } from '../../../src/gateway/ports.ts'
import { type Clock, systemClock } from '../../../src/runtime/clock.ts'
import { dayMs, hourMs } from '../../../src/runtime/durations.ts'
import { idMinter } from '../../../src/runtime/ids.ts'
import { systemRandom } from '../../../src/runtime/random.ts'
import { openSqliteLedger, type SqliteLedger } from '../../../src/storage/ledger/ledger-sqlite.ts'
import { LedgerUnavailable } from '../../../src/storage/ledger/ledger-unavailable.ts'
import type { Tables } from '../../../src/storage/schema/schema.ts'
import { createStore } from '../../../src/storage/store.ts'
import { openEmptySqlite } from '../../empty-database.ts'
import { startReusedThread } from '../../reused-threads.ts'
import { someBudget } from '../../some-budget.ts'

const decemberMs = Date.UTC(2026, 11, 1)
const plan: Plan = { id: 'max', name: 'Max', requestsPerMinute: 1000, requestsPerMonth: 3, premium: true }
const answered = { charged: 1, attempts: [], totalMs: 1 }

let wallMs: number
let monotonicMs: number
/** The time is set by the test; delays are real. */
const clock: Clock = {
  nowMs: () => wallMs,
  monotonicMs: () => monotonicMs,
  after: (delayMs, run) => systemClock().after(delayMs, run),
}
const mintId = idMinter('req_', () => wallMs, systemRandom())
let folder: string
let db: Kysely<Tables>
let ledger: SqliteLedger

beforeEach(async () => {
  wallMs = decemberMs - hourMs
  monotonicMs = 7_000
  folder = mkdtempSync(join(tmpdir(), 'svc-router-test-'))
  db = await openEmptySqlite(folder)
  await start()
})
afterEach(async () => {
  await ledger.close()
  await db.destroy()
  rmSync(folder, { recursive: true })
})

async function start(): Promise<void> {
  ledger = await openSqliteLedger(folder, clock, { startThread: startReusedThread, uptimeMs: () => monotonicMs })
}

async function restart(): Promise<void> {
  await ledger.close()
  await start()
}

function pass(ms: number): void {
  wallMs += ms
  monotonicMs += ms
}

/** The wall clock is set, and has kept its new time for an hour: from now on it counts. */
function setClock(byMs: number): void {
  wallMs += byMs
  ledger.nowMs()
  pass(hourMs)
  ledger.nowMs()
}

function admit(claim?: BudgetClaim): Admission | Promise<Admission> {
  const facts = { accountId: 'acc_1', keyId: 'key_1', profile: 'svc-router/frontier', format: 'openai-chat' as const }
  const opening: RequestOpening = { id: mintId(), ...facts, stream: false, units: 1 }
  return ledger.admit(opening, plan, undefined, claim)
}

async function charge(count: number): Promise<void> {
  for (let done = 0; done < count; done++) (await admit()).settle(answered, 'none')
  await ledger.flush()
}

const isRefused = { code: 'insufficient_quota' }
const usedUnits = (periodId: string) => createStore(db).usedUnits('acc_1', periodId)

describe('the month is never exceeded, although a clock is set (contract 5.12, 5.14)', () => {
  test('a month that begins again after a restart continues', async () => {
    pass(hourMs)
    await charge(2)
    wallMs -= 2_000
    await restart()
    await charge(1)
    expect(await ledger.signals('acc_1', plan)).toMatchObject({ quotaUsed: 1, quotaReset: decemberMs / 1000 })
    pass(2_000)
    expect(await ledger.signals('acc_1', plan)).toMatchObject({ quotaUsed: 2 })
    await charge(1)
    await expect(async () => admit()).rejects.toMatchObject(isRefused)
    expect([await usedUnits('2026-11'), await usedUnits('2026-12')]).toEqual([1, 3])
  })

  test('an earlier month continues when the clock is set right, although a request of the wrong one ends first', async () => {
    await charge(2)
    wallMs += 10 * dayMs
    await restart()
    const running = await admit()
    setClock(-10 * dayMs - 2 * hourMs)
    expect(running.signals()).toMatchObject({ quotaUsed: 1, quotaReset: Date.UTC(2027, 0, 1) / 1000 })
    running.settle(answered, 'none')
    expect(await ledger.signals('acc_1', plan)).toMatchObject({ quotaUsed: 2, quotaReset: decemberMs / 1000 })
    await charge(1)
    await expect(async () => admit()).rejects.toMatchObject(isRefused)
    pass(2 * hourMs)
    expect(await ledger.signals('acc_1', plan)).toMatchObject({ quotaUsed: 1 })
    await charge(2)
    await expect(async () => admit()).rejects.toMatchObject(isRefused)
    expect([await usedUnits('2026-11'), await usedUnits('2026-12')]).toEqual([3, 3])
  })
})

test('once what a decision needs was read, nothing is waited for', async () => {
  await ledger.prepare('acc_1', false)
  expect(ledger.prepare('acc_1', false)).toBeUndefined()
  const claim = claimOf(1)
  expect(admit()).not.toBeInstanceOf(Promise)
  await ledger.prepare('acc_1', true)
  expect(admit(claim)).not.toBeInstanceOf(Promise)
  await restart()
  await ledger.prepare('acc_1', true)
  expect(ledger.prepare('acc_1', true)).toBeUndefined()
  expect(admit(claim)).not.toBeInstanceOf(Promise)
})

test('nothing is read for a decision that cannot be recorded', async () => {
  await ledger.close()
  expect(() => ledger.prepare('acc_1', false)).toThrow(LedgerUnavailable)
})

const budget = someBudget({ unit: 'tokens', limit: 10, window: 'month', rolling: false })
const claimOf = (tokens: number): BudgetClaim => ({
  budgets: [budget],
  base: { nanoUsd: 0, tokens },
  perOutputToken: { nanoUsd: 0, tokens: 0 },
  leastOutput: 0,
  mostOutput: 0,
})

describe('budgets are never exceeded, although a clock is set (contract 46.2, 46.3)', () => {
  const spend = async (tokens: number): Promise<void> => {
    const admission = await admit(claimOf(tokens))
    admission.settle(answered, 'none', { nanoUsd: 0, tokens })
    await ledger.flush()
  }

  test('a window that begins again continues, also one that was over long before the process started', async () => {
    await spend(6)
    wallMs += 70 * dayMs
    await restart()
    const running = await admit(claimOf(10))
    setClock(-70 * dayMs - 2 * hourMs)
    await expect(async () => admit(claimOf(5))).rejects.toMatchObject({ code: 'budget_exceeded' })
    await spend(4)
    await expect(async () => admit(claimOf(1))).rejects.toMatchObject({ code: 'budget_exceeded' })
    // What runs is still held in its own window.
    setClock(70 * dayMs)
    await expect(async () => admit(claimOf(1))).rejects.toMatchObject({ code: 'budget_held' })
    running.settle(answered, 'none', { nanoUsd: 0, tokens: 10 })
    await expect(async () => admit(claimOf(1))).rejects.toMatchObject({ code: 'budget_exceeded' })
  })
})
