import { expect, test } from 'vitest'
import { momentAt, type Standing, usageSignals } from '../../../src/domain/account-meter.ts'
import type { Plan } from '../../../src/domain/plans.ts'
import { type Caller, MinuteRefusals } from '../../../src/storage/ledger/minute-refusals.ts'
import { ManualClock } from '../../gateway/manual-clock.ts'

const plan: Plan = { id: 'max', name: 'Max', requestsPerMinute: 10, requestsPerMonth: 1_000, premium: true }
const standing: Standing = { limit: 10, remaining: 0, freeAtMs: 0, isOfKey: false }
const signals = usageSignals(momentAt(0), standing, plan, 10)
const caller: Caller = { accountId: 'acc_1', plan, rate: undefined }

test('a refusal never lasts longer than the minute is full, and its retry time never ends earlier', async () => {
  const clock = new ManualClock()
  const refusals = new MinuteRefusals(clock)
  const askedMs = clock.monotonicMs()
  // The database answers after 300 ms; when it decided within them is unknown.
  await clock.advance(300)
  refusals.note(caller, askedMs, { freeInMs: 400, standing, signals })
  expect(refusals.errorFor(caller)).toMatchObject({ code: 'rate_limit_exceeded', facts: { retryAfterSeconds: 1 } })
  await clock.advance(99)
  expect(refusals.errorFor(caller)).toBeDefined()
  await clock.advance(1)
  expect(refusals.errorFor(caller)).toBeUndefined()

  refusals.note(caller, clock.monotonicMs() - 900, { freeInMs: 5_000, standing, signals })
  // At the latest 5 s from now, although the database may have decided earlier.
  expect(refusals.errorFor(caller)).toMatchObject({ facts: { retryAfterSeconds: 5 } })
  await clock.advance(100)
  expect(refusals.errorFor(caller)).toBeUndefined()
})

test('a refusal is for the same limits only, and for one key if the key has its own', () => {
  const clock = new ManualClock()
  const refusals = new MinuteRefusals(clock)
  const rate = { keyId: 'key_1', perMinute: 3 }
  refusals.note({ ...caller, rate }, clock.monotonicMs(), {
    freeInMs: 60_000,
    standing: { ...standing, limit: 3, isOfKey: true },
    signals,
  })
  expect(refusals.errorFor({ ...caller, rate })?.facts.words).toMatchObject({ scope: 'for this key' })
  expect(refusals.signalsFor({ ...caller, rate })).toBe(signals)
  expect(refusals.errorFor(caller)).toBeUndefined()
  expect(refusals.errorFor({ ...caller, rate: { ...rate, keyId: 'key_2' } })).toBeUndefined()
  expect(refusals.errorFor({ ...caller, rate: { ...rate, perMinute: 4 } })).toBeUndefined()
  expect(refusals.errorFor({ ...caller, rate, plan: { ...plan, requestsPerMinute: 11 } })).toBeUndefined()
  expect(refusals.errorFor({ ...caller, rate, plan: { ...plan, requestsPerMonth: 2_000 } })).toBeUndefined()
})
