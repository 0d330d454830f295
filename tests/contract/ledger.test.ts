import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type KeyRate, periodAt } from '../../src/domain/account-meter.ts'
import { ServiceError } from '../../src/domain/errors.ts'
import type { FusionRecord } from '../../src/domain/fusion-record.ts'
import type { Plan } from '../../src/domain/plans.ts'
import type { RequestOutcome } from '../../src/domain/requests.ts'
import type { Admission, Ledger } from '../../src/gateway/ports.ts'
import { LedgerUnavailable } from '../../src/storage/ledger/ledger-unavailable.ts'
import { createStore } from '../../src/storage/store.ts'
import { postgresEngine } from './engines.ts'
import { type ClosableLedger, ledgersFor, type LedgerPlace, roomy } from './ledger-engines.ts'

const { clock, openAt, stores, engines, openingOf } = ledgersFor('the ledger')

const answered: RequestOutcome = {
  charged: 1,
  attempts: [{ backend: 'b-1', outcome: 'answered', status: 200, ms: 12, upstreamRequestId: 'up-1' }],
  passedBy: [{ backend: 'b-0', reason: 'rate' }],
  usage: { inputTokens: 3, outputTokens: 4, cachedTokens: 1, reasoningTokens: 2, source: 'counted' },
  firstContentMs: 7,
  totalMs: 12,
}
const deliberated: FusionRecord = {
  preset: 'balanced',
  prompts: { panel: 'fusion-panel/1' },
  mode: 'synthesised',
  asked: 3,
  answered: 2,
  quorum: 2,
  isSelfPanel: false,
  dropOuts: [{ member: 'b-3', why: 'timeout' }],
  verdict: 'synthesize',
  answerType: 'open',
  disagreements: 1,
  degraded: ['member_lost'],
  calls: [{ role: 'panel', member: 'b-1', status: 'answered', ms: 5, usage: answered.usage!, costUsd: 0.01 }],
  panelMs: 5,
  judgeMs: 3,
  totalMs: 12,
  costUsd: 0.01,
}
const failed: RequestOutcome = {
  charged: 0,
  attempts: [{ backend: 'b-1', outcome: 'timeout', ms: 30 }],
  errorCode: 'server_is_overloaded',
  totalMs: 31,
}

/** Passes a request through the ledger like the gateway. */
async function answer(ledger: Ledger, opening = openingOf(), plan = roomy, outcome = answered): Promise<Admission> {
  const admission = await ledger.admit(opening, plan)
  await admission.durable()
  admission.deliver()
  admission.settle(outcome, 'done')
  return admission
}

/** The error of a rejected admission. */
async function rejectionOf(ledger: Ledger, plan: Plan, rate?: KeyRate): Promise<unknown> {
  try {
    await ledger.admit(openingOf(rate === undefined ? {} : { keyId: rate.keyId }), plan, rate)
  } catch (error) {
    return error
  }
  throw new Error('it was admitted')
}

/** Admits many requests at once; returns the error codes of the rejected ones. */
async function admitMany(ledgers: readonly Ledger[], count: number, plan: Plan, rate?: KeyRate) {
  const results = await Promise.allSettled(
    Array.from({ length: count }, async (_, index) => {
      const admission = await ledgers[index % ledgers.length]!.admit(openingOf(), plan, rate)
      await admission.durable()
      return admission
    }),
  )
  const admitted = results.filter((result) => result.status === 'fulfilled').map(({ value }) => value)
  const refused = results.filter((result) => result.status === 'rejected').map(({ reason }) => reason as unknown)
  return { admitted, codes: new Set(refused.map((error) => (error instanceof ServiceError ? error.code : error))) }
}

