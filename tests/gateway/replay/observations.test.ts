import { describe, expect, test } from 'vitest'
import type { RequestRecord } from '../../../src/domain/requests.ts'
import type { Attempt } from '../../../src/domain/upstream.ts'
import { Observations, observationsOf, type Observation } from '../../../src/gateway/replay/observations.ts'

const record = (attempts: readonly Attempt[], more: Partial<RequestRecord> = {}): RequestRecord => ({
  id: 'req_1',
  accountId: 'acc_1',
  keyId: 'k',
  profile: 'p',
  format: 'openai-chat',
  stream: true,
  units: 1,
  charged: 1,
  state: 'done',
  admittedAtMs: 1_000,
  periodId: '2026-11',
  attempts,
  firstContentMs: 300,
  totalMs: 2_000,
  ...more,
})
const seen = (attempts: readonly Attempt[], more?: Partial<RequestRecord>) =>
  observationsOf(record(attempts, more), 0).map(({ backend, position, atMs, outcome, ms, restMs, isBroken }) => ({
    backend,
    position,
    atMs,
    outcome,
    ms,
    restMs,
    isBroken,
  }))

describe('the calls of a record', () => {
  test('a failed first choice and the backend that answered', () => {
    const failed = { backend: 'a', outcome: 'server_error', ms: 100 } as const
    expect(seen([failed, { backend: 'b', outcome: 'answered', ms: 200 }])).toEqual([
      { ...failed, position: 'first', atMs: 1_000, restMs: 0, isBroken: false },
      { backend: 'b', outcome: 'answered', ms: 200, position: 'later', atMs: 1_100, restMs: 1_700, isBroken: false },
    ])
  })

  test('a backend that was asked again at once counts once', () => {
    const twice = seen([
      { backend: 'a', outcome: 'server_error', ms: 50 },
      { backend: 'a', outcome: 'answered', ms: 250 },
    ])
    expect(twice).toMatchObject([{ backend: 'a', position: 'first', outcome: 'answered', atMs: 1_050 }])
  })

  test('the second of two calls at the same time is no first choice, wherever the record has it', () => {
    const winner = { backend: 'a', outcome: 'answered', ms: 900 } as const
    const loser = { backend: 'b', outcome: 'cancelled', ms: 100, hedge: true } as const
    expect(seen([loser, winner])).toMatchObject([
      { backend: 'b', position: 'later' },
      { backend: 'a', position: 'first' },
    ])
  })

  test('failures of the request and calls that the client ended show nothing', () => {
    expect(seen([{ backend: 'a', outcome: 'rejected_content', ms: 50 }])).toEqual([])
    expect(seen([{ backend: 'a', outcome: 'cancelled', ms: 50 }], { errorCode: 'client_closed' })).toEqual([])
  })

  test('an answer that broke off is broken', () => {
    const answered = { backend: 'a', outcome: 'answered', ms: 300 } as const
    expect(seen([answered], { errorCode: 'upstream_broken' })).toMatchObject([{ isBroken: true }])
    const rescued = seen([answered, { backend: 'b', outcome: 'answered', ms: 100, rescued: 'verified' }])
    expect(rescued.map(({ isBroken }) => isBroken)).toEqual([true, false])
  })
})

describe('the result of a call that was not made', () => {
  const observed = (more: Partial<Observation>): Observation => ({
    backend: 'a',
    kind: 0,
    position: 'first',
    atMs: 0,
    outcome: 'answered',
    status: undefined,
    ms: 100,
    restMs: 0,
    isBroken: false,
    usage: undefined,
    ...more,
  })
  const call = { backend: 'a', kind: 0, position: 'first', atMs: 500_000 } as const
  const draws = (observations: Observations, more: object = {}, longerThanMs?: number) =>
    new Set([0, 0.25, 0.5, 0.75, 0.99].map((at) => observations.draw({ ...call, ...more }, () => at, longerThanMs)?.ms))

  test('is that of one of the five nearest, at most two minutes away', () => {
    const nearby = [-130, -119, -4, -3, 1, 2, 5, 119].map((seconds) =>
      observed({ atMs: 500_000 + seconds * 1_000, ms: 1_000 + seconds }),
    )
    expect(draws(new Observations(nearby))).toEqual(new Set([997, 996, 1_001, 1_002, 1_005]))
    expect(draws(new Observations([nearby[0]!]))).toEqual(new Set([undefined]))
  })

  test('is only that of a first choice for a first choice', () => {
    const observations = new Observations([observed({ atMs: 500_000, position: 'later' })])
    expect(draws(observations)).toEqual(new Set([undefined]))
    expect(draws(observations, { position: 'later' })).toEqual(new Set([100]))
    expect(observations.whyUnseen('a', 0, 'first')).toBe('only_after_failures')
    expect(observations.whyUnseen('a', 0, 'later')).toBe('not_then')
    expect(observations.whyUnseen('a', 1, 'first')).toBe('never')
  })

  test('took at least as long as a call that was cut short', () => {
    const cut = observed({ atMs: 500_000, outcome: 'cancelled', ms: 800 })
    const short = observed({ atMs: 500_001, ms: 400 })
    const long = observed({ atMs: 500_002, ms: 1_500 })
    const found = new Observations([cut, short, long]).draw(call, () => 0)
    expect(found).toBe(long)
    expect(draws(new Observations([short, long]), {}, 800)).toEqual(new Set([1_500]))
    expect(new Observations([cut]).draw(call, () => 0)).toBeUndefined()
  })
})
