import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { UpstreamError } from '../../../src/domain/upstream.ts'
import { BackendStatistics } from '../../../src/gateway/routing/backend-statistics.ts'
import { promptKindOf, promptKinds } from '../../../src/gateway/routing/prompt-kind.ts'

const short = promptKindOf(400, { stream: true })
const long = promptKindOf(400_000, { stream: true })
const nothing = { sawAnswer: () => {}, sawContent: () => {}, lost: () => {}, ended: () => {} }

class Measuring {
  #nowMs = 1_000
  readonly clock = {
    monotonicMs: () => this.#nowMs,
    advance: (ms: number) => {
      this.#nowMs += ms
    },
  }
  readonly statistics = new BackendStatistics(this.clock)

  begin(accountId = 'acc', kind = short, backendId = 'a') {
    return this.statistics.begin({ backend: { id: backendId }, accountId, kind }, nothing)
  }

  /** One complete answer, whose first content arrives after this many milliseconds. */
  answer(ms: number, accountId = 'acc', kind = short): void {
    const attempt = this.begin(accountId, kind)
    this.clock.advance(ms)
    attempt.sawContent()
    attempt.ended()
  }

  fail(error: Error, accountId = 'acc'): void {
    this.begin(accountId).ended(error)
  }

  read(kind = short, backendId = 'a') {
    return this.statistics.read(backendId, kind, this.clock.monotonicMs())
  }
}

describe('the measured time to first content', () => {
  test('rises at once and falls over ten seconds', () => {
    const measuring = new Measuring()
    expect(measuring.read().firstContentMs).toBeUndefined()
    measuring.answer(200)
    measuring.answer(4_000)
    expect(measuring.read().firstContentMs).toBe(4_000)
    measuring.answer(200)
    expect(measuring.read().firstContentMs).toBeGreaterThan(3_500)
    for (let count = 0; count < 300; count++) measuring.answer(200)
    expect(measuring.read().firstContentMs).toBeCloseTo(209, 0)
  })

  test('is separate for long prompts, reasoning, and whole answers', () => {
    const measuring = new Measuring()
    measuring.answer(30_000, 'acc', long)
    measuring.answer(20_000, 'acc', promptKindOf(400, { stream: true, reasoning: {} }))
    measuring.answer(10_000, 'acc', promptKindOf(400, { stream: false }))
    expect(measuring.read().firstContentMs).toBeUndefined()
    expect(measuring.read(long).firstContentMs).toBe(30_000)
    const kinds = [1, 9_000, 70_000, 300_000].flatMap((bytes) => [
      promptKindOf(bytes, { stream: true }),
      promptKindOf(bytes, { stream: true, reasoning: {} }),
    ])
    expect(new Set([...kinds, promptKindOf(1, { stream: false })]).size).toBe(promptKinds)
  })

  test('drifts to what is assumed of unknown backends if nothing is measured for long', () => {
    const measuring = new Measuring()
    measuring.answer(16_000)
    measuring.clock.advance(90_000)
    expect(measuring.read().firstContentMs).toBe(16_000)
    measuring.clock.advance(300_000)
    expect(measuring.read().firstContentMs).toBeCloseTo(4_000)
    measuring.clock.advance(3_600_000)
    expect(measuring.read().firstContentMs).toBeLessThan(1_010)
  })

  test('does not rise with the slow prompts of one account, however many, if two others are answered', () => {
    fc.assert(
      fc.property(fc.array(fc.constantFrom('b', 'c', 'hostile'), { maxLength: 60 }), (senders) => {
        const measuring = new Measuring()
        measuring.answer(300, 'b')
        measuring.answer(300, 'c')
        for (const sender of senders) measuring.answer(sender === 'hostile' ? 1_000 : 300, sender)
        expect(measuring.read().firstContentMs).toBeLessThanOrEqual(300)
      }),
      { numRuns: 100 },
    )
  })

  test('an aborted request, or one that the backend rejects, is not measured', () => {
    const measuring = new Measuring()
    for (const outcome of ['cancelled', 'rejected_content', 'context_too_long', 'not_sent'] as const)
      measuring.fail(new UpstreamError(outcome))
    measuring.fail(new Error('a bug'))
    const { firstContentMs, errorRate, inFlight } = measuring.read()
    expect({ firstContentMs, errorRate, inFlight }).toEqual({ firstContentMs: undefined, errorRate: 0.02, inFlight: 0 })
  })
})

describe('attempts without content so far', () => {
  test('raise the expected time as soon as three accounts wait, or as many as there are', () => {
    const measuring = new Measuring()
    for (const account of ['a', 'b', 'c']) measuring.answer(300, account)
    const expected = measuring.read().firstContentMs!
    for (let count = 0; count < 20; count++) measuring.begin('hostile')
    measuring.begin('b')
    measuring.clock.advance(5_000)
    expect(measuring.read().firstContentMs).toBe(expected)
    const third = measuring.begin('c')
    measuring.clock.advance(2_000)
    expect(measuring.read().firstContentMs).toBe(2_000)
    third.ended(new UpstreamError('cancelled'))
    expect(measuring.read().firstContentMs).toBe(expected)
    const alone = new Measuring()
    alone.begin('a')
    alone.clock.advance(4_000)
    expect(alone.read().firstContentMs).toBe(4_000)
  })

  test('raise it when another backend was faster, and never lower it', () => {
    const measuring = new Measuring()
    measuring.answer(300)
    for (const [waitedMs, expectedMs] of [
      [100, 300],
      [900, 900],
    ] as const) {
      const attempt = measuring.begin()
      measuring.clock.advance(waitedMs)
      attempt.lost()
      attempt.ended(new UpstreamError('cancelled'))
      expect(measuring.read().firstContentMs).toBe(expectedMs)
    }
  })
})

