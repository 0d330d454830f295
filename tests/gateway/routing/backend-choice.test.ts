import { describe, expect, test } from 'vitest'
import type { RequestRouting } from '../../../src/domain/routing-policy.ts'
import { UpstreamError } from '../../../src/domain/upstream.ts'
import { seededRandom } from '../../../src/gateway/fusion/engine/seeded-random.ts'
import type { Backend } from '../../../src/gateway/ports.ts'
import { BackendChoice } from '../../../src/gateway/routing/backend-choice.ts'
import { BackendStatistics } from '../../../src/gateway/routing/backend-statistics.ts'
import { Candidates } from '../../../src/gateway/routing/candidates.ts'
import { CircuitBreakers } from '../../../src/gateway/routing/circuit-breakers.ts'
import { ManualClock } from '../manual-clock.ts'
import { someBreakerKey } from './breaker-outcomes.ts'
import { someBackend } from './some-backend.ts'

const kind = 0
const nothing = { sawAnswer: () => {}, sawContent: () => {}, lost: () => {}, ended: () => {} }

/** Backends with measurements, and choices among them. */
class Choosing {
  nowMs = 1_000
  readonly statistics = new BackendStatistics({ monotonicMs: () => this.nowMs })
  readonly random = seededRandom(7)
  readonly breakers = new CircuitBreakers({ clock: new ManualClock(), random: () => 0.5, log: () => {} })

  /** Calls that were begun after the newest one that was answered in time, by backend. */
  unanswered: Readonly<Record<string, { count: number; sinceMs: number }>> = {}

  begin(backendId: string) {
    return this.statistics.begin({ backend: { id: backendId }, accountId: 'acc', kind }, nothing)
  }

  measure(backendId: string, ms: number): void {
    const attempt = this.begin(backendId)
    this.nowMs += ms
    attempt.sawContent()
    attempt.ended()
  }

  context(routing: RequestRouting) {
    return {
      routing,
      kind,
      promptTokens: 1_000,
      nowMs: this.nowMs,
      unanswered: ({ id }: Backend) => this.unanswered[id],
    }
  }

  candidates(backends: readonly Backend[], routing: RequestRouting, random: (() => number) | undefined = this.random) {
    const { breakers, statistics } = this
    const choice = new BackendChoice(statistics, this.context(routing), random)
    return new Candidates({ backends, routing, breakers, breakerKey: someBreakerKey, statistics, choice })
  }

  /** How often each backend is chosen first, as a share. */
  shares(backends: readonly Backend[], routing: RequestRouting, times = 4_000): Record<string, number> {
    const counts: Record<string, number> = Object.fromEntries(backends.map(({ id }) => [id, 0]))
    for (let count = 0; count < times; count++) counts[this.candidates(backends, routing).next()!.id]! += 1 / times
    return counts
  }

  order(backends: readonly Backend[], routing: RequestRouting): string[] {
    const candidates = this.candidates(backends, routing, undefined)
    const ids: string[] = []
    for (let found = candidates.next(); found !== undefined; found = candidates.next()) {
      ids.push(found.id)
      candidates.failed(found)
    }
    return ids
  }
}

const [a, b, c] = [someBackend('a'), someBackend('b'), someBackend('c')]
const balanced: RequestRouting = { sort: 'balanced' }

