import { afterEach, beforeEach, expect, test } from 'vitest'
import type { ClaimedDelivery } from '../../../src/accounts/alerts/alert-ports.ts'
import { AlertNotSent, AlertSender } from '../../../src/accounts/alerts/alert-sender.ts'
import { createStore, type Store } from '../../../src/storage/store.ts'
import { someRecord } from '../../audit-record.ts'
import { enginesFor } from '../../contract/engines.ts'
import { SimulatedTime } from '../../simulation/simulated-time.ts'

const [[, engine]] = enginesFor('alert sender') as [ReturnType<typeof enginesFor>[0]]
let store: Store
let db: Awaited<ReturnType<Awaited<ReturnType<typeof engine.fresh>>>>
let clock: SimulatedTime
let startMs = 0

beforeEach(async () => {
  db = await (await engine.fresh())()
  store = createStore(db)
  clock = new SimulatedTime()
  startMs = clock.nowMs()
  for (const id of ['acc_1', 'acc_2'])
    await store.addAccount({ id, name: id, planId: 'free', suspended: false, createdAtMs: 1 }, someRecord())
})
afterEach(() => db.destroy())

interface Sent {
  readonly atS: number
  readonly delivery: ClaimedDelivery
}

/** A process that sends, and what it sent. */
function open(
  send: (delivery: ClaimedDelivery) => Promise<void> = () => Promise.resolve(),
  { random = 0.5, timers = clock } = {},
) {
  const sent: Sent[] = []
  const sender = new AlertSender({
    store,
    transports: [
      {
        channel: 'operator',
        slots: 2,
        send(delivery) {
          sent.push({ atS: (clock.nowMs() - startMs) / 1000, delivery })
          return send(delivery)
        },
      },
    ],
    clock: timers,
    nowMs: () => clock.nowMs(),
    random: () => random,
    onFailed: (error) => {
      throw error
    },
  })
  return { sender, sent }
}

let count = 0
async function add(eventId: string, accountId = 'acc_1'): Promise<void> {
  const delivery = { eventId, accountId, channel: 'operator', target: '', body: `{"id":"${eventId}"}` } as const
  const alert = { budgetId: `bud_${(count += 1)}`, windowMs: 1, thresholds: [50], accountId, atMs: 1 }
  await store.addBudgetAlert(alert, [{ ...delivery, id: `adl_${count}`, atMs: clock.nowMs() }])
}

const events = (sent: readonly Sent[]): string[] => sent.map(({ delivery }) => delivery.eventId)
const rows = () => db.selectFrom('alert_deliveries').selectAll().execute()

/** Runs timers for this long. */
async function pass(seconds: number): Promise<void> {
  await clock.until(new Promise<void>((resolve) => void clock.after(seconds * 1000, resolve)))
}

test('a message is sent once and then forgotten', async () => {
  await add('one')
  const { sender, sent } = open()
  sender.start()
  await pass(600)
  expect(events(sent)).toEqual(['one'])
  expect(await rows()).toEqual([])
})

test('a failed message is sent again with longer waits, six times at most, and always with the same event', async () => {
  await add('one')
  const { sender, sent } = open(() => Promise.reject(new AlertNotSent('500')))
  sender.start()
  await pass(3 * 3_600)
  const waits = sent.map(({ atS }, index) => atS - (sent[index - 1]?.atS ?? 0))
  const planned = [0, 5, 30, 120, 600, 3_600]
  expect(waits).toHaveLength(planned.length)
  for (const [index, wait] of planned.entries()) {
    expect(waits[index]).toBeGreaterThanOrEqual(wait)
    // Due messages are looked for every 5 s.
    expect(waits[index]).toBeLessThanOrEqual(wait + 5)
  }
  expect(new Set(sent.map(({ delivery }) => delivery.body)).size).toBe(1)
  expect(await rows()).toEqual([])
})

test('waits differ by up to a fifth, so that messages are not repeated together', async () => {
  for (const [random, dueS] of [
    [0, 4],
    [1, 6],
  ] as const) {
    await add(`at ${random}`)
    const { sender } = open(() => Promise.reject(new AlertNotSent('500')), { random })
    sender.wake()
    await pass(1)
    const row = (await rows()).find(({ event_id: id }) => id === `at ${random}`)!
    expect((row.due_at_ms! - row.attempted_at_ms!) / 1000).toBe(dueS)
    await db.deleteFrom('alert_deliveries').execute()
  }
})

test('a message that no attempt can deliver is given up at once', async () => {
  await add('one')
  const { sender, sent } = open(() => Promise.reject(new AlertNotSent('removed', { isFinal: true })))
  sender.start()
  await pass(3_600)
  expect(events(sent)).toEqual(['one'])
})

