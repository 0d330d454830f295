import { expect, test } from 'vitest'
import { FairQueue } from '../../src/runtime/fair-queue.ts'
import { FairShare } from '../../src/runtime/fair-share.ts'
import { ManualClock } from '../gateway/manual-clock.ts'

function queueOf(places = 100) {
  const clock = new ManualClock()
  const share = new FairShare(places)
  const queue = new FairQueue(clock, share)
  const turns: string[] = []
  const wait = (account: string, longestMs = 1_000) => {
    const turn = queue.wait(account, longestMs)
    void turn?.came.then((came) => turns.push(came ? account : `${account} late`))
    return turn
  }
  return { clock, queue, share, turns, wait }
}

test('accounts take turns, whatever the number of their requests', async () => {
  const { clock, queue, turns, wait } = queueOf()
  for (const account of ['a', 'a', 'a', 'a', 'b', 'c', 'b']) wait(account)
  while (queue.next(() => true)) await clock.advance(0)
  expect(turns).toEqual(['a', 'b', 'c', 'a', 'b', 'a', 'a'])
  expect(queue.isEmpty).toBe(true)
})

test('an account without room is passed over, and keeps its place', async () => {
  const { clock, queue, turns, wait } = queueOf()
  for (const account of ['a', 'b', 'a']) wait(account)
  expect(queue.next((account) => account !== 'a')).toBe(true)
  expect(queue.next((account) => account !== 'a')).toBe(false)
  expect(queue.next(() => true)).toBe(true)
  await clock.advance(0)
  expect(turns).toEqual(['b', 'a'])
})

test('a place is released when its turn comes, when its time ends, or when the request leaves', async () => {
  const { clock, queue, share, turns, wait } = queueOf()
  wait('a', 100)
  const left = wait('a')
  wait('b')
  expect(share.used).toBe(3)
  left!.leave()
  await clock.advance(100)
  expect(turns).toEqual(['a late', 'a late'])
  queue.next(() => true)
  await clock.advance(2_000)
  expect(turns).toEqual(['a late', 'a late', 'b'])
  expect(share.used).toBe(0)
  expect(wait('a', 0), 'no time to wait').toBeUndefined()
})

test('no account can take all places', () => {
  const { wait } = queueOf(10)
  const given = Array.from({ length: 20 }, () => wait('a')).filter((turn) => turn !== undefined)
  expect(given.length).toBe(8)
  expect(wait('b')).toBeDefined()
})
