import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import type { Worker } from 'node:worker_threads'
import * as fc from 'fast-check'
import type { Kysely } from 'kysely'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { ServiceError } from '../../../src/domain/errors.ts'
import type { Plan } from '../../../src/domain/plans.ts'
import type { RequestOpening } from '../../../src/domain/requests.ts'
import type { Admission } from '../../../src/gateway/ports.ts'
import { type Clock, systemClock } from '../../../src/runtime/clock.ts'
import { idMinter, lowestIdAt } from '../../../src/runtime/ids.ts'
import { systemRandom } from '../../../src/runtime/random.ts'
import {
  DeliveryMarks,
  firstMark,
  joinHistories,
  markCapacity,
  mayHaveBeenDelivered,
  readDeliveryHistory,
} from '../../../src/storage/ledger/delivery-marks.ts'
import { openSqliteLedger, type SqliteLedger } from '../../../src/storage/ledger/ledger-sqlite.ts'
import { LedgerUnavailable } from '../../../src/storage/ledger/ledger-unavailable.ts'
import type { Tables } from '../../../src/storage/schema/schema.ts'
import { databasePath } from '../../../src/storage/sqlite/connect-sqlite.ts'
import { DataFolderInUse } from '../../../src/storage/sqlite/data-folder-lock.ts'
import { failureReason } from '../../../src/storage/sqlite/failure-reason.ts'
import { SqliteThread } from '../../../src/storage/sqlite/sqlite-thread.ts'
import { createStore } from '../../../src/storage/store.ts'
import { openEmptySqlite } from '../../empty-database.ts'
import { startReusedThread } from '../../reused-threads.ts'
import { hasAnswer, storeAnswer } from '../stored-answer.ts'

const startMs = Date.UTC(2026, 10, 20, 12)
const plan: Plan = { id: 'max', name: 'Max', requestsPerMinute: 1000, requestsPerMonth: 1000, premium: true }
const answered = { charged: 1, attempts: [], totalMs: 1 }
const refunded = { charged: 0, attempts: [], totalMs: 1 }

let nowMs: number
/** The time is set by the test; delays are real. */
const clock: Clock = {
  nowMs: () => nowMs,
  monotonicMs: () => nowMs - startMs,
  after: (delayMs, run) => systemClock().after(delayMs, run),
}
const mintId = idMinter('req_', () => nowMs, systemRandom())
let folder: string
let db: Kysely<Tables>
const opened: SqliteLedger[] = []
let reasons: string[]

beforeEach(async () => {
  nowMs = startMs
  reasons = []
  folder = mkdtempSync(join(tmpdir(), 'svc-router-test-'))
  db = await openEmptySqlite(folder)
})
afterEach(async () => {
  for (const ledger of opened.splice(0)) await ledger.close()
  await db.destroy()
  rmSync(folder, { recursive: true })
})

async function open(bootId?: string, startThread = startReusedThread): Promise<SqliteLedger> {
  const ledger = await openSqliteLedger(folder, clock, {
    busyTimeoutMs: 20,
    startThread,
    onFailing: (reason) => void reasons.push(reason),
    onDied: (reason) => void reasons.push(`died: ${reason}`),
    ...(bootId && { bootId }),
  })
  opened.push(ledger)
  return ledger
}

function openingOf(changes: Partial<RequestOpening> = {}): RequestOpening {
  const facts = { accountId: 'acc_1', keyId: 'key_1', profile: 'svc-router/frontier', format: 'openai-chat' }
  return { id: mintId(), ...facts, stream: false, units: 1, ...changes }
}

const usedUnits = (periodId = '2026-11') => createStore(db).usedUnits('acc_1', periodId)

describe('a data folder', () => {
  test('only one ledger at a time can open it, and the second gets an error', async () => {
    const first = await open()
    await expect(open()).rejects.toThrow(DataFolderInUse)
    await expect(open()).rejects.toThrow(`data folder in use: another svc-router runs on ${folder}`)
    await first.close()
    await open()
  })
})

