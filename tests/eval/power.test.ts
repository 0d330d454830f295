import { expect, test } from 'vitest'
import { assumed } from '../../src/eval/simulated-world.ts'
import { compareAll } from '../../src/eval/statistics/compare.ts'
import { seededRandom } from '../../src/gateway/fusion/engine/seeded-random.ts'
import { evaluateOften } from './in-process.ts'

/** Enough to see whether something is wrong, in seconds; `tests/long/eval-power.test.ts` has more. */
const repetitions = 40

test(`simulated: of ${repetitions} evaluations without any advantage, at most one in twenty reports an advantage`, async () => {
  const blind = { ...assumed, right: [0.7, 0.7, 0.7], tells: 0 }
  const reports = await evaluateOften(blind, 16, repetitions)
  const alarms = reports.filter(({ comparisons }) => comparisons.some(({ verdict }) => verdict === 'better'))
  expect(alarms.length / repetitions).toBeLessThanOrEqual(0.05)
  const odd = reports.filter(({ placebos }) => placebos.some(({ isBeyondNoise }) => isBeyondNoise))
  expect(odd.length / repetitions).toBeLessThanOrEqual(0.05)
}, 120_000)

test('simulated: an evaluation of the usual size reports a real advantage as better', async () => {
  const sharp = { ...assumed, right: [0.65, 0.63, 0.61], shared: 0.2, tells: 0.95 }
  const [report] = await evaluateOften(sharp, 120, 1)
  expect(report!.comparisons[0]!.verdict).toBe('better')
})

test('at most one in twenty runs without a true difference reports one, over all its pairs together', () => {
  const random = seededRandom(2)
  const draw = (): boolean[] => Array.from({ length: 60 }, () => random() < 0.7)
  const runs = 100
  let alarms = 0
  for (let run = 0; run < runs; run++) {
    const fusion = draw()
    const pairs = Array.from({ length: 5 }, () => [fusion, draw()] as const)
    alarms += Number(compareAll(pairs).some(({ verdict }) => verdict !== 'no difference shown'))
  }
  expect(alarms / runs).toBeLessThanOrEqual(0.05)
})
