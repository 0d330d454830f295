import { expect, test } from 'vitest'
import { casesOf } from '../long-run.ts'
import { Outage } from './outages.ts'

const runs = casesOf({ sample: 60, all: 1_000 })
const longRuns = casesOf({ sample: 10, all: 100 })
const limitMs = 120_000
/** The first successful request starts at most this long after the backends recover (contract 8.5). */
const recoveryMs = 30_000

/** Asserts that everything after the first success succeeds; returns the number of requests before it. */
function expectRecovered({ seen, recoveryMs: wellMs }: Outage, seed: number): number {
  const after = seen.filter(({ beganMs }) => beganMs >= wellMs).toSorted((a, b) => a.beganMs - b.beganMs)
  const first = after.find(({ ok }) => ok)
  if (first === undefined) throw new Error(`run ${seed}: nothing succeeded`)
  expect(first.beganMs - wellMs, `run ${seed}`).toBeLessThan(recoveryMs)
  const failed = after.filter(({ beganMs, ok }) => beganMs > first.beganMs && !ok)
  expect(failed, `run ${seed}: all later requests succeed`).toEqual([])
  return after.indexOf(first)
}

test(
  `after 1.5 s of failures under mixed traffic with fusion, everything recovers in ${runs} of ${runs} runs`,
  async () => {
    let failedFirst = 0
    let ofOutage = 0
    for (let seed = 0; seed < runs; seed++) {
      const outage = new Outage(seed, 1_500)
      await outage.run([
        { fromMs: 0, toMs: 1_500, count: 24 },
        { fromMs: 1_500, toMs: 3_000, count: 8 },
        { fromMs: 3_000, toMs: 60_000, count: 16 },
      ])
      failedFirst += expectRecovered(outage, seed)
      ofOutage += outage.seen.filter(({ beganMs, ok }) => beganMs < outage.recoveryMs && !ok).length
    }
    process.stdout.write(`${failedFirst} requests failed between a recovery and its first success\n`)
    expect(ofOutage, 'the outages cause failures').toBeGreaterThan(10 * runs)
  },
  limitMs,
)

test(
  'after an outage of 60 s, traffic recovers within 30 s, even if there is little of it',
  async () => {
    for (let seed = 0; seed < longRuns; seed++) {
      const outage = new Outage(seed, 60_000)
      const count = 4 + (seed % 5) * 20
      await outage.run([
        { fromMs: 0, toMs: 60_000, count },
        { fromMs: 60_000, toMs: 120_000, count },
      ])
      expectRecovered(outage, seed)
    }
  },
  limitMs,
)
