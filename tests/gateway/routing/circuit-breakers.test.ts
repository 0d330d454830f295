import { describe, expect, test } from 'vitest'
import type { ServiceEvent } from '../../../src/domain/events.ts'
import { UpstreamError } from '../../../src/domain/upstream.ts'
import { CircuitBreakers } from '../../../src/gateway/routing/circuit-breakers.ts'
import type { ContentKind } from '../../../src/gateway/routing/content-kind.ts'
import { ManualClock } from '../manual-clock.ts'
import { answerOnce, failOnce, someBreakerKey } from './breaker-outcomes.ts'

function opened(random = 0.5) {
  const clock = new ManualClock()
  const events: ServiceEvent[] = []
  const breakers = new CircuitBreakers({ clock, random: () => random, log: (event) => void events.push(event) })
  return { clock, events, breakers }
}

function breakerKeyOf(accountId: string, kind: ContentKind = 'plain') {
  return { accountId, contentKind: () => kind }
}

const broken = new UpstreamError('server_error', { status: 503 })

function failTimes(breakers: CircuitBreakers, times: number, breakerKey = someBreakerKey): void {
  for (let count = 0; count < times; count++) failOnce(breakers, 'a', broken, breakerKey)
}

/** Milliseconds until the backend is tried again. */
function waitOf(breakers: CircuitBreakers, clock: ManualClock): number {
  const found = breakers.availability('a')
  if (found.usable) throw new Error('its breaker should be open')
  return found.untilMs - clock.nowMs()
}