describe('failures since the last success', () => {
  const failure = new UpstreamError('timeout')

  test('count once for one account among several, and end with an answer that began after them', () => {
    const measuring = new Measuring()
    measuring.answer(1, 'a')
    measuring.answer(1, 'b')
    const before = measuring.begin('b')
    measuring.clock.advance(1)
    for (let count = 0; count < 5; count++) measuring.fail(failure, 'hostile')
    expect(measuring.read().failuresInARow).toBe(1)
    measuring.fail(failure, 'a')
    expect(measuring.read().failuresInARow).toBe(6)
    before.ended()
    expect(measuring.read().failuresInARow).toBe(6)
    measuring.answer(1, 'b')
    expect(measuring.read().failuresInARow).toBe(0)
  })
})

describe('the measured error rate', () => {
  test('rises with failures and halves within a minute', () => {
    const measuring = new Measuring()
    for (const account of ['a', 'b', 'c', 'd', 'e'])
      for (let count = 0; count < 8; count++) measuring.fail(new UpstreamError('timeout'), account)
    const { errorRate } = measuring.read()
    expect(errorRate).toBeCloseTo(40.5 / 65)
    measuring.clock.advance(60_000)
    expect(measuring.read().errorRate).toBeCloseTo(20.5 / 45)
  })

  test('follows one account only so far: at most eight of its outcomes count', () => {
    const measuring = new Measuring()
    for (let count = 0; count < 1_000; count++) measuring.fail(new UpstreamError('server_error'), 'hostile')
    expect(measuring.read().errorRate).toBeLessThan(0.26)
    for (const account of ['b', 'c', 'd']) for (let count = 0; count < 8; count++) measuring.answer(1, account)
    expect(measuring.read().errorRate).toBeLessThan(0.16)
  })
})

describe('the learned limit of concurrent calls', () => {
  const rejection = new UpstreamError('rate_limited', { status: 429 })

  test('is unknown until a 429, then falls to 70% once per burst, and rises with answers', () => {
    const measuring = new Measuring()
    const { statistics, clock } = measuring
    const open = Array.from({ length: 20 }, () => measuring.begin())
    expect(statistics.isFull('a')).toBe(false)
    clock.advance(10)
    for (const attempt of open.splice(0, 5)) attempt.ended(rejection)
    expect(measuring.read()).toMatchObject({ limit: 14, inFlight: 15, errorRate: 0.02 })
    expect(statistics.isFull('a')).toBe(true)
    for (const attempt of open.splice(0, 10)) attempt.ended()
    expect(statistics.isFull('a')).toBe(false)
    for (let count = 0; count < 30; count++) measuring.answer(1)
    expect(measuring.read().limit).toBe(16)
  })

  test('is at least one, and forgotten after 15 minutes without a 429', () => {
    const measuring = new Measuring()
    for (let count = 0; count < 9; count++) {
      measuring.clock.advance(1)
      measuring.begin().ended(rejection)
    }
    expect(measuring.read().limit).toBe(1)
    measuring.clock.advance(15 * 60_000 + 1)
    expect(measuring.read().limit).toBe(32)
    measuring.begin()
    expect(measuring.statistics.isFull('a')).toBe(false)
  })

  test('rises with each answer to a call beyond it', () => {
    const measuring = new Measuring()
    const open = Array.from({ length: 5 }, () => measuring.begin())
    measuring.clock.advance(10)
    open.pop()!.ended(rejection)
    expect(measuring.read()).toMatchObject({ limit: 3, inFlight: 4 })
    measuring.begin().ended()
    expect(measuring.read().limit, 'it began before the limit could be known to be lower').toBe(3)
    measuring.clock.advance(10)
    for (const limit of [4, 5, 5]) {
      measuring.begin().ended()
      expect(measuring.read().limit).toBe(limit)
    }
  })

  test('is kept for a shared backend, with its open calls, however many backends of accounts are called', () => {
    const measuring = new Measuring()
    measuring.begin().ended(rejection)
    measuring.begin()
    for (let call = 0; call < 10_001; call++) {
      const backend = { id: `own-${call}`, owner: 'acc' }
      measuring.statistics.begin({ backend, accountId: 'acc', kind: short }, nothing).ended()
    }
    expect(measuring.read()).toMatchObject({ inFlight: 1, limit: 1 })
  })

  test('is that of one backend alone', () => {
    const measuring = new Measuring()
    measuring.begin().ended(rejection)
    measuring.begin()
    expect(measuring.statistics.isFull('a')).toBe(true)
    expect(measuring.statistics.isFull('b')).toBe(false)
    expect(measuring.read(short, 'b')).toMatchObject({ inFlight: 0, limit: 32 })
  })
})
