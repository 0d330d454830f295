import { setImmediate as turn } from 'node:timers/promises'
import { beforeEach, expect, test } from 'vitest'
import type { Clock } from '../../../src/runtime/clock.ts'
import { commitHangs, LedgerJournal } from '../../../src/storage/ledger/journal.ts'
import { LedgerUnavailable } from '../../../src/storage/ledger/ledger-unavailable.ts'
import type { JournalEntry } from '../../../src/storage/ledger/records.ts'
import { outcomeColumns } from '../../../src/storage/requests.ts'

let nowMs: number
let timers: { readonly dueMs: number; readonly run: () => void }[]
let posted: number[]
let events: string[]
let journal: LedgerJournal

const clock: Clock = {
  nowMs: () => nowMs,
  monotonicMs: () => nowMs,
  after(delayMs, run) {
    const timer = { dueMs: nowMs + delayMs, run }
    timers.push(timer)
    return { cancel: () => (timers = timers.filter((other) => other !== timer)) }
  },
}

beforeEach(() => {
  nowMs = 0
  timers = []
  posted = []
  events = []
  journal = new LedgerJournal(clock, '', {
    onFinished: (entry) => events.push(`finished ${entry.opening.id}`),
    onFailing: (reason) => events.push(reason),
    onVoided: (entry) => events.push(`voided ${entry.opening.id}`),
  })
  // A disk that accepts batches and never confirms them.
  journal.use({ post: ({ number }) => void posted.push(number) })
})

async function pass(ms: number): Promise<void> {
  nowMs += ms
  for (const timer of timers.filter(({ dueMs }) => dueMs <= nowMs)) {
    timers = timers.filter((other) => other !== timer)
    timer.run()
  }
  await turn()
}

function admit(id: string): JournalEntry {
  const facts = { accountId: 'acc_1', keyId: 'key_1', profile: 'p', format: 'openai-chat', stream: false, units: 1 }
  return journal.open({ id, ...facts }, nowMs, '2026-11', { id: 'acc_1', batchPeriodId: '', batchUnits: 0 })
}

const charged = outcomeColumns({ charged: 1, attempts: [], totalMs: 1 })

test('when a disk hangs, everyone who waits for it gets an error after 10 s, and nothing due is charged', async () => {
  const first = journal.durable(admit('req_1'))
  const due = admit('req_2')
  journal.settle(due, charged, 1)
  await turn()
  expect(posted).toEqual([1])
  const later = journal.durable(admit('req_3'))
  const refused = Promise.all([
    expect(first).rejects.toThrow(LedgerUnavailable),
    expect(later).rejects.toThrow(LedgerUnavailable),
  ])
  await pass(9_999)
  expect([journal.isHealthy, events]).toEqual([true, []])
  await pass(1)
  await refused
  expect([journal.isHealthy, events]).toEqual([false, [commitHangs, 'voided req_2']])

  journal.onFailed('ERR_SQLITE_ERROR 13')
  expect(events, 'reported once').toHaveLength(2)
  journal.onCommitted(1)
  expect(journal.isHealthy).toBe(true)
})

test('a slow disk that makes progress is not treated as hung', async () => {
  for (let number = 1; number <= 4; number++) {
    const durable = journal.durable(admit(`req_${number}`))
    await pass(4)
    await pass(9_000)
    journal.onCommitted(number)
    await durable
  }
  await pass(60_000)
  expect(events).toEqual([])
})

test('closing does not wait for a hung disk either', async () => {
  admit('req_1')
  const flushed = expect(journal.flush()).rejects.toThrow(LedgerUnavailable)
  await pass(10_000)
  await flushed
})

test('a flush ends even if new records keep arriving', async () => {
  admit('req_1')
  const flushed = expect(journal.flush()).rejects.toThrow(LedgerUnavailable)
  for (let number = 1; number <= 5; number++) {
    await pass(5_000)
    admit(`req_${number + 1}`)
    journal.onCommitted(number)
    await turn()
  }
  await flushed
})

test('a record waits its full time for its outcome, even if the timer of an earlier one ends before', async () => {
  await pass(100)
  const first = admit('req_1')
  journal.settle(first, charged, null)
  const written = journal.durable(first)
  await turn()
  journal.onCommitted(1)
  await written
  await pass(8)
  admit('req_2')
  // The timer that began with the first request.
  await pass(2)
  expect(posted).toEqual([1])
  await pass(8)
  expect(posted).toEqual([1, 2])
})