describe('a balanced choice', () => {
  test('is even among equal backends, and follows their weights', () => {
    const choosing = new Choosing()
    const even = choosing.shares([a, b, c], balanced)
    for (const share of Object.values(even)) expect(share).toBeCloseTo(1 / 3, 1)
    const weighted = choosing.shares([a, b, c], { sort: 'balanced', weights: { a: 6, b: 3 } })
    expect(weighted['a']).toBeCloseTo(0.6, 1)
    expect(weighted['b']).toBeCloseTo(0.3, 1)
    expect(weighted['c']).toBeCloseTo(0.1, 1)
  })

  test('prefers the fast one, and still tries a slow one now and then', () => {
    const choosing = new Choosing()
    choosing.measure('a', 300)
    choosing.measure('b', 3_000)
    const { a: fast, b: slow } = choosing.shares([a, b], balanced)
    expect(fast).toBeGreaterThan(0.98)
    expect(slow).toBeGreaterThan(0)
  })

  test('avoids a loaded backend, and one that fails', () => {
    const choosing = new Choosing()
    for (let count = 0; count < 32; count++) choosing.begin('a')
    expect(choosing.shares([a, b], balanced)['b']).toBeGreaterThan(0.9)
    for (let count = 0; count < 8; count++) choosing.begin('b').ended(new UpstreamError('timeout'))
    expect(choosing.shares([b, c], balanced)['c']).toBeGreaterThan(0.8)
  })

  test('avoids one that just failed, and tries it again after ten seconds, with 1% of the requests', () => {
    const choosing = new Choosing()
    for (const id of ['a', 'b']) choosing.measure(id, 300)
    choosing.begin('a').ended(new UpstreamError('unreachable'))
    choosing.begin('a').ended(new UpstreamError('unreachable'))
    const chosen = (times: number): number => {
      let count = 0
      for (let index = 0; index < times; index++) {
        const { id } = choosing.candidates([a, b], balanced).next()!
        choosing.begin(id).ended(new UpstreamError('cancelled'))
        count += Number(id === 'a')
      }
      return count
    }
    expect(chosen(200)).toBeLessThanOrEqual(1)
    choosing.nowMs += 10_001
    expect(chosen(1)).toBe(1)
    expect(chosen(99)).toBe(0)
  })

  test('tries an unmeasured backend soon', () => {
    const choosing = new Choosing()
    choosing.measure('a', 300)
    expect(choosing.shares([a, b], balanced)['b']).toBeGreaterThan(0.2)
  })

  test('weighs the price, unless only latency counts', () => {
    const cheap = someBackend('cheap', { usdPerMillion: { input: 1, output: 4 } })
    const dear = someBackend('dear', { usdPerMillion: { input: 15, output: 75 } })
    const choosing = new Choosing()
    expect(choosing.shares([dear, cheap], balanced)['cheap']).toBeGreaterThan(0.8)
    expect(choosing.shares([dear, cheap], { sort: 'latency' })['cheap']).toBeCloseTo(0.5, 1)
    for (let count = 0; count < 3; count++) choosing.measure('cheap', 20_000)
    choosing.measure('dear', 300)
    expect(choosing.shares([dear, cheap], balanced)['dear']).toBeGreaterThan(0.9)
  })

  test('is the same for the same seed', () => {
    const once = () => new Choosing().shares([a, b, c], balanced, 50)
    expect(once()).toEqual(once())
  })

  test('after a failure, asks the best of another failure domain', () => {
    const twin = someBackend('twin', { failureDomain: 'a' })
    const choosing = new Choosing()
    for (const [id, ms] of [
      ['a', 100],
      ['twin', 100],
      ['b', 900],
      ['c', 500],
    ] as const)
      choosing.measure(id, ms)
    expect(choosing.order([a, twin, b, c], balanced)).toEqual(['a', 'c', 'b', 'twin'])
  })

  test('says how likely each backend is to be asked first', () => {
    const choosing = new Choosing()
    for (const [id, ms] of [
      ['a', 300],
      ['b', 500],
      ['c', 800],
    ] as const)
      choosing.measure(id, ms)
    const routing: RequestRouting = { sort: 'balanced', weights: { c: 3 } }
    const choice = new BackendChoice(choosing.statistics, choosing.context(routing), undefined)
    const details = choice.explain([a, b, c], [a, b, c])
    const shares = choosing.shares([a, b, c], routing, 20_000)
    for (const [id, { share }] of details) expect(shares[id]).toBeCloseTo(share, 1.5)
    expect([...details.values()].reduce((sum, { share }) => sum + share, 0)).toBeCloseTo(1)
  })

  const few = { count: 2, sinceMs: 0 }
  const many = { count: 3, sinceMs: 0 }

  test('gives no more calls to one with three unanswered ones while an equally good one has fewer', () => {
    const choosing = new Choosing()
    for (const id of ['a', 'b', 'c']) choosing.measure(id, 500)
    choosing.unanswered = { a: many, b: few }
    expect(choosing.shares([a, b, c], balanced, 500)['a']).toBe(0)
    choosing.measure('b', 5_000)
    choosing.measure('c', 5_000)
    expect(choosing.shares([a, b, c], balanced, 500)['a'], 'the others are much slower').toBeGreaterThan(0.9)
  })

  test('calls a slower one, as long as it is at most three times as slow, rather than one with many unanswered calls', () => {
    for (const [ms, isCalled] of [
      [1_400, true],
      [1_700, false],
    ] as const) {
      const choosing = new Choosing()
      choosing.measure('a', 500)
      choosing.measure('b', ms)
      choosing.unanswered = { a: { count: 8, sinceMs: choosing.nowMs - 100 } }
      expect(choosing.shares([a, b], balanced, 500)['b'], `${ms} ms`).toBeCloseTo(isCalled ? 1 : 0)
    }
  })

  test('if all have as many, chooses the one whose calls are the fewest and have waited for the shortest time', () => {
    const choosing = new Choosing()
    for (const id of ['a', 'b', 'c']) choosing.measure(id, 500)
    choosing.unanswered = { a: { count: 9, sinceMs: 9 }, b: { count: 5, sinceMs: 3 }, c: { count: 5, sinceMs: 6 } }
    expect(choosing.shares([a, b, c], balanced, 500)).toEqual({ a: 0, b: 0, c: expect.closeTo(1) })
    // One that hangs has few, and none of them is answered.
    const nowMs = choosing.nowMs
    choosing.unanswered = { a: { count: 4, sinceMs: nowMs - 900 }, b: { count: 6, sinceMs: nowMs - 300 } }
    expect(choosing.shares([a, b], balanced, 500)).toEqual({ a: 0, b: expect.closeTo(1) })
  })

  test('gives a backend with a larger weight as many more of them', () => {
    const choosing = new Choosing()
    for (const id of ['a', 'b']) choosing.measure(id, 500)
    choosing.unanswered = { a: { count: 4, sinceMs: 0 }, b: few }
    const shares = choosing.shares([a, b], { sort: 'balanced', weights: { a: 3 } }, 500)
    expect(shares['a'], 'it may have 4.5, and the other one 1.5').toBeCloseTo(1)
  })
})

