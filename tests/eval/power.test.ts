import { expect, test } from 'vitest'
import { buildReport, type Report } from '../../src/eval/report.ts'
import { assumed, type Assumptions } from '../../src/eval/simulated-world.ts'
import { compareAll } from '../../src/eval/statistics/compare.ts'
import { seededRandom } from '../../src/gateway/fusion/seed.ts'
import { worldOf } from './in-process.ts'

const repetitions = 200

async function reportsOf(assumptions: Assumptions, items: number, runs: number): Promise<Report[]> {
  const reports: Report[] = []
  for (let seed = 1; seed <= runs; seed++) {
    const { run, members } = worldOf({ seed: seed * 7_919, items, assumptions })
    reports.push(buildReport(await run(), members)!)
  }
  return reports
}

test(`simulated: of ${repetitions} whole evaluations without any advantage at most one in twenty says better, and placebos gain nothing`, async () => {
  // Members are equally good, and neither judge nor writer can tell right from wrong.
  const blind = { ...assumed, right: [0.7, 0.7, 0.7], tells: 0 }
  const reports = await reportsOf(blind, 16, repetitions)
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

test('simulated: a real advantage is called better, by most evaluations of the usual size', async () => {
  const sharp = { ...assumed, right: [0.65, 0.63, 0.61], shared: 0.2, tells: 0.95 }
  const runs = 12
  const reports = await reportsOf(sharp, 120, runs)
  const called = reports.filter(({ comparisons }) => comparisons[0]!.verdict === 'better').length
  expect(called / runs).toBeGreaterThan(0.8)
}, 240_000)

test('of comparisons of equals at most one in twenty is called a difference, over all pairs of a run together', () => {
  const random = seededRandom(2)
  const draw = (): boolean[] => Array.from({ length: 60 }, () => random() < 0.7)
  const runs = 200
  let alarms = 0
  for (let run = 0; run < runs; run++) {
    const fusion = draw()
    const pairs = Array.from({ length: 5 }, () => [fusion, draw()] as const)
    alarms += Number(compareAll(pairs).some(({ verdict }) => verdict !== 'no difference shown'))
  }
  expect(alarms / runs).toBeLessThanOrEqual(0.05)
}, 120_000)