describe('a circuit breaker', () => {
  test.each([
    [0, 1],
    [1_000, 1],
    [2_000, 2],
    [60_000, 60],
    [300_000, 60],
    [1e12 * 1000, 60],
    [Number.POSITIVE_INFINITY, 60],
  ])('Retry-After of %d ms opens it for %d s, and the backend is not asked before', (retryAfterMs, seconds) => {
    const { clock, breakers } = opened()
    failOnce(breakers, 'a', new UpstreamError('rate_limited', { retryAfterMs }))
    const untilMs = clock.nowMs() + seconds * 1000
    expect(breakers.availability('a')).toEqual({ usable: false, reason: 'rate', untilMs, isLastResort: false })
  })

  test.each([-3_600_000, 3_600_000])('setting the wall clock by %d ms does not change the wait', (stepMs) => {
    const { clock, breakers } = opened()
    failOnce(breakers, 'a', new UpstreamError('rate_limited', { retryAfterMs: 20_000 }))
    clock.step(stepMs)
    expect(waitOf(breakers, clock)).toBe(20_000)
  })

  test('of a shared backend stays open, however many backends of accounts are called', () => {
    const { breakers } = opened()
    failTimes(breakers, 5)
    for (let call = 0; call < 10_001; call++)
      breakers.begin({ id: `own-${call}`, owner: 'acc_1' }, someBreakerKey).ended()
    expect(breakers.condition('a').state).toBe('open')
    expect(breakers.availability('a').usable).toBe(false)
    breakers.reset('a')
    expect(breakers.availability('a').usable).toBe(true)
  })

  test.each([
    ['a flagged prompt', new UpstreamError('rejected_credentials', { status: 403 })],
    ['an unaffordable answer', new UpstreamError('rejected_credentials', { status: 402 })],
  ])('repeated failures of one account with %s do not affect other accounts', (_, error) => {
    const { breakers } = opened()
    for (let count = 0; count < 10; count++) {
      failOnce(breakers, 'a', error, breakerKeyOf('flagged'))
      expect(breakers.availability('a').usable).toBe(true)
      answerOnce(breakers, 'a', breakerKeyOf('good'))
    }
  })

  test('a server error with Retry-After for an image affects only images', () => {
    const { breakers } = opened()
    const error = new UpstreamError('server_error', { status: 500, retryAfterMs: 300_000 })
    for (let count = 0; count < 8; count++) failOnce(breakers, 'a', error, breakerKeyOf('x', 'image'))
    expect(breakers.availability('a').usable).toBe(true)
  })

  test('a late Retry-After does not open the breaker of a backend that has recovered', async () => {
    const { breakers, clock } = opened()
    const straggler = breakers.begin({ id: 'a' }, someBreakerKey)
    failOnce(breakers, 'a', new UpstreamError('rate_limited', { retryAfterMs: 1_000 }))
    await clock.advance(1_001)
    answerOnce(breakers, 'a')
    straggler.ended(new UpstreamError('rate_limited', { retryAfterMs: 60_000 }))
    expect(breakers.availability('a').usable).toBe(true)
  })

  test('rejected credentials open it for 25 s, with one last-resort attempt every 5 s', async () => {
    const { clock, breakers } = opened()
    const rejected = new UpstreamError('rejected_credentials', { status: 401 })
    failOnce(breakers, 'a', rejected)
    const untilMs = clock.nowMs() + 25_000
    expect(breakers.availability('a')).toEqual({ usable: false, reason: 'credentials', untilMs, isLastResort: false })
    await clock.advance(5_000)
    expect(breakers.availability('a')).toEqual({ usable: false, reason: 'credentials', untilMs, isLastResort: true })
    const retry = breakers.begin({ id: 'a' }, someBreakerKey)
    expect(breakers.availability('a')).toMatchObject({ isLastResort: false })
    retry.ended(rejected)
    await clock.advance(4_999)
    expect(breakers.availability('a')).toMatchObject({ usable: false, isLastResort: false })
    await clock.advance(1)
    answerOnce(breakers, 'a')
    expect(breakers.availability('a')).toEqual({ usable: true })
  })

  test('it opens at five failures if they are more than half of the outcomes', () => {
    const { breakers } = opened()
    failTimes(breakers, 4)
    expect(breakers.availability('a').usable).toBe(true)
    failTimes(breakers, 1)
    expect(breakers.availability('a')).toMatchObject({ usable: false, reason: 'failing', isLastResort: true })
    const often = opened().breakers
    for (let count = 0; count < 100; count++) {
      failOnce(often, 'a', broken)
      answerOnce(often, 'a')
    }
    expect(often.availability('a').usable).toBe(true)
    expect(often.isTroubled('a')).toBe(true)
  })

  test('a break after the first content is a failure', () => {
    const { breakers } = opened()
    for (let count = 0; count < 5; count++) {
      const attempt = breakers.begin({ id: 'a' }, someBreakerKey)
      attempt.sawAnswer()
      attempt.ended(new UpstreamError('reset'))
    }
    expect(breakers.availability('a').usable).toBe(false)
  })

  test('faults of the request or of this service never open it', () => {
    const { breakers } = opened()
    for (let count = 0; count < 50; count++) {
      failOnce(breakers, 'a', new UpstreamError('rejected_content', { status: 400 }))
      failOnce(breakers, 'a', new UpstreamError('server_error', { status: 500, blames: 'request' }))
      failOnce(breakers, 'a', new UpstreamError('not_sent'))
      failOnce(breakers, 'a', new UpstreamError('cancelled'))
    }
    expect(breakers.availability('a').usable).toBe(true)
    expect(breakers.condition('a').failures).toBe(0)
  })

  test('failures with images affect only images', () => {
    const { breakers } = opened()
    const onImages = new UpstreamError('server_error', { status: 500 })
    for (let count = 0; count < 50; count++) failOnce(breakers, 'a', onImages, breakerKeyOf('acc_1', 'image'))
    expect(breakers.availability('a', breakerKeyOf('acc_2', 'image')).usable).toBe(false)
    expect(breakers.availability('a', breakerKeyOf('acc_1', 'plain')).usable).toBe(true)
    expect(breakers.availability('a').usable).toBe(true)
    failTimes(breakers, 5)
    expect(breakers.availability('a', breakerKeyOf('acc_2', 'image')).usable).toBe(false)
    expect(breakers.availability('a').usable).toBe(false)
  })

  test('an account whose requests always fail does not open the breaker of an account that is served', () => {
    const { breakers } = opened()
    for (let count = 0; count < 200; count++) {
      failOnce(breakers, 'a', broken, breakerKeyOf('poisonous'))
      if (count % 20 === 0) answerOnce(breakers, 'a', breakerKeyOf('served'))
      if (count > 0) expect(breakers.availability('a', breakerKeyOf('served')).usable).toBe(true)
    }
  })

  test('the open interval grows with the length of the outage, from 1 s to 30 s', async () => {
    for (const random of [0, 0.5, 1]) {
      const { clock, breakers } = opened(random)
      const startMs = clock.nowMs()
      failTimes(breakers, 5)
      for (let probes = 0; probes < 200; probes++) {
        const waitMs = waitOf(breakers, clock)
        const downMs = clock.nowMs() - startMs
        expect(waitMs).toBeGreaterThanOrEqual(800)
        expect(waitMs).toBeLessThanOrEqual(Math.min(30_000, Math.max(1_200, 0.3 * downMs + 1)))
        await clock.advance(Math.ceil(waitMs))
        expect(breakers.availability('a').usable).toBe(true)
        failTimes(breakers, 1)
      }
    }
  })

  test('simultaneous failures open it once', () => {
    const { clock, breakers } = opened()
    const attempts = Array.from({ length: 60 }, () => breakers.begin({ id: 'a' }, someBreakerKey))
    for (const attempt of attempts) attempt.ended(broken)
    expect(waitOf(breakers, clock)).toBe(1_000)
  })

  test('attempts that began during the outage and end after it do not open it again', async () => {
    const { clock, breakers } = opened()
    failTimes(breakers, 5)
    const hanging = Array.from({ length: 60 }, () => breakers.begin({ id: 'a' }, someBreakerKey))
    await clock.advance(1_000)
    answerOnce(breakers, 'a')
    for (const attempt of hanging) attempt.ended(new UpstreamError('timeout'))
    expect(breakers.availability('a').usable).toBe(true)
  })

  test('the log has one event when a backend goes down and one when it recovers', async () => {
    const { clock, breakers, events } = opened()
    failTimes(breakers, 5)
    for (let probes = 0; probes < 3; probes++) {
      await clock.advance(20_000)
      failTimes(breakers, 1)
    }
    await clock.advance(20_000)
    answerOnce(breakers, 'a')
    answerOnce(breakers, 'a')
    expect(events).toEqual([
      { event: 'backend_down', backend: 'a', contentKind: 'plain', reason: 'failing' },
      { event: 'backend_back', backend: 'a', contentKind: 'plain', downMs: 80_000 },
    ])
  })
})

