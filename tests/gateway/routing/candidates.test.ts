import { describe, expect, test } from 'vitest'
import { inOrder } from '../../../src/domain/routing-policy.ts'
import { UpstreamError } from '../../../src/domain/upstream.ts'
import type { Backend } from '../../../src/gateway/ports.ts'
import { BackendStatistics } from '../../../src/gateway/routing/backend-statistics.ts'
import { Candidates, type CandidatesOptions } from '../../../src/gateway/routing/candidates.ts'
import { CircuitBreakers } from '../../../src/gateway/routing/circuit-breakers.ts'
import { ManualClock } from '../manual-clock.ts'
import { answerOnce, failOnce, someBreakerKey } from './breaker-outcomes.ts'

function backend(id: string, failureDomain = id, contextWindow?: number): Backend {
  return {
    id,
    failureDomain,
    issuer: id,
    ...(contextWindow === undefined ? {} : { contextWindow }),
    format: 'openai-chat',
    model: id,
    simulated: false,
    timeouts: { connectMs: 1, headersMs: 1, firstContentMs: 1, wholeAnswerMs: 1, idleMs: 1, totalMs: 1 },
    dialect: { maxTokensField: 'max_tokens', developerRole: true, streamUsage: true, refusedFields: [] },
    call: () => {
      throw new Error('this backend is never called')
    },
  }
}

function candidatesOf(backends: readonly Backend[], breakers: CircuitBreakers, more: Partial<CandidatesOptions> = {}) {
  const statistics = new BackendStatistics(new ManualClock())
  const usual = { backends, breakers, breakerKey: someBreakerKey, statistics, routing: inOrder, choice: undefined }
  return new Candidates({ ...usual, ...more })
}

function closedBreakers() {
  const clock = new ManualClock()
  return { clock, breakers: new CircuitBreakers({ clock, random: () => 0.5, log: () => {} }) }
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
  test('they come in the configured order, each once', () => {
    const { breakers } = closedBreakers()
    expect(walk(candidatesOf([backend('a'), backend('b'), backend('c')], breakers))).toEqual(['a', 'b', 'c'])
  })

  test('after a failure, candidates in other failure domains come first', () => {
    const { breakers } = closedBreakers()
    const candidates = candidatesOf(
      [backend('a1', 'A'), backend('a2', 'A'), backend('b1', 'B'), backend('a3', 'A')],
      breakers,
    )
    expect(walk(candidates, (found) => candidates.failed(found))).toEqual(['a1', 'b1', 'a2', 'a3'])
  })

  test('candidates with an open breaker are skipped', () => {
    const { breakers } = closedBreakers()
    failOnce(breakers, 'a', new UpstreamError('rate_limited'))
    expect(walk(candidatesOf([backend('a'), backend('b')], breakers))).toEqual(['b'])
  })

  test('a request that was too long goes only to larger or unknown context windows', () => {
    const { breakers } = closedBreakers()
    const all = [backend('small', 's', 8), backend('unknown'), backend('same', 't', 8), backend('large', 'l', 100)]
    const candidates = candidatesOf(all, breakers)
    candidates.next()
    candidates.keepLargerThan(8)
    expect(walk(candidates)).toEqual(['unknown', 'large'])
  })

  test('a last resort can be asked later only if another backend is asked instead of it', () => {
    const { breakers } = closedBreakers()
    const [a, b, c] = [backend('a'), backend('b'), backend('c')]
    for (const { id } of [b, c])
      for (let count = 0; count < 5; count++) failOnce(breakers, id, new UpstreamError('timeout'))
    const candidates = candidatesOf([a, b, c], breakers)
    expect(candidates.next()).toBe(a)
    expect(candidates.next()).toBe(b)
    candidates.askInstead(a, b)
    expect(walk(candidates)).toEqual(['b'])
  })

  test('if none is left, the earliest retry time and all reasons are reported', () => {
    const { clock, breakers } = closedBreakers()
    failOnce(breakers, 'a', new UpstreamError('rate_limited', { retryAfterMs: 20_000 }))
    failOnce(breakers, 'b', new UpstreamError('rejected_credentials'))
    const candidates = candidatesOf([backend('a'), backend('b')], breakers)
    expect(candidates.next()).toBeUndefined()
    expect(candidates.exhausted([backend('a'), backend('b'), backend('c')])).toEqual({
      soonestMs: clock.nowMs() + 20_000,
      skipped: [
        { backend: 'a', reason: 'rate' },
        { backend: 'b', reason: 'credentials' },
      ],
    })
  })
})

describe('backends that operators exclude', () => {
  const held = new Map([['a', { kind: 'drained', sinceMs: 7 }]] as const)

  test('they are skipped whatever happens, without a known end', () => {
    const { breakers } = closedBreakers()
    breakers.hold(held)
    expect(walk(candidatesOf([backend('a'), backend('b')], breakers))).toEqual(['b'])
    answerOnce(breakers, 'a')
    breakers.reset('a')
    const none = candidatesOf([backend('a')], breakers)
    expect(none.next()).toBeUndefined()
    expect(none.exhausted([backend('a')])).toEqual({
      soonestMs: Number.POSITIVE_INFINITY,
      skipped: [{ backend: 'a', reason: 'drained' }],
    })
    breakers.hold(new Map())
    expect(walk(candidatesOf([backend('a'), backend('b')], breakers))).toEqual(['a', 'b'])
  })

  test('their reason is listed first, followed by what the service observed', () => {
    const { clock, breakers } = closedBreakers()
    expect(breakers.condition('a')).toEqual({
      backendId: 'a',
      state: 'closed',
      isTroubled: false,
      reason: undefined,
      sinceMs: undefined,
      untilMs: undefined,
      failures: 0,
      lastFailure: undefined,
    })
    failOnce(breakers, 'a', new UpstreamError('rejected_credentials', { status: 401 }))
    const lastFailure = { outcome: 'rejected_credentials', atMs: clock.nowMs() }
    const open = {
      state: 'open',
      reason: 'credentials',
      sinceMs: clock.nowMs(),
      untilMs: clock.nowMs() + 25_000,
      failures: 1,
      lastFailure,
    }
    expect(breakers.condition('a')).toMatchObject(open)
    breakers.hold(held)
    expect(breakers.condition('a')).toMatchObject({ state: 'drained', sinceMs: 7, untilMs: undefined, lastFailure })
    breakers.hold(new Map())
    expect(breakers.condition('a')).toMatchObject(open)
    breakers.reset('a')
    expect(breakers.condition('a')).toMatchObject({ state: 'closed', failures: 0, lastFailure: undefined })
  })
})
