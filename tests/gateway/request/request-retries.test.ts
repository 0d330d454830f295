import { beforeEach, describe, expect, test } from 'vitest'
import { UpstreamError } from '../../../src/domain/upstream.ts'
import { RequestRetries } from '../../../src/gateway/request/request-retries.ts'
import { CircuitBreakers } from '../../../src/gateway/routing/circuit-breakers.ts'
import { RetryBudget } from '../../../src/gateway/routing/retry-budget.ts'
import { ManualClock } from '../manual-clock.ts'
import { answerOnce, failOnce, someBreakerKey } from '../routing/breaker-outcomes.ts'
import { someBackend } from '../routing/some-backend.ts'

const backend = someBackend('a')
const broken = new UpstreamError('server_error', { status: 503 })

let breakers: CircuitBreakers
let budget: RetryBudget
beforeEach(() => {
  const clock = new ManualClock()
  breakers = new CircuitBreakers({ clock, random: () => 0.5, log: () => {} })
  budget = new RetryBudget(clock)
  budget.requestStarted(someBreakerKey.accountId)
})

function retriesOf(isRetry = false): RequestRetries {
  return new RequestRetries({ breakers, budget }, someBreakerKey, { isRetry })
}

/** How many of 100 requests can retry the backend, each of which then fails. */
function failingRetries(isRetry = false): number {
  return Array.from({ length: 100 }, () => {
    const retries = retriesOf(isRetry)
    const may = retries.has(backend)
    expect(retries.take(backend)).toBe(may)
    retries.failed()
    return may
  }).filter(Boolean).length
}

describe('the retries of a request', () => {
  test.each([0, 1, 2])('need no budget after %i failures in a row', (failures) => {
    for (let failed = 0; failed < failures; failed++) failOnce(breakers, 'a', broken)
    expect(failingRetries()).toBe(100)
    expect(failingRetries(true)).toBe(100)
  })

  test.each([3, 5])('are limited after %i failures in a row, until an answer is complete', (failures) => {
    for (let failed = 0; failed < failures; failed++) failOnce(breakers, 'a', broken)
    expect(failingRetries()).toBe(5)
    if (failures > 3) return
    answerOnce(breakers, 'a')
    expect(failingRetries()).toBe(100)
  })

  test('are limited after a single 429, which opens the circuit breaker', () => {
    failOnce(breakers, 'a', new UpstreamError('rate_limited', { status: 429 }))
    expect(failingRetries()).toBe(5)
  })

  test('cost nothing if they are answered', () => {
    for (let failed = 0; failed < 5; failed++) failOnce(breakers, 'a', broken)
    for (let request = 0; request < 100; request++) {
      const retries = retriesOf()
      expect(retries.take(backend)).toBe(true)
      retries.refund()
      retries.refund()
    }
    expect(failingRetries()).toBe(5)
  })

  test('never go to a failing backend if the client retries the request itself', () => {
    for (let failed = 0; failed < 5; failed++) failOnce(breakers, 'a', broken)
    expect(failingRetries(true)).toBe(0)
    expect(failingRetries()).toBe(5)
  })
})