describe('a probe', () => {
  async function halfOpen() {
    const world = opened()
    failTimes(world.breakers, 5)
    await world.clock.advance(1_000)
    return world
  }

  test('it is a single request; others go elsewhere, or to this backend as a last resort', async () => {
    const { breakers } = await halfOpen()
    breakers.begin({ id: 'a' }, someBreakerKey)
    expect(breakers.availability('a')).toMatchObject({ usable: false, isLastResort: true })
  })

  test('it succeeds at the first sign of an answer', async () => {
    const { breakers } = await halfOpen()
    breakers.begin({ id: 'a' }, someBreakerKey).sawAnswer()
    expect(breakers.availability('a').usable).toBe(true)
  })

  test.each([
    ['its client disconnects', new UpstreamError('cancelled')],
    ['it could not be sent', new UpstreamError('not_sent')],
    ['a bug ends it', new Error('bug')],
  ])('the next request becomes the probe immediately when %s', async (_, error) => {
    const { breakers } = await halfOpen()
    breakers.begin({ id: 'a' }, someBreakerKey).ended(error)
    expect(breakers.availability('a').usable).toBe(true)
  })

  test('a probe that is silent for five seconds does not block others', async () => {
    const { clock, breakers } = await halfOpen()
    breakers.begin({ id: 'a' }, someBreakerKey)
    await clock.advance(5_000)
    expect(breakers.availability('a').usable).toBe(true)
  })

  test('a request that begins while the breaker is open does not block the probe', async () => {
    const { clock, breakers } = opened()
    failTimes(breakers, 5)
    breakers.begin({ id: 'a' }, someBreakerKey)
    await clock.advance(1_000)
    expect(breakers.availability('a').usable).toBe(true)
  })

  test('a probe that breaks after its first sign opens the breaker again at the second failure', async () => {
    const { breakers } = await halfOpen()
    for (let count = 0; count < 2; count++) {
      const attempt = breakers.begin({ id: 'a' }, someBreakerKey)
      attempt.sawAnswer()
      expect(breakers.availability('a').usable).toBe(true)
      attempt.ended(new UpstreamError('reset'))
    }
    expect(breakers.availability('a').usable).toBe(false)
  })

  test('steps of the wall clock change nothing', async () => {
    for (const stepMs of [3_600_000, -3_600_000]) {
      const { clock, breakers } = opened()
      failTimes(breakers, 5)
      clock.step(stepMs)
      expect(waitOf(breakers, clock)).toBe(1_000)
      await clock.advance(1_000)
      expect(breakers.availability('a').usable).toBe(true)
    }
  })
})

