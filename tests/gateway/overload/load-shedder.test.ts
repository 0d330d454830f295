import { describe, expect, test } from 'vitest'
import { ServiceError } from '../../../src/domain/errors.ts'
import type { ServiceEvent } from '../../../src/domain/events.ts'
import { shedLoads } from '../../../src/domain/events.ts'
import { LoadShedder } from '../../../src/gateway/overload/load-shedder.ts'
import { ManualClock } from '../manual-clock.ts'

const free = { premium: false, name: 'Free' }
const premium = { premium: true, name: 'Max' }

class Watched {
  readonly clock = new ManualClock()
  readonly events: ServiceEvent[] = []
  openShare = 0
  /** From 0 to 1. */
  random = 0
  readonly shedder = new LoadShedder({
    clock: this.clock,
    random: () => this.random,
    log: (event) => void this.events.push(event),
  })

  constructor() {
    this.shedder.start(() => this.openShare)
  }

  /** Two seconds in which every timer is this late. */
  async step(lateMs: number): Promise<void> {
    for (let sample = 0; sample < 8; sample++) {
      this.clock.skip(250 + lateMs)
      await this.clock.advance(0)
    }
  }

  get shed(): string[] {
    return shedLoads.filter((kind) => this.shedder.sheds(kind))
  }

  /** The share of the requests of a plan that are rejected. */
  shareRejected(plan: typeof free, isRetry = false): number {
    const rejected = Array.from({ length: 100 }, (_, index) => {
      this.random = index / 100
      try {
        this.shedder.assertAccepted(plan, isRetry)
        return 0
      } catch (error) {
        expect(error).toBeInstanceOf(ServiceError)
        return 1
      }
    })
    return rejected.reduce((sum: number, one) => sum + one, 0) / 100
  }
}

describe('while the event loop is late', () => {
  test('retries are shed first, then fusion, then the free plan by quarters, and nothing else', async () => {
    const watched = new Watched()
    const seen: unknown[] = []
    for (let step = 0; step < 8; step++) {
      seen.push([watched.shed, watched.shareRejected(free)])
      expect(watched.shareRejected(premium)).toBe(0)
      expect(watched.shareRejected(premium, true)).toBe(step === 0 ? 0 : 1)
      await watched.step(300)
    }
    expect(seen).toEqual([
      [[], 0],
      [['retries'], 0],
      [['retries', 'fusion'], 0],
      [[...shedLoads], 0.25],
      [[...shedLoads], 0.5],
      [[...shedLoads], 0.75],
      [[...shedLoads], 1],
      [[...shedLoads], 1],
    ])
  })

  test('everything is accepted again step by step once it is not late', async () => {
    const watched = new Watched()
    for (let step = 0; step < 3; step++) await watched.step(300)
    await watched.step(150)
    expect(watched.shed).toEqual([...shedLoads])
    const seen: string[][] = []
    for (let step = 0; step < 3; step++) {
      await watched.step(10)
      seen.push(watched.shed)
    }
    expect(seen).toEqual([['retries', 'fusion'], ['retries'], []])
    const logged = watched.events.map((event) => (event.event === 'load_shedding' ? event.sheds : event))
    expect(logged).toEqual([
      ['retries'],
      ['retries', 'fusion'],
      ['retries', 'fusion', 'free_plan'],
      ['retries', 'fusion'],
      ['retries'],
      [],
    ])
  })

  test('one long pause of the process is no overload', async () => {
    const watched = new Watched()
    await watched.step(20)
    watched.clock.skip(3_600_000)
    await watched.clock.advance(0)
    await watched.step(20)
    expect([watched.shed, watched.events]).toEqual([[], []])
  })

  test('the error says what is rejected, and when it is accepted again at the earliest', async () => {
    const watched = new Watched()
    for (let step = 0; step < 3; step++) await watched.step(300)
    const thrown = (plan: typeof free, isRetry: boolean): unknown => {
      try {
        return watched.shedder.assertAccepted(plan, isRetry)
      } catch (error) {
        return error
      }
    }
    const what = (text: string, seconds: number): object => ({
      code: 'load_shed',
      facts: { retryAfterSeconds: seconds, words: { what: text, seconds } },
    })
    expect(thrown(premium, true)).toMatchObject(what('retries', 6))
    expect(thrown(free, false)).toMatchObject(what('requests on the Free plan', 2))
    await watched.step(0)
    expect(thrown(free, false)).toBeUndefined()
  })
})

test.each([
  [0.8, []],
  [0.85, ['retries']],
  [0.9, ['retries', 'fusion']],
  [0.95, [...shedLoads]],
  [1, [...shedLoads]],
])('with %f of the open requests, load is shed at the next sample: %o', async (openShare, shed) => {
  const watched = new Watched()
  watched.openShare = openShare
  await watched.clock.advance(250)
  expect(watched.shed).toEqual(shed)
  watched.openShare = 0
  await watched.clock.advance(12_000)
  expect(watched.shed).toEqual([])
})

test('nothing is watched after the end', () => {
  const watched = new Watched()
  expect(watched.clock.waiting).toBe(1)
  watched.shedder[Symbol.dispose]()
  expect(watched.clock.waiting).toBe(0)
})
