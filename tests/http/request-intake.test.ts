import { describe, expect, test } from 'vitest'
import { ServiceError } from '../../src/domain/errors.ts'
import type { Principal } from '../../src/gateway/ports.ts'
import { Intake, type AnsweringShare } from '../../src/http/request-intake.ts'
import type { Exchange } from '../../src/http/route.ts'
import { ManualClock } from '../gateway/manual-clock.ts'

const MiB = 1024 * 1024
/** The largest non-streaming answer. */
const longest = 32 * MiB

function used(intake: Intake): number[] {
  return ['requests', 'request_bytes', 'answer_bytes'].map((name) => intake.shares[name]!.used)
}

test('the non-streaming answers of one account use at most four fifths of the bytes, and leave room for another account', () => {
  const intake = new Intake({ bodyBytes: 5 * MiB, streams: 4_000 }, new ManualClock(), () => {})
  const held: AnsweringShare[] = []
  const receive = (account: string): AnsweringShare => {
    const share = intake.answer(account, 1_000)
    held.push(share)
    for (let bytes = 0; bytes < longest; bytes += MiB) share.grow(MiB)
    return share
  }
  for (let count = 0; count < 6; count += 1) receive('greedy')
  expect(() => receive('greedy')).toThrow(expect.objectContaining({ code: 'server_busy' }) as Error)
  const other = receive('other')
  other[Symbol.dispose]()
  for (const share of held) {
    if (share !== other) share[Symbol.dispose]()
    // Growing afterwards counts nothing.
    share.grow(longest)
  }
  for (let count = 0; count < 6; count += 1) receive('greedy')
})

test('a share is free once all of its holders have ended, each once', () => {
  const intake = new Intake({ bodyBytes: 5 * MiB, streams: 10 }, new ManualClock(), () => {})
  const share = intake.answer('a', 10)
  const generation = share.join()!
  share[Symbol.dispose]()
  generation.grow(MiB)
  expect(used(intake)).toEqual([1, 10, MiB])
  generation[Symbol.dispose]()
  generation.grow(MiB)
  expect(share.join()).toBeUndefined()
  expect(used(intake)).toEqual([0, 0, 0])
})

test('another holder of a share that has ended gets one of the same size', () => {
  const intake = new Intake({ bodyBytes: 5 * MiB, streams: 10 }, new ManualClock(), () => {})
  const share = intake.answer('a', 10)
  expect(intake.join(share)).toBe(share)
  share[Symbol.dispose]()
  share[Symbol.dispose]()
  expect(used(intake)).toEqual([0, 0, 0])
  const next = intake.join(share)
  expect(next).not.toBe(share)
  expect(used(intake)).toEqual([1, 10, 0])
  next[Symbol.dispose]()
  expect(used(intake)).toEqual([0, 0, 0])
})

test.each([
  [true, 0],
  [false, 1],
])('a share of a response that is destroyed: %s, is released once', async (destroyed, requests) => {
  const intake = new Intake({ bodyBytes: 5 * MiB, streams: 10 }, new ManualClock(), () => {})
  const principal = { accountId: 'a' } as Principal
  const exchange = { response: { destroyed }, held: undefined } as unknown as Exchange
  await intake.answerUntilClosed(exchange, principal, { bytes: { length: 10 } })
  expect(intake.shares['requests']!.used).toBe(requests)
  exchange.held?.[Symbol.dispose]()
  expect(used(intake)).toEqual([0, 0, 0])
})

describe('a full service', () => {
  const plan = { id: 'max', name: 'Max', requestsPerMinute: 1, requestsPerMonth: 1, premium: true }
  const request = { bytes: { length: 10 } }
  const busy = expect.objectContaining({ code: 'server_busy' }) as Error

  function principal(accountId: string): Principal {
    const one: Principal = { accountId, keyId: 'k', plan, limits: undefined, recheck: () => one }
    return one
  }

  /** Room for ten requests: accounts `a` and `b` have eight and two. */
  async function full(assertAccepted: () => void = () => {}) {
    const clock = new ManualClock()
    const intake = new Intake({ bodyBytes: 5 * MiB, streams: 10 }, clock, assertAccepted)
    const held: AnsweringShare[] = []
    for (const account of ['a', 'a', 'a', 'a', 'a', 'a', 'a', 'a', 'b', 'b'])
      held.push(await intake.answerInTurn(principal(account), request))
    const order: string[] = []
    const wait = async (account: string, more: object = {}): Promise<void> => {
      try {
        await intake.answerInTurn(principal(account), { ...request, ...more })
        order.push(account)
      } catch (error) {
        order.push(`${account} ${(error as ServiceError).code}`)
      }
    }
    const end = async (share: AnsweringShare): Promise<void> => {
      share[Symbol.dispose]()
      await clock.advance(0)
    }
    return { clock, intake, held, order, wait, end }
  }

  test('lets requests wait, and gives the next place to another account than the one with the most', async () => {
    const { held, order, wait, end, intake } = await full()
    for (const account of ['a', 'a', 'a', 'c', 'd']) void wait(account)
    expect(intake.shares['waiting_requests']!.used).toBe(5)
    await end(held[0]!)
    await end(held[1]!)
    expect(order).toEqual(['c', 'd'])
    for (const share of held.slice(2)) await end(share)
    expect(order).toEqual(['c', 'd', 'a', 'a', 'a'])
    expect(intake.shares['waiting_requests']!.used).toBe(0)
  })

  test('rejects a request that waited for a second, or for a quarter of its own time', async () => {
    const { clock, order, wait, intake } = await full()
    void wait('c')
    void wait('d', { timeoutMs: 2_000 })
    await clock.advance(499)
    expect(order).toEqual([])
    await clock.advance(1)
    expect(order).toEqual(['d server_busy'])
    await clock.advance(500)
    expect(order).toEqual(['d server_busy', 'c server_busy'])
    expect(intake.shares['request_bytes']!.used, 'it holds nothing any more').toBe(100)
  })

  test('rejects a request whose key was revoked while it waited, and gives its place to the next one', async () => {
    const { held, intake, order, wait, end } = await full()
    const revoked = (): never => {
      throw new ServiceError('key_revoked')
    }
    const rejected = expect(
      intake.answerInTurn({ ...principal('c'), recheck: revoked }, request),
    ).rejects.toMatchObject({ code: 'key_revoked' })
    void wait('d')
    await end(held[0]!)
    await rejected
    expect(order).toEqual(['d'])
  })

  test('lets no retry of a client wait, and nothing that is shed', async () => {
    const world = await full()
    await expect(world.intake.answerInTurn(principal('c'), { ...request, isRetry: true })).rejects.toThrow(busy)
    const shedding = await full(() => {
      throw new ServiceError('load_shed', { words: { what: 'x', seconds: 1 } })
    })
    await shedding.wait('c')
    expect(shedding.order).toEqual(['c load_shed'])
  })

  test('keeps places in the queue for accounts that have none', async () => {
    const { order, wait, held, end } = await full()
    for (let count = 0; count < 300; count++) void wait('a')
    await end(held[8]!)
    expect(order.filter((result) => result === 'a server_busy').length, 'beyond four fifths of the places').toBe(95)
    void wait('c')
    await end(held[9]!)
    expect(order.filter((result) => result !== 'a server_busy')).toEqual(['c'])
  })
})