describe('a slow backend', () => {
  const pace = { leastMs: 2_500, slowMs: () => 4_000 }
  const accounts = ['acc_1', 'acc_2', 'acc_3']

  /** Three accounts use the backend, and calls of theirs have waited for this long. */
  async function waiting(ms: number, callers: readonly string[] = accounts) {
    const world = opened()
    for (const account of accounts) answerOnce(world.breakers, 'a', breakerKeyOf(account))
    const calls = callers.map((account) => world.breakers.begin({ id: 'a' }, breakerKeyOf(account), pace))
    await world.clock.advance(ms)
    return { ...world, calls }
  }

  test('it is skipped once three calls of three accounts have waited too long, before any of them times out', async () => {
    expect((await waiting(4_000)).breakers.availability('a').usable).toBe(true)
    const { breakers, clock, events } = await waiting(4_001)
    expect(breakers.availability('a')).toEqual({
      usable: false,
      reason: 'slow',
      untilMs: clock.nowMs() + 10_000,
      isLastResort: true,
    })
    expect(events).toEqual([{ event: 'backend_down', backend: 'a', contentKind: 'plain', reason: 'slow' }])
  })

  test('it is used while a call that was begun later is answered in time', async () => {
    const { breakers, clock } = await waiting(4_000)
    breakers.begin({ id: 'a' }, breakerKeyOf('acc_1'), pace).sawContent()
    await clock.advance(60_000)
    expect(breakers.availability('a').usable).toBe(true)
  })

  test.each([
    ['that wait', () => {}],
    ['whose content comes late', (call: { sawContent: () => void }) => call.sawContent()],
  ])('the calls %s of one account make it slow only if no other account uses it', async (_, end) => {
    const shared = await waiting(4_001, ['acc_1', 'acc_1', 'acc_1', 'acc_2'])
    for (const call of shared.calls) end(call)
    expect(shared.breakers.availability('a').usable).toBe(true)
    const alone = opened()
    const calls = accounts.map(() => alone.breakers.begin({ id: 'a' }, breakerKeyOf('acc_1'), pace))
    await alone.clock.advance(4_001)
    for (const call of calls) end(call)
    expect(alone.breakers.availability('a')).toMatchObject({ usable: false, reason: 'slow' })
  })

  test('calls that were cancelled, and late content of over a minute ago, do not count', async () => {
    const cancelled = await waiting(4_001)
    cancelled.calls[0]!.ended(new UpstreamError('cancelled'))
    expect(cancelled.breakers.availability('a').usable).toBe(true)
    const late = await waiting(4_001)
    for (const call of late.calls) call.sawContent()
    await late.clock.advance(60_000)
    expect(late.breakers.availability('a').usable).toBe(true)
  })

  test('calls that another backend answered first count as late', async () => {
    const { breakers, calls } = await waiting(1_000)
    for (const call of calls) call.lost()
    expect(breakers.availability('a')).toMatchObject({ usable: false, reason: 'slow' })
  })

  test('an answer to a call that waited lets a probe through at once', async () => {
    const { breakers, calls } = await waiting(4_001)
    expect(breakers.availability('a').usable).toBe(false)
    calls[0]!.sawAnswer()
    expect(breakers.availability('a').usable).toBe(false)
    calls[0]!.sawContent()
    expect(breakers.availability('a').usable).toBe(true)
    const probe = breakers.begin({ id: 'a' }, breakerKeyOf('acc_1'), pace)
    expect(breakers.availability('a')).toMatchObject({ usable: false, reason: 'slow' })
    probe.sawAnswer()
    expect(breakers.condition('a').state).toBe('half_open')
    probe.sawContent()
    expect(breakers.condition('a').state).toBe('closed')
  })

  test('it stays skipped if the content of its probe comes late', async () => {
    const { breakers, calls, clock } = await waiting(4_001)
    expect(breakers.availability('a').usable).toBe(false)
    for (const call of calls) call.ended(new UpstreamError('timeout'))
    await clock.advance(10_000)
    const probe = breakers.begin({ id: 'a' }, breakerKeyOf('acc_1'), pace)
    await clock.advance(4_500)
    probe.sawAnswer()
    probe.sawContent()
    expect(waitOf(breakers, clock)).toBe(10_000)
  })

  test('it is open for at most 30 s, however long it was slow', async () => {
    const world = await waiting(4_001)
    for (let probes = 0; probes < 50; probes++) {
      const waitMs = waitOf(world.breakers, world.clock)
      expect(waitMs).toBeLessThanOrEqual(30_000)
      await world.clock.advance(waitMs)
      const probe = world.breakers.begin({ id: 'a' }, breakerKeyOf('acc_1'), pace)
      await world.clock.advance(4_500)
      probe.sawContent()
    }
  })
})

