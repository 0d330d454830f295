import { describe, expect, test } from 'vitest'
import { UpstreamError } from '../../src/domain/upstream.ts'
import type { Backend } from '../../src/gateway/ports.ts'
import { Candidates } from '../../src/gateway/routing/candidates.ts'
import { BackendsHealth } from '../../src/gateway/routing/health.ts'
import { RetryBudget } from '../../src/gateway/routing/retry-budget.ts'
import { ManualClock } from './manual-clock.ts'

function backend(id: string, failureDomain = id, contextWindow?: number): Backend {
  return {
    id,
    failureDomain,
    issuer: id,
    ...(contextWindow === undefined ? {} : { contextWindow }),
    format: 'openai-chat',
    model: id,
    simulated: false,
    timeouts: { connectMs: 1, firstContentMs: 1, wholeAnswerMs: 1, idleMs: 1, totalMs: 1 },
    dialect: { maxTokensField: 'max_tokens', developerRole: true, streamUsage: true, refusedFields: [] },
    call: () => {
      throw new Error('nobody calls here')
    },
  }
}

function healthy(random = 0.5) {
  const clock = new ManualClock()
  return { clock, health: new BackendsHealth(clock, () => random) }
}

function walk(candidates: Candidates, fails: (found: Backend) => void = () => {}): string[] {
  const ids: string[] = []
  for (let found = candidates.next(); found !== undefined; found = candidates.next()) {
    ids.push(found.id)
    fails(found)
  }
  return ids
}

describe('candidates', () => {
  test('come in the configured order, each once', () => {
    const { health } = healthy()
    expect(walk(new Candidates([backend('a'), backend('b'), backend('c')], health))).toEqual(['a', 'b', 'c'])
  })

  test('after a failure those come first that do not fail together with it', () => {
    const { health } = healthy()
    const candidates = new Candidates(
      [backend('a1', 'A'), backend('a2', 'A'), backend('b1', 'B'), backend('a3', 'A')],
      health,
    )
    expect(walk(candidates, (found) => candidates.failed(found))).toEqual(['a1', 'b1', 'a2', 'a3'])
  })

  test('those that are cooling are passed by', () => {
    const { health } = healthy()
    health.failed('a', new UpstreamError('rate_limited'))
    expect(walk(new Candidates([backend('a'), backend('b')], health))).toEqual(['b'])
  })

  test('a conversation that was too long goes only to windows that are known to be larger', () => {
    const { health } = healthy()
    const all = [backend('small', 's', 8), backend('unknown'), backend('same', 't', 8), backend('large', 'l', 100)]
    const candidates = new Candidates(all, health)
    candidates.next()
    candidates.keepLargerThan(all[0]!)
    expect(walk(candidates)).toEqual(['large'])
  })

  test('when none is left the soonest end of a cooling and all reasons are told', () => {
    const { clock, health } = healthy()
    health.failed('a', new UpstreamError('rate_limited', { retryAfterMs: 20_000 }))
    health.failed('b', new UpstreamError('rejected_credentials'))
    const candidates = new Candidates([backend('a'), backend('b')], health)
    expect(candidates.next()).toBeUndefined()
    expect(candidates.exhausted([backend('a'), backend('b'), backend('c')])).toEqual({
      soonestMs: clock.nowMs() + 20_000,
      passedBy: [
        { backend: 'a', reason: 'rate' },
        { backend: 'b', reason: 'credentials' },
      ],
    })
  })
})

describe('what operators keep out', () => {
  const held = new Map([['a', { kind: 'drained', sinceMs: 7 }]] as const)

  test('is passed by, whatever is heard of it meanwhile, and nobody knows when that ends', () => {
    const { health } = healthy()
    health.hold(held)
    expect(walk(new Candidates([backend('a'), backend('b')], health))).toEqual(['b'])
    health.succeeded('a')
    health.forgive('a')
    const none = new Candidates([backend('a')], health)
    expect(none.next()).toBeUndefined()
    expect(none.exhausted([backend('a')])).toEqual({
      soonestMs: Number.POSITIVE_INFINITY,
      passedBy: [{ backend: 'a', reason: 'drained' }],
    })
    health.hold(new Map())
    expect(walk(new Candidates([backend('a'), backend('b')], health))).toEqual(['a', 'b'])
  })

  test('is told first, and behind it what the service has seen by itself', () => {
    const { clock, health } = healthy()
    expect(health.condition('a')).toEqual({
      backendId: 'a',
      state: 'usable',
      reason: undefined,
      sinceMs: undefined,
      untilMs: undefined,
      failures: 0,
      lastFailure: undefined,
    })
    health.failed('a', new UpstreamError('rejected_credentials', { status: 401 }))
    const lastFailure = { outcome: 'rejected_credentials', atMs: clock.nowMs() }
    const quarantined = {
      state: 'quarantined',
      reason: 'credentials',
      sinceMs: clock.nowMs(),
      untilMs: clock.nowMs() + 60_000,
      failures: 1,
      lastFailure,
    }
    expect(health.condition('a')).toMatchObject(quarantined)
    health.hold(held)
    expect(health.condition('a')).toMatchObject({ state: 'drained', sinceMs: 7, untilMs: undefined, lastFailure })
    health.hold(new Map())
    expect(health.condition('a')).toMatchObject(quarantined)
    health.forgive('a')
    expect(health.condition('a')).toMatchObject({ state: 'usable', failures: 0, lastFailure })
  })

  test('what cools again and again is told to do so since the first time', async () => {
    const { clock, health } = healthy()
    const sinceMs = clock.nowMs()
    health.failed('a', new UpstreamError('rate_limited'))
    await clock.advance(5_000)
    health.attempted('a')
    health.failed('a', new UpstreamError('rate_limited'))
    expect(health.condition('a')).toMatchObject({ state: 'cooling', reason: 'rate', sinceMs, failures: 2 })
  })
})