describe('time', () => {
  test('no 60 s ever contain more requests than the limit, even across restarts, and a request after Retry-After is admitted', async () => {
    let count = 0
    // A restart takes longer than all other steps together.
    const step = fc.oneof(
      { arbitrary: fc.constant('ask' as const), weight: 3 },
      { arbitrary: fc.constant('restart' as const), weight: 1 },
      { arbitrary: fc.nat(70_000), weight: 3 },
    )
    let ledger = await open()
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 1, max: 3 }), fc.array(step, { maxLength: 12 }), async (limit, steps) => {
        const accountId = `acc_${++count}`
        const limited = { ...plan, requestsPerMinute: limit }
        const admittedMs: number[] = []
        const ask = async () => {
          const admission = await ledger.admit(openingOf({ accountId }), limited)
          const oldestMs = admittedMs[admittedMs.length - limit]
          if (oldestMs !== undefined) expect(nowMs - oldestMs).toBeGreaterThanOrEqual(60_000)
          admittedMs.push(nowMs)
          const { quotaUsed, quotaRemaining, quotaLimit } = admission.signals()
          expect(quotaUsed + quotaRemaining).toBe(quotaLimit)
          admission.settle(refunded, 'none')
        }
        for (const step of steps) {
          if (typeof step === 'number') nowMs += step / 3
          if (step === 'restart') {
            await ledger.close()
            ledger = await open()
          }
          if (step !== 'ask') continue
          try {
            await ask()
          } catch (error) {
            if (!(error instanceof ServiceError)) throw error
            nowMs += error.facts.retryAfterSeconds! * 1000
            await ask()
          }
        }
      }),
      { numRuns: 25 },
    )
  })

  test('a request admitted in December and settled in January counts for December', async () => {
    nowMs = Date.UTC(2026, 11, 31, 23, 59, 59)
    const ledger = await open()
    const late = await ledger.admit(openingOf(), plan)
    nowMs = Date.UTC(2027, 0, 1)
    expect(await ledger.signals('acc_1', plan)).toMatchObject({ quotaUsed: 0, rateRemaining: 999 })
    const next = await ledger.admit(openingOf(), plan)
    late.settle(answered, 'none')
    next.settle(answered, 'none')
    expect(await ledger.signals('acc_1', plan)).toMatchObject({ quotaUsed: 1, rateRemaining: 998 })
    await ledger.close()
    expect([await usedUnits('2026-12'), await usedUnits('2027-01')]).toEqual([1, 1])
  })
})