test('a process that dies between claim and send loses nothing: after the lease, another one sends', async () => {
  await add('one')
  // Dead: it has claimed, and will never send or confirm. Its timers do not run any more.
  const dead = open(() => new Promise(() => {}), { timers: new SimulatedTime() })
  dead.sender.wake()
  await pass(1)
  expect(events(dead.sent)).toEqual(['one'])
  const alive = open()
  alive.sender.start()
  await pass(115)
  expect(events(alive.sent)).toEqual([])
  await pass(15)
  expect(events(alive.sent)).toEqual(['one'])
  expect(await rows()).toEqual([])
})

test('of several processes, one sends each message', async () => {
  for (let number = 0; number < 20; number += 1) await add(String(number), number % 2 === 0 ? 'acc_1' : 'acc_2')
  const nodes = [open(), open(), open()]
  for (const { sender } of nodes) sender.start()
  await pass(60)
  const sent = nodes.flatMap((node) => events(node.sent))
  expect(sent.toSorted((a, b) => Number(a) - Number(b))).toEqual(Array.from({ length: 20 }, (_, n) => String(n)))
})

test('an attempt without an end is repeated after a minute, and does not block others of its account', async () => {
  await add('stuck')
  await add('next')
  const { sender, sent } = open(({ eventId, attempt }) =>
    eventId === 'stuck' && attempt === 1 ? new Promise(() => {}) : Promise.resolve(),
  )
  sender.start()
  await pass(59)
  expect(events(sent)).toEqual(['stuck'])
  await pass(20)
  expect(events(sent)).toEqual(['stuck', 'next', 'stuck'])
  expect(await rows()).toEqual([])
})

test('a slow receiver of one account does not delay another account', async () => {
  for (let number = 0; number < 5; number += 1) await add(`slow ${number}`)
  const { sender, sent } = open(({ accountId }) =>
    accountId === 'acc_1' ? new Promise((resolve) => void clock.after(10_000, resolve)) : Promise.resolve(),
  )
  sender.start()
  await pass(12)
  await add('quick', 'acc_2')
  sender.wake()
  await pass(1)
  expect(events(sent)).toEqual(['slow 0', 'slow 1', 'quick'])
  await pass(60)
  expect(events(sent)).toHaveLength(6)
})

test('accounts take turns, even if one has messages that have waited longer', async () => {
  for (let number = 0; number < 4; number += 1) await add(`old ${number}`)
  await pass(60)
  for (const accountId of ['acc_3', 'acc_4'])
    await store.addAccount(
      { id: accountId, name: accountId, planId: 'free', suspended: false, createdAtMs: 1 },
      someRecord(),
    )
  for (const accountId of ['acc_2', 'acc_3', 'acc_4']) await add(accountId, accountId)
  // Two slots, and every receiver is slow.
  const { sender, sent } = open(() => new Promise((resolve) => void clock.after(10_000, resolve)))
  sender.start()
  await pass(25)
  expect(
    events(sent)
      .slice(0, 5)
      .filter((event) => event.startsWith('acc_')),
  ).toHaveLength(3)
})

test('a message that has waited for a day is not sent', async () => {
  await add('old')
  await pass(24 * 3_600 + 1)
  const { sender, sent } = open()
  sender.start()
  await pass(60)
  expect(events(sent)).toEqual([])
})

test('a wait does not become longer when the clock is set back', async () => {
  await add('one')
  await db
    .updateTable('alert_deliveries')
    .set({ due_at_ms: clock.nowMs() + 5 * 3_600_000 })
    .execute()
  const { sender, sent } = open()
  sender.start()
  await pass(10)
  expect(events(sent)).toEqual(['one'])
})

test('a service that stops waits for attempts, at most 5 s, and begins no other', async () => {
  await add('one')
  await add('two')
  let answer = (): void => {}
  const { sender, sent } = open(() => new Promise((resolve) => (answer = resolve)))
  sender.start()
  await pass(1)
  let isClosed = false
  const closed = sender.close().then(() => (isClosed = true))
  await pass(1)
  expect(isClosed).toBe(false)
  answer()
  await clock.until(closed)
  expect(events(sent)).toEqual(['one'])
  const stuck = open(() => new Promise(() => {}))
  stuck.sender.start()
  await pass(1)
  const beganMs = clock.nowMs()
  await clock.until(stuck.sender.close())
  expect(clock.nowMs() - beganMs).toBeLessThanOrEqual(5_100)
})
