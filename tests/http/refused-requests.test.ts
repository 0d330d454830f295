import { expect, test } from 'vitest'
import { errorCodes } from '../../src/domain/error-message.ts'
import type { ServiceEvent } from '../../src/domain/events.ts'
import type { RefusedHour } from '../../src/domain/refused-requests.ts'
import { RefusedRequests } from '../../src/http/refused-requests.ts'
import { ManualClock } from '../gateway/manual-clock.ts'

const hourMs = 3_600_000
const owner = { accountId: 'acc_1', keyId: 'key_1' }

/** A counter over a store that fails while `isBroken`. */
function open(max?: number) {
  const clock = new ManualClock()
  const written: RefusedHour[][] = []
  const events: ServiceEvent[] = []
  const store = {
    isBroken: false,
    addRefused: (hours: readonly RefusedHour[]) => {
      if (store.isBroken) return Promise.reject(new Error('no store'))
      written.push(hours.map((hour) => ({ ...hour })))
      return Promise.resolve()
    },
  }
  const refused = new RefusedRequests({ store, clock, log: (event) => void events.push(event) }, max)
  return { clock, written, events, store, refused }
}

const droppedOf = (events: readonly ServiceEvent[]): number =>
  events.reduce((sum, event) => sum + (event.event === 'refused_requests_dropped' ? event.count : 0), 0)

test('a thousand rejections cause one write after a second, and no write happens without rejections', async () => {
  const { clock, written, refused } = open()
  const startedMs = clock.nowMs()
  for (let count = 0; count < 1000; count++) refused.note(owner, 'invalid_json', `req_${count}`)
  refused.note({ accountId: 'acc_1', keyId: 'key_2' }, 'key_revoked', 'req_a')
  refused.note({ accountId: 'acc_2', keyId: 'key_3' }, 'invalid_json', 'req_b')
  await clock.advance(999)
  expect(written).toEqual([])
  await clock.advance(1)
  const common = { hourMs: startedMs, lastAtMs: startedMs }
  expect(written).toEqual([
    [
      {
        ...common,
        accountId: 'acc_1',
        code: 'invalid_json',
        requests: 1000,
        lastRequestId: 'req_999',
        lastKeyId: 'key_1',
      },
      { ...common, accountId: 'acc_1', code: 'key_revoked', requests: 1, lastRequestId: 'req_a', lastKeyId: 'key_2' },
      { ...common, accountId: 'acc_2', code: 'invalid_json', requests: 1, lastRequestId: 'req_b', lastKeyId: 'key_3' },
    ],
  ])
  await clock.advance(60_000)
  expect([written.length, clock.waiting]).toEqual([1, 0])
})

test('each hour and each error of the catalog has its own count', async () => {
  const { clock, written, refused } = open()
  for (const code of errorCodes) refused.note(owner, code, 'req_1')
  clock.step(hourMs)
  for (const code of errorCodes) refused.note(owner, code, 'req_2')
  await refused.close()
  const rows = written.flat()
  expect(new Set(rows.map(({ code, hourMs: at }) => `${code} ${at}`)).size).toBe(2 * errorCodes.length)
  expect(rows.every(({ requests }) => requests === 1)).toBe(true)
})

test('while the store fails, writes are retried less and less often, and counts are written once it recovers', async () => {
  const { clock, written, events, store, refused } = open()
  store.isBroken = true
  refused.note(owner, 'invalid_json', 'req_1')
  for (let second = 0; second < 10; second++) {
    await clock.advance(1000)
    refused.note(owner, 'invalid_json', `req_later_${second}`)
  }
  expect(events.filter(({ event }) => event === 'store_failing').length).toBe(3)
  store.isBroken = false
  await clock.advance(60_000)
  expect(written.flat()).toEqual([expect.objectContaining({ requests: 11, lastRequestId: 'req_later_9' })])
  expect(droppedOf(events)).toBe(0)
  // Counts that were put back after a failed write use their account's share only once.
  refused.note(owner, 'invalid_json', 'req_2')
  await clock.advance(1000)
  expect(written.at(-1)).toEqual([expect.objectContaining({ requests: 1 })])
})

test('closing writes everything, and counts that cannot be written are logged', async () => {
  const good = open()
  good.refused.note(owner, 'invalid_json', 'req_1')
  await good.refused.close()
  expect([good.written.flat().length, good.clock.waiting, droppedOf(good.events)]).toEqual([1, 0, 0])
  const bad = open()
  bad.store.isBroken = true
  for (let count = 0; count < 7; count++) bad.refused.note(owner, 'invalid_json', 'req_1')
  await bad.refused.close()
  expect(droppedOf(bad.events)).toBe(7)
})

test('three accounts with every error in every hour leave room for another, and dropped counts are logged', async () => {
  const { clock, written, events, store, refused } = open(1000)
  store.isBroken = true
  const noisy = 3
  const hours = 20
  for (let hour = 0; hour < hours; hour++) {
    for (let account = 0; account < noisy; account++)
      for (const code of errorCodes) refused.note({ accountId: `acc_noisy_${account}`, keyId: 'key_1' }, code, 'req_1')
    clock.step(hourMs)
  }
  refused.note({ accountId: 'acc_quiet', keyId: 'key_2' }, 'key_revoked', 'req_2')
  store.isBroken = false
  await clock.advance(1000)
  const rows = written.flat()
  expect(droppedOf(events)).toBeGreaterThan(0)
  expect(rows.length).toBeLessThanOrEqual(1000)
  expect(rows.filter(({ accountId }) => accountId === 'acc_quiet').length).toBe(1)
  const kept = rows.reduce((sum, { requests }) => sum + requests, 0)
  expect(kept + droppedOf(events)).toBe(hours * noisy * errorCodes.length + 1)
  // The shares of all accounts were returned.
  refused.note(owner, 'invalid_json', 'req_3')
  await clock.advance(1000)
  expect(written.flat().length).toBe(rows.length + 1)
})