describe('recovery after a process died', () => {
  const boots = [
    ['the machine did not reboot', 'boot-1', 'boot-1'],
    ['the machine rebooted', 'boot-1', 'boot-2'],
  ] as const
  const left = [
    ['an open request', { state: 'open', charged: 0, due_mark: null }],
    ['a stream that had begun', { state: 'delivered', charged: 0, due_mark: null }],
    ['a charged answer that was due', { state: 'done', charged: 1, due_mark: 1 }],
    ['a finished request', { state: 'done', charged: 1, due_mark: null }],
  ] as const
  const lost = (charged: number) => ({ state: 'lost', charged })
  const done = { state: 'done', charged: 1 }
  /** For each row: unmarked and marked on the same boot, unmarked and marked after a reboot. */
  const expected = {
    'an open request': [lost(0), lost(1), lost(1), lost(1)],
    'a stream that had begun': [lost(1), lost(1), lost(1), lost(1)],
    'a charged answer that was due': [lost(0), done, done, done],
    'a finished request': [done, done, done, done],
  }
  const table = boots.flatMap(([boot, before, after], bootIndex) =>
    left.flatMap(([name, row]) =>
      [false, true].map((marked) => {
        const outcome = expected[name][bootIndex * 2 + (marked ? 1 : 0)]!
        return { name, marked: marked ? 'with' : 'without', boot, before, after, row, outcome }
      }),
    ),
  )

  async function insertUnsettled(id: string, row: { state: string; charged: number; due_mark: number | null }) {
    const facts = { account_id: 'acc_1', key_id: 'key_1', profile: 'p', format: 'openai-chat', stream: 0, units: 1 }
    const times = { period_id: '2026-11', admitted_at_ms: startMs - 1000 }
    await db
      .insertInto('requests')
      .values({ id, ...facts, ...times, ...row })
      .execute()
    if (row.charged === 0) return
    await db.insertInto('usage').values({ account_id: 'acc_1', period_id: '2026-11', used: row.charged }).execute()
  }

  test.each(table)('$name $marked a mark, if $boot, becomes $outcome', async (each) => {
    const id = mintId()
    await insertUnsettled(id, each.row)
    await storeAnswer(db, id)
    const marks = DeliveryMarks.create(folder, each.before)
    marks.add('req_of_another')
    if (each.marked === 'with') marks.add(id)
    marks.close()
    const ledger = await open(each.after)
    expect(await createStore(db).findRequest(id)).toMatchObject(each.outcome)
    expect(await usedUnits()).toBe(each.outcome.charged)
    expect(await hasAnswer(db, id), 'an answer is readable if it is charged').toBe(each.outcome.charged === 1)
    expect(await ledger.signals('acc_1', plan)).toMatchObject({ quotaUsed: each.outcome.charged, rateRemaining: 999 })
  })

  test.each([
    ['if the system does not identify its boots', undefined],
    ['if there are no marks', 'boot-1'],
  ])('open requests are charged %s', async (_case, bootId) => {
    const id = mintId()
    await insertUnsettled(id, { state: 'open', charged: 0, due_mark: null })
    const ledger = await openSqliteLedger(folder, clock, { bootId, startThread: startReusedThread })
    opened.push(ledger)
    expect(await createStore(db).findRequest(id)).toMatchObject(lost(1))
  })

  test('a charged answer older than the ring of marks counts as delivered', async () => {
    const id = mintId()
    await insertUnsettled(id, { state: 'done', charged: 1, due_mark: 1 })
    const marks = DeliveryMarks.create(folder, 'boot-1')
    for (let count = 0; count <= markCapacity; count++) marks.add(`req_${count}`)
    marks.close()
    await open('boot-1')
    expect(await createStore(db).findRequest(id)).toMatchObject(done)
  })

  test('a second recovery changes nothing', async () => {
    const id = mintId()
    await insertUnsettled(id, { state: 'open', charged: 0, due_mark: null })
    for (const bootId of ['boot-1', 'boot-1', 'boot-2']) await (await open(bootId)).close()
    expect(await createStore(db).findRequest(id)).toMatchObject(lost(1))
    expect(await usedUnits()).toBe(1)
  })

  test('recovery finds a request whose ID was minted long before it was admitted', async () => {
    const first = await open('boot-1')
    const slow = openingOf({ id: `${lowestIdAt('req_', startMs - 3_600_000)}0000000000000000` })
    for (let step = 0; step < 4; step++) {
      const admission = await first.admit(openingOf(), plan)
      admission.settle(answered, 'none')
      await admission.durable()
      nowMs += 15_000
    }
    const admission = await first.admit(slow, plan)
    await admission.durable()
    await first.close()
    await open('boot-1')
    expect(await createStore(db).findRequest(slow.id)).toMatchObject(lost(0))
  })
})

describe('an account whose counters were evicted from memory', () => {
  test('its counters continue after being read again, and an account with a running request is not evicted', async () => {
    const ledger = await openSqliteLedger(folder, clock, { maxMeters: 2, startThread: startReusedThread })
    opened.push(ledger)
    const running = await ledger.admit(openingOf({ accountId: 'acc_running' }), plan)
    for (let round = 1; round <= 4; round++) {
      for (const accountId of ['acc_1', 'acc_2', 'acc_3', 'acc_4', 'acc_5']) {
        const admission = await ledger.admit(openingOf({ accountId }), plan)
        expect(admission.signals()).toMatchObject({ quotaUsed: round, rateRemaining: 1000 - round })
        admission.settle(answered, 'none')
        // In other rounds the account is read again while its last settlement is still being written.
        if (round % 2 === 0) await admission.durable()
      }
      nowMs += 1000
    }
    expect(running.signals()).toMatchObject({ quotaUsed: 1, rateRemaining: 999 })
    running.settle(answered, 'none')
    expect(await ledger.signals('acc_running', plan)).toMatchObject({ quotaUsed: 1, rateRemaining: 999 })
    nowMs += 60_000
    for (const accountId of ['acc_1', 'acc_2', 'acc_3']) {
      expect(await ledger.signals(accountId, plan)).toMatchObject({ quotaUsed: 4, rateRemaining: 1000 })
    }
  })
})