describe('the health of backends', () => {
  test.each([
    [0, 1],
    [1_000, 1],
    [2_000, 2],
    [300_000, 300],
    [1e12 * 1000, 300],
    [Number.POSITIVE_INFINITY, 300],
  ])('Retry-After of %d ms cools for %d s', (retryAfterMs, seconds) => {
    const { clock, health } = healthy()
    health.failed('a', new UpstreamError('rate_limited', { retryAfterMs }))
    expect(health.availability('a')).toEqual({ usable: false, reason: 'rate', untilMs: clock.nowMs() + seconds * 1000 })
  })

  test('a 503 that names a time is left alone as long, one that does not is tried again at once', () => {
    const { health } = healthy()
    health.failed('a', new UpstreamError('server_error', { status: 503, retryAfterMs: 10_000 }))
    health.failed('b', new UpstreamError('server_error', { status: 503 }))
    expect(health.availability('a').usable).toBe(false)
    expect(health.availability('b').usable).toBe(true)
  })

  test('the fifth failure in a row cools for half a minute, a success between begins anew', () => {
    const { clock, health } = healthy()
    const fail = (): void => health.failed('a', new UpstreamError('timeout'))
    for (let count = 0; count < 4; count++) fail()
    health.succeeded('a')
    for (let count = 0; count < 4; count++) fail()
    expect(health.availability('a').usable).toBe(true)
    fail()
    expect(health.availability('a')).toEqual({ usable: false, reason: 'failing', untilMs: clock.nowMs() + 30_000 })
  })

  test('each further failure of its probe cools longer, up to five minutes, give or take a fifth', async () => {
    for (const [random, factor] of [
      [0, 0.8],
      [0.5, 1],
      [1, 1.2],
    ] as const) {
      const { clock, health } = healthy(random)
      for (let count = 0; count < 5; count++) health.failed('a', new UpstreamError('reset'))
      const seconds: number[] = []
      for (let round = 0; round < 12; round++) {
        const availability = health.availability('a')
        if (availability.usable) throw new Error('it should be cooling')
        const forMs = availability.untilMs - clock.nowMs()
        seconds.push(forMs / 1000)
        await clock.advance(Math.ceil(forMs))
        expect(health.availability('a').usable).toBe(true)
        health.attempted('a')
        health.failed('a', new UpstreamError('reset'))
      }
      const expected = [30, 60, 90, 120, 150, 180, 210, 240, 270, 300, 300, 300]
      seconds.forEach((found, index) => expect(found).toBeCloseTo(expected[index]! * factor, 3))
    }
  })

  test('rejected credentials are left alone for a minute', () => {
    const { clock, health } = healthy()
    health.failed('a', new UpstreamError('rejected_credentials'))
    expect(health.availability('a')).toEqual({ usable: false, reason: 'credentials', untilMs: clock.nowMs() + 60_000 })
  })

  test('when a cooling ends one request probes and all others go on passing by', async () => {
    const { clock, health } = healthy()
    health.failed('a', new UpstreamError('rate_limited', { retryAfterMs: 2_000 }))
    await clock.advance(2_000)
    const probes = Array.from({ length: 50 }, () => {
      const found = new Candidates([backend('a')], health).next()
      if (found !== undefined) health.attempted(found.id)
      return found
    }).filter((found) => found !== undefined)
    expect(probes).toHaveLength(1)
    health.succeeded('a')
    expect(health.availability('a').usable).toBe(true)
  })

  test('a probe that told nothing leaves the next one to try', async () => {
    const { clock, health } = healthy()
    health.failed('a', new UpstreamError('rate_limited', { retryAfterMs: 2_000 }))
    await clock.advance(2_000)
    health.attempted('a')
    expect(health.availability('a').usable).toBe(false)
    health.undecided('a')
    expect(health.availability('a').usable).toBe(true)
  })

  test('a probe that never reports does not close a backend for ever', async () => {
    const { clock, health } = healthy()
    health.failed('a', new UpstreamError('rate_limited', { retryAfterMs: 2_000 }))
    await clock.advance(2_000)
    health.attempted('a')
    await clock.advance(600_000)
    expect(health.availability('a').usable).toBe(true)
  })
})

describe('the retry budget', () => {
  test('lets 64 retry at once however quiet it is', () => {
    const budget = new RetryBudget()
    budget.requestStarted()
    expect(Array.from({ length: 100 }, () => budget.take()).filter(Boolean)).toHaveLength(64)
    budget.giveBack()
    expect(budget.take()).toBe(true)
  })

  test('lets a fifth of many requests under way retry, and no more', () => {
    const budget = new RetryBudget()
    for (let count = 0; count < 1000; count++) budget.requestStarted()
    expect(Array.from({ length: 1000 }, () => budget.take()).filter(Boolean)).toHaveLength(200)
    for (let count = 0; count < 600; count++) budget.requestEnded()
    for (let count = 0; count < 200; count++) budget.giveBack()
    expect(Array.from({ length: 1000 }, () => budget.take()).filter(Boolean)).toHaveLength(80)
  })
})

describe('failures of one moment', () => {
  test('count once: thirty requests that fail together leave the backend alone for the first time only', () => {
    const clock = new ManualClock()
    const health = new BackendsHealth(clock, () => 0.5)
    for (let count = 0; count < 30; count++) health.failed('one', new UpstreamError('server_error'))
    const availability = health.availability('one')
    expect(availability).toMatchObject({ usable: false, reason: 'failing' })
    expect('untilMs' in availability ? availability.untilMs - clock.nowMs() : 0).toBe(30_000)
  })
})
