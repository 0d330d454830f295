import { expect, test } from 'vitest'
import { assumed } from '../../src/eval/simulated-world.ts'
import { evaluateOften } from '../eval/in-process.ts'

const repetitions = 200

test(`simulated: of ${repetitions} evaluations without any advantage, at most one in twenty reports an advantage, and placebos gain nothing`, async () => {
  // Members are equally good, and neither judge nor writer can tell right from wrong.
  const blind = { ...assumed, right: [0.7, 0.7, 0.7], tells: 0 }
  const reports = await evaluateOften(blind, 16, repetitions)
  const alarms = reports.filter(({ comparisons }) => comparisons.some(({ verdict }) => verdict === 'better'))
  expect(alarms.length / repetitions).toBeLessThanOrEqual(0.05)
  for (const judge of ['random', 'first', 'longest']) {
    const lifts = reports.map(({ placebos }) => placebos.find((one) => one.judge === judge)!.lift)
    const mean = lifts.reduce((sum, lift) => sum + lift, 0) / repetitions
    const variance = lifts.reduce((sum, lift) => sum + (lift - mean) ** 2, 0) / (repetitions - 1)
    expect(Math.abs(mean), judge).toBeLessThan(3 * Math.sqrt(variance / repetitions))
  }
  const odd = reports.filter(({ placebos }) => placebos.some(({ isBeyondNoise }) => isBeyondNoise))
  expect(odd.length / repetitions).toBeLessThanOrEqual(0.05)
}, 240_000)

test('simulated: most evaluations of the usual size report a real advantage as better', async () => {
  const sharp = { ...assumed, right: [0.65, 0.63, 0.61], shared: 0.2, tells: 0.95 }
  const runs = 12
  const reports = await evaluateOften(sharp, 120, runs)
  const called = reports.filter(({ comparisons }) => comparisons[0]!.verdict === 'better').length
  expect(called / runs).toBeGreaterThan(0.8)
}, 240_000)