describe('delivery marks', () => {
  test('they are read back in order, and of too many the latest remain', () => {
    const marks = DeliveryMarks.create(folder, 'boot-1')
    for (let count = 1; count <= markCapacity + 2; count++) marks.add(`req_${count}`)
    marks.close()
    const { complete, ids, next } = readDeliveryHistory(folder, 'boot-1')
    expect([complete, next, ids.size]).toEqual([true, [markCapacity + 3], markCapacity])
    expect([ids.has('req_2'), ids.has('req_3'), ids.has(`req_${markCapacity + 2}`)]).toEqual([false, true, true])
  })

  test('a worker continues the ring of the one before, unless the machine restarted', () => {
    const first = firstMark(1)
    const marks = DeliveryMarks.continue(folder, 'boot-1', first)
    marks.add('req_1')
    marks.close()
    const next = DeliveryMarks.continue(folder, 'boot-1', first)
    expect(next.next).toBe(first + 1)
    next.add('req_2')
    next.close()
    const { complete, ids } = readDeliveryHistory(folder, 'boot-1', first)
    expect([complete, ids]).toEqual([true, new Set(['req_1', 'req_2'])])
    const afterReboot = DeliveryMarks.continue(folder, 'boot-2', first)
    expect(afterReboot.next).toBe(first)
    afterReboot.close()
    expect(readDeliveryHistory(folder, 'boot-2', first)).toMatchObject({ complete: true, ids: new Set() })
  })

  test('of several rings, the number of the due mark says which one decides', () => {
    const ring = (worker: number | undefined, marks: number, ...ids: string[]) => {
      return { complete: true, ids: new Set(ids), next: [firstMark(worker) + marks] }
    }
    const history = joinHistories([ring(undefined, 0), ring(0, 2 * markCapacity, 'req_1'), ring(1, 0, 'req_2')])
    const delivered = (id: string, dueMark: number | null) => mayHaveBeenDelivered(id, dueMark, history)
    expect([delivered('req_1', null), delivered('req_2', null), delivered('req_3', null)]).toEqual([true, true, false])
    // The mark of the first ring may be overwritten, that of the second one cannot be.
    expect([delivered('req_3', firstMark(0)), delivered('req_3', firstMark(1))]).toEqual([true, false])
    expect(delivered('req_3', firstMark(0) + 2 * markCapacity)).toBe(false)
    // Nothing is known of a ring that is gone.
    expect(delivered('req_3', firstMark(2))).toBe(true)
    const incomplete = joinHistories([history, { ...ring(2, 0), complete: false }])
    expect(mayHaveBeenDelivered('req_3', null, incomplete)).toBe(true)
  })
})

describe('the order of calls', () => {
  test('an answer cannot be delivered before its record is on disk', async () => {
    const ledger = await open()
    const admission = await ledger.admit(openingOf(), plan)
    expect(() => admission.deliver()).toThrow(LedgerUnavailable)
    await admission.durable()
    admission.deliver()
    admission.settle(answered, 'done')
  })

  test('the start of a stream is on disk before the stream ends', async () => {
    const ledger = await open()
    const opening = openingOf({ stream: true })
    const admission = await ledger.admit(opening, plan)
    await admission.durable()
    admission.deliver()
    await admission.durable()
    expect(await createStore(db).findRequest(opening.id)).toMatchObject({ state: 'delivered', charged: 0 })
    expect((await ledger.signals('acc_1', plan)).quotaUsed).toBe(1)
    admission.settle(answered, 'done')
    await ledger.close()
    expect(await createStore(db).findRequest(opening.id)).toMatchObject({ state: 'done', charged: 1 })
  })

  test('after a clean close nothing is undecided, even after a reboot', async () => {
    const ledger = await open('boot-1')
    const opening = openingOf()
    const admission = await ledger.admit(opening, plan)
    admission.settle(answered, 'due')
    await admission.durable()
    admission.deliver()
    await ledger.close()
    const rows = await db.selectFrom('requests').select(['state', 'charged', 'due_mark']).execute()
    expect(rows).toEqual([{ state: 'done', charged: 1, due_mark: null }])
  })

  test('an answer that is charged while the ledger closes, and never delivered, is decided by the next start', async () => {
    const opening = openingOf()
    let admission: Admission | undefined
    /** Its thread still writes what is settled after the flush of `close`. */
    const ledger = await open(undefined, async (start, listener) => {
      const thread = await startReusedThread(start, listener)
      const close = thread.close.bind(thread)
      thread.close = async (finishFrom) => {
        admission!.settle(answered, 'due')
        await admission!.durable()
        return close(finishFrom)
      }
      return thread
    })
    admission = await ledger.admit(opening, plan)
    await admission.durable()
    await ledger.close()
    expect(await createStore(db).findRequest(opening.id)).toMatchObject({ state: 'done', charged: 1 })
    await open()
    expect(await createStore(db).findRequest(opening.id)).toMatchObject({ state: 'lost', charged: 0 })
    expect(await usedUnits()).toBe(0)
  })
})

