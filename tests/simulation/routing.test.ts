import { expect, test } from 'vitest'
import { casesOf, isLongRun } from '../long-run.ts'
import { filterViolations } from './filter-experiment.ts'
import { deathOf, surgeOf, waitsOf } from './routing-experiments.ts'
import { poisson, RoutingWorld, steadyBackends } from './routing-world.ts'

const limitMs = 600_000
const seeds = casesOf({ sample: 1, all: 10 })
const seconds = casesOf({ sample: 300, all: 1_200 })

test(
  'hedging halves the 99th percentile of power of two choices with breakers, with at most 6% more calls',
  async () => {
    const [usual, ours] = [
      await waitsOf('two choices by load', seeds, seconds),
      await waitsOf('balanced, hedge', seeds, seconds),
    ]
    process.stdout.write(
      `simulated p99: ${usual.p99.toFixed(0)} and ${ours.p99.toFixed(0)} ms, ${(ours.extraCalls * 100).toFixed(2)}% more calls\n`,
    )
    expect(ours.p99).toBeLessThanOrEqual(usual.p99 / 2)
    expect(ours.extraCalls).toBeLessThanOrEqual(0.06)
    expect(ours.answered).toBe(ours.requests)
  },
  limitMs,
)

test(
  'a backend that refuses calls gets at most three before it is avoided, and its share back within 30 s',
  async () => {
    let back = 0
    for (let seed = 1; seed <= seeds; seed++) {
      const { failedAtFirst, unanswered, shareBack } = await deathOf('refuses', seed, 32)
      expect(failedAtFirst, `seed ${seed}`).toBeLessThanOrEqual(3)
      expect(unanswered).toBe(0)
      back += shareBack / seeds
    }
    expect(back).toBeGreaterThan(0.8)
  },
  limitMs,
)

test(
  'a backend that hangs gets at most three calls before it is avoided, and its share back within 30 s',
  async () => {
    let back = 0
    for (let seed = 1; seed <= seeds; seed++) {
      const { failedAtFirst, unanswered, shareBack } = await deathOf('hangs', seed, 8)
      expect(failedAtFirst, `seed ${seed}`).toBeLessThanOrEqual(3)
      expect(unanswered).toBe(0)
      back += shareBack / seeds
    }
    expect(back).toBeGreaterThan(0.8)
  },
  limitMs,
)

test(
  'at a high load, a backend that hangs gets few more: those that begin before content could have come',
  async () => {
    let failed = 0
    for (let seed = 4; seed < 4 + seeds; seed++) {
      const { failedAtFirst } = await deathOf('hangs', seed, 32)
      expect(failedAtFirst, `seed ${seed}`).toBeLessThanOrEqual(6)
      failed += failedAtFirst / seeds
    }
    if (isLongRun) expect(failed).toBeLessThanOrEqual(4)
  },
  limitMs,
)

test('if the first backend in the order hangs, later requests do not wait for it', async () => {
  const downMs = 60_000
  const backends = steadyBackends(2, 20, (id, ms) => (id === 'b0' && ms >= downMs ? 'hangs' : { slower: 1 }))
  const { outcomes } = await new RoutingWorld(1, { sort: 'order' }, backends).run(poisson(1, 8, 0, downMs + 12_000))
  const later = outcomes.filter(({ sentMs }) => sentMs > downMs + 4_000)
  const slow = later.filter(({ firstContentMs = Infinity }) => firstContentMs > 10_000)
  expect(later.length).toBeGreaterThan(50)
  expect(slow.length, 'those that came while it was noticed, and probes').toBeLessThanOrEqual(3)
})

test(
  'after a surge, every request is answered again, about as fast as before',
  async () => {
    for (let seed = 1; seed <= seeds; seed++) {
      const { answeredDuring, answeredAfter, slowerAfter, callsPerRequest } = await surgeOf(seed)
      expect(answeredDuring, 'the surge is one').toBeLessThan(0.9)
      expect(answeredAfter, `seed ${seed}`).toBe(1)
      expect(slowerAfter).toBeLessThan(1.6)
      expect(callsPerRequest).toBeLessThan(1.2)
    }
  },
  limitMs,
)

const requests = casesOf({ sample: 20_000, all: 1_000_000 })

test(
  `no backend that fails a requirement is asked, in ${requests} requests whose backends fail`,
  () => {
    const asked = filterViolations(requests, isLongRun ? 2 : 1)
    expect(asked.violations).toEqual([])
    expect(asked.calls).toBeGreaterThan(requests / 2)
    expect(asked.refused).toBeGreaterThan(requests / 20)
  },
  limitMs,
)