describe.each(engines)('the ledger on %s', (_name, engine) => {
  let place: LedgerPlace
  let ledger: ClosableLedger
  const periodId = periodAt(clock.nowMs()).id
  const usedUnits = () => createStore(place.db).usedUnits('acc_1', periodId)

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

  test('of 1,000 simultaneous requests against 700 a month and 500 a minute, exactly 500 are admitted', async () => {
    const plan = { ...roomy, requestsPerMinute: 500, requestsPerMonth: 700 }
    const { admitted, codes } = await admitMany([ledger], 1000, plan)
    expect(admitted).toHaveLength(500)
    expect(codes).toEqual(new Set(['rate_limit_exceeded']))
    for (const admission of admitted) admission.settle(answered, 'none')
  })

  test('of 1,000 simultaneous requests against 300 a month and 500 a minute, exactly 300 are admitted', async () => {
    const plan = { ...roomy, requestsPerMinute: 500, requestsPerMonth: 300 }
    const { admitted, codes } = await admitMany([ledger], 1000, plan)
    expect(admitted).toHaveLength(300)
    expect(codes).toEqual(new Set(['insufficient_quota']))
    for (const admission of admitted) admission.settle(answered, 'none')
    await ledger.close()
    expect(await usedUnits()).toBe(300)
    ledger = await place.open()
  })

  test('a minute rejection says how long to wait, and a month rejection gives the reset and the units used', async () => {
    const plan = { ...roomy, requestsPerMinute: 1 }
    const admission = await ledger.admit(openingOf(), plan)
    await admission.durable()
    const minute = await rejectionOf(ledger, plan)
    expect(minute).toMatchObject({
      code: 'rate_limit_exceeded',
      facts: { words: { limit: '1 request', scope: 'on the Max plan' } },
    })
    const { retryAfterSeconds, words } = (minute as ServiceError).facts
    expect([59, 60]).toContain(retryAfterSeconds)
    expect(words?.seconds).toBe(retryAfterSeconds)

    const month = await rejectionOf(ledger, { ...roomy, requestsPerMonth: 1 })
    const { endMs } = periodAt(clock.nowMs())
    const monthName = new Date(endMs).toLocaleString('en', { month: 'short', timeZone: 'UTC' })
    expect(month).toMatchObject({
      code: 'insufficient_quota',
      facts: {
        resetsAt: endMs / 1000,
        words: { used: 1, limit: 1, plan: 'Max', resetsOn: `${monthName} 1 at 00:00 UTC` },
      },
    })
    admission.settle(failed, 'none')
    // What refused them, although the unit is free by now.
    expect((minute as ServiceError).facts.signals).toMatchObject({ rateLimit: 1, rateRemaining: 0, quotaUsed: 1 })
    expect((month as ServiceError).facts.signals).toMatchObject({ quotaLimit: 1, quotaUsed: 1, quotaRemaining: 0 })
  })

  test('the signals include the request itself, and an uncharged unit returns to the month but not to the minute', async () => {
    const first = await ledger.admit(openingOf({ units: 3 }), roomy)
    expect(first.signals()).toMatchObject({
      rateLimit: 10_000,
      rateRemaining: 9999,
      quotaLimit: 10_000,
      quotaUsed: 3,
      quotaRemaining: 9997,
      quotaReset: periodAt(clock.nowMs()).endMs / 1000,
    })
    await first.durable()
    first.settle(failed, 'none')
    await expect
      .poll(async () => await ledger.signals('acc_1', roomy))
      .toMatchObject({ rateRemaining: 9999, quotaUsed: 0, quotaRemaining: 10_000 })
    expect(await ledger.signals('acc_2', roomy)).toMatchObject({ rateRemaining: 10_000, quotaUsed: 0 })
  })

  test('reading the signals uses no units', async () => {
    for (let time = 0; time < 3; time++) await ledger.signals('acc_1', roomy)
    expect(await ledger.signals('acc_1', roomy)).toMatchObject({ rateRemaining: 10_000, quotaUsed: 0 })
  })

  test('a request record contains every reported fact', async () => {
    const opening = openingOf({ stream: true })
    await answer(ledger, opening)
    const other = openingOf()
    await answer(ledger, other, roomy, failed)
    await ledger.close()
    const store = createStore(place.db)
    const record = await store.findRequest(opening.id)
    expect(record).toEqual({ ...opening, ...answered, state: 'done', periodId, admittedAtMs: expect.any(Number) })
    expect(Math.abs(record!.admittedAtMs - clock.nowMs())).toBeLessThan(10_000)
    expect(await store.findRequest(other.id)).toMatchObject({ ...failed, state: 'done' })
    ledger = await place.open()
  })

  test('a fusion trail is written with its record, bounded in size, and swept with it', async () => {
    const opening = openingOf({ profile: 'svc-router/fusion' })
    await answer(ledger, opening, roomy, { ...answered, fusions: [deliberated] })
    const endless = { ...deliberated, calls: Array.from({ length: 5_000 }, () => deliberated.calls[0]!) }
    const other = openingOf()
    await answer(ledger, other, roomy, { ...answered, fusions: Array.from({ length: 100 }, () => endless) })
    await ledger.close()
    const store = createStore(place.db)
    expect((await store.findRequest(opening.id))?.fusions).toEqual([deliberated])
    const { fusions = [] } = (await store.findRequest(other.id)) ?? {}
    expect(fusions.length).toBe(8)
    expect(JSON.stringify(fusions).length).toBeLessThan(128 * 1024)
    expect(await store.deleteRequestsBefore(clock.nowMs() + 60_000, 10)).toBe(2)
    expect(await place.db.selectFrom('requests').select('fusions').execute()).toEqual([])
    ledger = await place.open()
  })

  test('a durable admission is on disk', async () => {
    const opening = openingOf()
    const admission = await ledger.admit(opening, roomy)
    await admission.durable()
    expect(admission.durable()).toBeUndefined()
    expect(await createStore(place.db).findRequest(opening.id)).toMatchObject({ ...opening, state: 'open', charged: 0 })
    admission.settle(failed, 'none')
  })

  test('an answer settled before it is delivered is charged once', async () => {
    const admission = await ledger.admit(openingOf(), roomy)
    admission.settle(answered, 'due')
    await admission.durable()
    admission.deliver()
    await ledger.close()
    expect(await usedUnits()).toBe(1)
    ledger = await place.open()
    expect(await ledger.signals('acc_1', roomy)).toMatchObject({ quotaUsed: 1 })
  })

  test('a request is settled once', async () => {
    const admission = await answer(ledger)
    expect(() => admission.settle(answered, 'done')).toThrow(/settled twice/)
  })

  test('after a restart the minute and the month continue from their previous counts', async () => {
    const plan = { ...roomy, requestsPerMinute: 5, requestsPerMonth: 100 }
    for (let time = 0; time < 3; time++) await answer(ledger, openingOf(), plan)
    await answer(ledger, openingOf(), plan, failed)
    await ledger.close()
    ledger = await place.open()
    expect(await ledger.signals('acc_1', plan)).toMatchObject({ rateRemaining: 1, quotaUsed: 3, quotaRemaining: 97 })
    await answer(ledger, openingOf(), plan)
    const { admitted, codes } = await admitMany([ledger], 1, plan)
    expect([admitted.length, codes]).toEqual([0, new Set(['rate_limit_exceeded'])])
  })

  test('of 1,000 simultaneous requests with a key limited to 300 a minute, exactly 300 are admitted and other keys keep the rest', async () => {
    const rate = { keyId: 'key_1', perMinute: 300 }
    const plan = { ...roomy, requestsPerMinute: 320 }
    const [limited, free] = await Promise.all([
      admitMany([ledger], 1000, plan, rate),
      Promise.allSettled(
        Array.from({ length: 20 }, async () => await ledger.admit(openingOf({ keyId: 'key_2' }), plan)),
      ),
    ])
    expect(limited.admitted).toHaveLength(300)
    expect(limited.codes).toEqual(new Set(['rate_limit_exceeded']))
    expect(free.filter(({ status }) => status === 'fulfilled')).toHaveLength(20)
    expect(await ledger.signals('acc_1', plan, rate)).toMatchObject({ rateRemaining: 0 })
    for (const admission of limited.admitted) admission.settle(answered, 'none')
    for (const result of free) if (result.status === 'fulfilled') result.value.settle(answered, 'none')
  })

  test("a new key limit counts the key's earlier requests, and holds after a restart", async () => {
    const rate = { keyId: 'key_1', perMinute: 4 }
    for (let time = 0; time < 3; time++) await answer(ledger)
    await answer(ledger, openingOf({ keyId: 'key_2' }))
    expect(await ledger.signals('acc_1', roomy, rate)).toMatchObject({ rateLimit: 4, rateRemaining: 1 })
    const { admitted } = await admitMany([ledger], 2, roomy, rate)
    expect(admitted).toHaveLength(1)
    for (const admission of admitted) {
      expect(admission.signals()).toMatchObject({ rateLimit: 4, rateRemaining: 0 })
      admission.settle(answered, 'none')
    }
    await ledger.close()
    ledger = await place.open()
    expect(await ledger.signals('acc_1', roomy, rate)).toMatchObject({ rateLimit: 4, rateRemaining: 0 })
    expect((await admitMany([ledger], 3, roomy, rate)).admitted).toHaveLength(0)
    expect(await ledger.signals('acc_1', roomy)).toMatchObject({ rateLimit: 10_000, rateRemaining: 10_000 - 5 })
    const other = await ledger.admit(openingOf({ keyId: 'key_2' }), roomy, { keyId: 'key_2', perMinute: 2 })
    expect(other.signals()).toMatchObject({ rateLimit: 2, rateRemaining: 0 })
    other.settle(answered, 'none')
  })

  test("a key's rejection names the key, or the account's plan if the account is exhausted first", async () => {
    const rate = { keyId: 'key_1', perMinute: 1 }
    await answer(ledger)
    const ofKey = await rejectionOf(ledger, roomy, rate)
    expect(ofKey).toMatchObject({
      code: 'rate_limit_exceeded',
      facts: { words: { limit: '1 request', scope: 'for this key' } },
    })
    expect([59, 60]).toContain((ofKey as ServiceError).facts.retryAfterSeconds)
    const ofPlan = await rejectionOf(ledger, { ...roomy, requestsPerMinute: 1 }, { keyId: 'key_2', perMinute: 5 })
    expect(ofPlan).toMatchObject({ facts: { words: { limit: '1 request', scope: 'on the Max plan' } } })
  })

  test("requests of other accounts use none of the account's units", async () => {
    const plan = { ...roomy, requestsPerMinute: 1, requestsPerMonth: 1 }
    await Promise.all(
      Array.from({ length: 30 }, (_, index) => answer(ledger, openingOf({ accountId: `acc_${index}` }), plan)),
    )
    await ledger.close()
    const rows = await place.db.selectFrom('usage').selectAll().execute()
    expect(rows).toHaveLength(30)
    expect(new Set(rows.map(({ used }) => used))).toEqual(new Set([1]))
    ledger = await place.open()
  })

  test('nothing is admitted after the ledger is closed', async () => {
    await ledger.close()
    expect(await rejectionOf(ledger, roomy)).toBeInstanceOf(LedgerUnavailable)
    expect(ledger.healthy()).toBe(false)
  })
})