describe('whatever the sort', () => {
  const own = someBackend('own', { owner: 'acc' })

  test("an account's own connection comes first, and one that probably cannot answer last", () => {
    const choosing = new Choosing()
    choosing.measure('own', 9_000)
    choosing.measure('a', 100)
    for (const sort of ['balanced', 'latency', 'price'] as const)
      expect(choosing.order([own, a], { sort })).toEqual(['own', 'a'])
    const doubtful = new Set([a])
    const { breakers, statistics } = choosing
    const choice = new BackendChoice(statistics, choosing.context(balanced), undefined)
    const options = { backends: [b, a], doubtful, routing: balanced, breakers, breakerKey: someBreakerKey, statistics }
    expect(new Candidates({ ...options, choice }).next()).toBe(b)
  })

  test('one that is full comes last', () => {
    const choosing = new Choosing()
    choosing.begin('own').ended(new UpstreamError('rate_limited'))
    choosing.begin('own')
    expect(choosing.order([own, a, b], balanced).at(-1)).toBe('own')
    const { breakers, statistics } = choosing
    const inOrder = { backends: [own, a], routing: { sort: 'order' }, breakers, breakerKey: someBreakerKey } as const
    expect(new Candidates({ ...inOrder, statistics, choice: undefined }).next()).toBe(a)
  })

  test('the price decides alone if it is to decide, and order before everything else', () => {
    const choosing = new Choosing()
    const free = someBackend('free', { usdPerMillion: { input: 0, output: 0 } })
    const cheap = someBackend('cheap', { usdPerMillion: { input: 1, output: 4 } })
    choosing.measure('a', 10)
    choosing.measure('cheap', 10)
    choosing.measure('free', 60_000)
    expect(choosing.order([a, cheap, free], { sort: 'price' })).toEqual(['free', 'cheap', 'a'])
    expect(choosing.order([own, a, cheap, free], { sort: 'price', order: ['model-a'] })).toEqual([
      'a',
      'own',
      'free',
      'cheap',
    ])
    const { breakers, statistics } = choosing
    const routing: RequestRouting = { sort: 'order', order: ['cheap'] }
    const listed = { backends: [a, cheap, free], routing, breakers, breakerKey: someBreakerKey, statistics }
    const candidates = new Candidates({ ...listed, choice: undefined })
    expect([candidates.next()?.id, candidates.next()?.id]).toEqual(['cheap', 'a'])
  })
})