describe('while the disk cannot be written', () => {
  test('waiting answers are rejected and not charged, nothing is admitted, and everything is recorded after the disk recovers', async () => {
    const ledger = await open()
    const before = await ledger.admit(openingOf({ stream: true }), plan)
    await before.durable()

    const blocker = new DatabaseSync(databasePath(folder))
    blocker.exec('begin immediate')
    const waiting = openingOf()
    const due = openingOf()
    const later = openingOf()
    const first = await ledger.admit(waiting, plan)
    const second = await ledger.admit(due, plan)
    const third = await ledger.admit(later, plan)
    second.settle(answered, 'due')
    await Promise.all([
      expect(first.durable()).rejects.toThrow(LedgerUnavailable),
      expect(second.durable()).rejects.toThrow(LedgerUnavailable),
    ])
    expect(ledger.healthy()).toBe(false)
    expect(reasons, 'SQLite’s code for busy').toEqual(['ERR_SQLITE_ERROR 5'])
    expect(() => ledger.admit(openingOf(), plan)).toThrow(LedgerUnavailable)
    third.settle(answered, 'due')
    await expect(third.durable()).rejects.toThrow(LedgerUnavailable)
    first.settle(refunded, 'none')
    for (const admission of [first, second, third]) expect(() => admission.deliver()).toThrow(LedgerUnavailable)
    before.deliver()
    before.settle(answered, 'done')
    expect(await ledger.signals('acc_1', plan)).toMatchObject({ quotaUsed: 1, rateRemaining: 996 })

    blocker.exec('rollback')
    blocker.close()
    await expect.poll(() => ledger.healthy(), { timeout: 10_000 }).toBe(true)
    await expect(second.durable()).rejects.toThrow(LedgerUnavailable)
    const after = await ledger.admit(openingOf(), plan)
    await after.durable()
    after.settle(refunded, 'none')
    await ledger.close()
    const store = createStore(db)
    expect(await store.findRequest(waiting.id)).toMatchObject({ state: 'done', charged: 0 })
    expect(await store.findRequest(due.id)).toMatchObject({ state: 'lost', charged: 0 })
    expect(await store.findRequest(later.id)).toMatchObject({ state: 'lost', charged: 0 })
    expect(await usedUnits()).toBe(1)
  })
})

describe('reports about a ledger that cannot write', () => {
  test('a clean close reports nothing', async () => {
    const ledger = await open()
    const admission = await ledger.admit(openingOf(), plan)
    admission.settle(answered, 'none')
    await ledger.close()
    expect(reasons).toEqual([])
  })

  test('when the writer dies, nothing more is admitted, and the next ledger decides the running requests', async () => {
    const started = once(process, 'worker', { signal: AbortSignal.timeout(10_000) })
    const ledger = await open(undefined, (start, listener) => SqliteThread.start(start, listener))
    const [worker] = (await started) as [Worker]
    const opening = openingOf()
    await (await ledger.admit(opening, plan)).durable()
    await worker.terminate()
    expect(reasons).toEqual(['exited', 'died: exited'])
    expect(ledger.healthy()).toBe(false)
    expect(() => ledger.admit(openingOf(), plan)).toThrow(LedgerUnavailable)
    await ledger.close()
    await open()
    expect(await createStore(db).findRequest(opening.id)).toMatchObject({ state: 'lost', charged: 0 })
  })

  test('a report is a code or the class of a bug, never a message', () => {
    expect(failureReason(Object.assign(new Error('x'), { code: 'ERR_SQLITE_ERROR', errcode: 13 }))).toBe(
      'ERR_SQLITE_ERROR 13',
    )
    expect(failureReason(Object.assign(new Error('x'), { code: 'a prompt' }))).toBe('Error')
    expect([failureReason(new TypeError('x')), failureReason('a prompt')]).toEqual(['TypeError', 'unknown'])
  })
})