describe('a backend that recovers', () => {
  /** Its breaker has just been closed by a probe. */
  async function recovering() {
    const world = opened()
    failTimes(world.breakers, 5)
    await world.clock.advance(1_000)
    const probe = world.breakers.begin({ id: 'a' }, someBreakerKey)
    probe.sawAnswer()
    return { ...world, probe }
  }

  /** Begins calls until it takes no more. */
  function fill({ breakers }: { breakers: CircuitBreakers }): number {
    let calls = 0
    for (; calls < 1_000 && breakers.availability('a').usable; calls++) breakers.begin({ id: 'a' }, someBreakerKey)
    return calls
  }

  test('it may have two calls without content at first, and twice as many every 2 s, until 10 s have passed', async () => {
    const world = await recovering()
    const taken: number[] = []
    for (let step = 0; step < 6; step++) {
      taken.push(fill(world))
      await world.clock.advance(2_000)
    }
    expect(taken).toEqual([1, 2, 4, 8, 16, 1_000])
  })

  test('calls with content do not count, so a fast backend gets all requests at once', async () => {
    const { breakers, probe } = await recovering()
    probe.sawContent()
    for (let call = 0; call < 100; call++) {
      expect(breakers.availability('a').usable).toBe(true)
      breakers.begin({ id: 'a' }, someBreakerKey).sawContent()
    }
  })

  test('those beyond that are asked elsewhere, or there as a last resort', async () => {
    const world = await recovering()
    fill(world)
    expect(world.breakers.availability('a')).toMatchObject({ usable: false, reason: 'failing', isLastResort: true })
    expect(world.breakers.condition('a').state).toBe('closed')
  })

  test('a rate limit that ended leaves no steps: its time is known', async () => {
    const world = opened()
    failOnce(world.breakers, 'a', new UpstreamError('rate_limited', { retryAfterMs: 1_000 }))
    await world.clock.advance(1_000)
    world.breakers.begin({ id: 'a' }, someBreakerKey).sawAnswer()
    expect(fill(world)).toBe(1_000)
  })

  test('a second failure ends the recovery', async () => {
    const { breakers } = await recovering()
    failTimes(breakers, 1)
    expect(breakers.availability('a').usable).toBe(true)
    failTimes(breakers, 1)
    expect(breakers.condition('a').state).toBe('open')
  })
})
