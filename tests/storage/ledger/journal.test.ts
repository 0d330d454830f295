import { setImmediate as turn } from 'node:timers/promises'
import { beforeEach, expect, test } from 'vitest'
import type { Clock } from '../../../src/runtime/clock.ts'
import { commitHangs, LedgerJournal } from '../../../src/storage/ledger/journal.ts'
import { LedgerUnavailable } from '../../../src/storage/ledger/ledger-unavailable.ts'
import type { JournalEntry } from '../../../src/storage/ledger/records.ts'

let nowMs: number
let timers: { readonly dueMs: number; readonly run: () => void }[]
let posted: number[]
let told: string[]
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
  told = []
  journal = new LedgerJournal(clock, '', {
    onFinished: (entry) => told.push(`finished ${entry.opening.id}`),
    onFailing: (reason) => told.push(reason),
    onVoided: (entry) => told.push(`voided ${entry.opening.id}`),
  })
  // A disk that takes what it is given and says nothing.
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

const charged = { charged: 1, attempts: [], totalMs: 1 }

test('who waits for a disk that hangs is refused after 10 s, those behind as well, and nothing due is charged', async () => {
  const first = journal.durable(admit('req_1'))
  const due = admit('req_2')
  journal.settle(due, charged, 1)
  await turn()
  expect(posted).toEqual([1])
  const behind = journal.durable(admit('req_3'))
  const refused = Promise.all([
    expect(first).rejects.toThrow(LedgerUnavailable),
    expect(behind).rejects.toThrow(LedgerUnavailable),
  ])
  await pass(9_999)
  expect([journal.isHealthy, told]).toEqual([true, []])
  await pass(1)
  await refused
  expect([journal.isHealthy, told]).toEqual([false, [commitHangs, 'voided req_2']])

  journal.onFailed('ERR_SQLITE_ERROR 13')
  expect(told, 'told once').toHaveLength(2)
  journal.onCommitted(1)
  expect(journal.isHealthy).toBe(true)
})

test('a disk that is slow and goes on is not taken for one that hangs', async () => {
  for (let number = 1; number <= 4; number++) {
    const durable = journal.durable(admit(`req_${number}`))
    await pass(4)
    await pass(9_000)
    journal.onCommitted(number)
    await durable
  }
  await pass(60_000)
  expect(told).toEqual([])
})

test('the end of the process does not wait for a disk that hangs either', async () => {
  admit('req_1')
  const flushed = expect(journal.flush()).rejects.toThrow(LedgerUnavailable)
  await pass(10_000)
  await flushed
})

test('a flush ends although more comes all the time', async () => {
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