describe.runIf(stores.length > 1)('several ledgers sharing one PostgreSQL database', () => {
  const engine = postgresEngine(openAt, true)
  beforeAll(() => engine.start())
  afterAll(() => engine.stop())

  test.each([
    [500, 700, 500],
    [500, 300, 300],
  ])(
    'of 1,000 simultaneous requests on three nodes against %i a minute and %i a month, exactly %i are admitted',
    async (perMinute, perMonth, expected) => {
      const place = await engine.fresh()
      const ledgers = [await place.open(), await place.open(), await place.open()]
      try {
        const plan = { ...roomy, requestsPerMinute: perMinute, requestsPerMonth: perMonth }
        const { admitted } = await admitMany(ledgers, 1000, plan)
        expect(admitted).toHaveLength(expected)
        for (const admission of admitted) admission.settle(failed, 'none')
      } finally {
        for (const ledger of ledgers) await ledger.close()
        expect(await createStore(place.db).usedUnits('acc_1', periodAt(clock.nowMs()).id)).toBe(0)
        await place.db.destroy()
      }
    },
  )

  test('of 1,000 simultaneous requests on three nodes with a key limited to 300 a minute, exactly 300 are admitted', async () => {
    const place = await engine.fresh()
    const ledgers = [await place.open(), await place.open(), await place.open()]
    try {
      const { admitted, codes } = await admitMany(ledgers, 1000, roomy, { keyId: 'key_1', perMinute: 300 })
      expect(admitted).toHaveLength(300)
      expect(codes).toEqual(new Set(['rate_limit_exceeded']))
      for (const admission of admitted) admission.settle(failed, 'none')
    } finally {
      for (const ledger of ledgers) await ledger.close()
      await place.db.destroy()
    }
  })
})
