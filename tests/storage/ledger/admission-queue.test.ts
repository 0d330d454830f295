import { setImmediate as nextTurn } from 'node:timers/promises'
import { beforeEach, describe, expect, test } from 'vitest'
import { momentAt, usageSignals, type KeyRate } from '../../../src/domain/account-meter.ts'
import type { Plan } from '../../../src/domain/plans.ts'
import type { Asking, Decided } from '../../../src/storage/ledger/admission-batches.ts'
import { AdmissionQueue } from '../../../src/storage/ledger/admission-queue.ts'
import { LedgerUnavailable } from '../../../src/storage/ledger/ledger-unavailable.ts'
import { ManualClock } from '../../gateway/manual-clock.ts'

const plan: Plan = { id: 'max', name: 'Max', requestsPerMinute: 100, requestsPerMonth: 1_000, premium: true }
const standing = { limit: 100, remaining: 99, freeAtMs: 60_000, isOfKey: false }
const admitted: Decided = usageSignals(momentAt(0), standing, plan, 1)

/** A batch that reached the database, and what ends its statement. */
interface Flight {
  readonly batch: readonly Asking[]
  readonly answer: () => void
  readonly fail: () => void
}

let clock: ManualClock
let flights: Flight[]
let failures: unknown[]
let queue: AdmissionQueue
beforeEach(() => {
  clock = new ManualClock()
  flights = []
  failures = []
  queue = new AdmissionQueue(
    (batch) =>
      new Promise((resolve, reject) => {
        const answer = (): void => resolve(batch.map(() => admitted))
        flights.push({ batch, answer, fail: () => reject(new Error('made up')) })
      }),
    clock,
    { onFailed: (error) => failures.push(error), onDecided: () => {} },
  )
})

let last = 0
function ask(accountId: string, changes: { plan?: Plan; rate?: KeyRate } = {}): Promise<Decided> {
  const opening = { id: `req_${last++}`, accountId, keyId: 'key_1', profile: 'p', format: 'f', stream: false, units: 1 }
  return queue.add({ opening, plan, rate: undefined, dueMark: 1, ...changes })
}
const accountsIn = ({ batch }: Flight): string[] => batch.map(({ opening }) => opening.accountId)

test('requests of one turn of the event loop are decided in one statement', async () => {
  const asked = [ask('a'), ask('b'), ask('a')]
  await nextTurn()
  expect(flights.map(accountsIn)).toEqual([['a', 'a', 'b']])
  flights[0]!.answer()
  expect(await Promise.all(asked)).toEqual([admitted, admitted, admitted])
})

test('requests that arrive during a statement share the next one', async () => {
  const asked = [ask('a')]
  await nextTurn()
  asked.push(ask('b'), ask('c'))
  await nextTurn()
  expect(flights).toHaveLength(1)
  flights[0]!.answer()
  await asked[0]
  await nextTurn()
  expect(flights.map(accountsIn)).toEqual([['a'], ['b', 'c']])
  flights[1]!.answer()
  await Promise.all(asked)
})

test('a slow statement delays other accounts by a few milliseconds only, and its own account until its end', async () => {
  void ask('a')
  await nextTurn()
  const [sameAccount, other] = [ask('a'), ask('b')]
  await clock.advance(4)
  expect(flights.map(accountsIn)).toEqual([['a'], ['b']])
  flights[1]!.answer()
  await other
  flights[0]!.answer()
  await nextTurn()
  await nextTurn()
  expect(flights.map(accountsIn)).toEqual([['a'], ['b'], ['a']])
  flights[2]!.answer()
  expect(await sameAccount).toBe(admitted)
})

test('requests of an account with different limits are decided one after another', async () => {
  const asked = [
    ask('a'),
    ask('a', { plan: { ...plan, requestsPerMinute: 5 } }),
    ask('b', { rate: { keyId: 'key_1', perMinute: 1 } }),
    ask('b', { rate: { keyId: 'key_1', perMinute: 2 } }),
  ]
  await nextTurn()
  expect(flights.map(accountsIn)).toEqual([['a', 'b']])
  flights[0]!.answer()
  await nextTurn()
  await nextTurn()
  expect(flights.map(accountsIn)).toEqual([
    ['a', 'b'],
    ['a', 'b'],
  ])
  flights[1]!.answer()
  await Promise.all(asked)
})

describe('when the database does not decide', () => {
  test('everyone who waits is refused, and one batch per 100 ms tries until one succeeds', async () => {
    const [first, second] = [ask('a'), nextTurn().then(() => ask('a'))]
    await nextTurn()
    flights[0]!.fail()
    await expect(first).rejects.toThrow(LedgerUnavailable)
    await expect(second).rejects.toThrow(LedgerUnavailable)
    expect(queue.isHealthy).toBe(false)
    expect(failures).toHaveLength(1)

    await nextTurn()
    await clock.advance(99)
    await expect(ask('a')).rejects.toThrow(LedgerUnavailable)
    expect(flights).toHaveLength(1)
    await clock.advance(1)
    const probe = ask('a')
    await nextTurn()
    await expect(ask('b')).rejects.toThrow(LedgerUnavailable)
    expect(flights).toHaveLength(2)
    flights[1]!.answer()
    expect(await probe).toBe(admitted)
    expect(queue.isHealthy).toBe(true)
  })

  test('requests are refused after three seconds, and stay refused if the answer comes later', async () => {
    const asked = ask('a')
    const refused = expect(asked).rejects.toThrow(LedgerUnavailable)
    await nextTurn()
    await clock.advance(3_000)
    await refused
    await expect(asked).rejects.toThrow(LedgerUnavailable)
    flights[0]!.answer()
    await nextTurn()
    expect(queue.isHealthy).toBe(true)
    await expect(asked).rejects.toThrow(LedgerUnavailable)
  })

  test('a heartbeat from elsewhere ends the outage', async () => {
    const asked = ask('a')
    await nextTurn()
    flights[0]!.fail()
    await expect(asked).rejects.toThrow(LedgerUnavailable)
    queue.recover()
    expect(queue.isHealthy).toBe(true)
  })

  test('at most 20,000 requests wait', async () => {
    const asked = Array.from({ length: 20_000 }, (_, index) => ask(`acc_${index}`))
    await expect(ask('late')).rejects.toThrow(LedgerUnavailable)
    while (flights.length < 4) await nextTurn()
    for (const { batch } of flights) expect(batch).toHaveLength(200)
    flights[0]!.fail()
    for (const { answer } of flights.slice(1)) answer()
    const results = await Promise.allSettled(asked)
    expect(results.filter(({ status }) => status === 'fulfilled')).toHaveLength(600)
  })
})
