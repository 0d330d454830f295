import { describe, expect, test } from 'vitest'
import { casesOf } from '../long-run.ts'
import { threeDiverse } from './accuracy-world.ts'
import { runClosed, type Run, type SimulatedJudge } from './closed-fusions.ts'
import { liftOf, placebos } from './placebo-judges.ts'

const runs = casesOf({ sample: 1_000, all: 4_000 })
/** Knows a right answer four times in five where there is one. */
const knowing: SimulatedJudge = (shown, { random }) => {
  const right = shown.findIndex(({ isRight }) => isRight)
  const chosen = right >= 0 && random() < 0.8 ? right : Math.floor(random() * shown.length)
  return shown.map((_, place) => (place === chosen ? 9 : 3))
}

const runAll = (judge: SimulatedJudge): Promise<Run[]> => runClosed(threeDiverse, judge, runs)

describe(`placebo judges in the engine, ${runs} simulated fusions each`, () => {
  test.each(Object.entries(placebos).filter(([name]) => name !== 'the longest'))(
    'one that chooses %s adds nothing beyond noise, and each member is chosen as often as any other',
    async (_, judge) => {
      const all = await runAll(judge)
      const { mean, half } = liftOf(all)
      expect(Math.abs(mean)).toBeLessThanOrEqual(half)
      for (const member of [0, 1, 2]) {
        const share = all.filter(({ chosen }) => chosen === member).length / runs
        // Four standard deviations of a third.
        expect(Math.abs(share - 1 / 3)).toBeLessThan(4 * Math.sqrt(2 / 9 / runs))
      }
    },
  )

  test('one that chooses the longest adds nothing either, although it favours whoever is wordy', async () => {
    const all = await runAll(placebos['the longest']!)
    const wordy = all.filter(({ chosen }) => chosen === 2).length / runs
    expect(wordy).toBeGreaterThan(0.4)
    const { mean, half } = liftOf(all)
    expect(mean).toBeLessThanOrEqual(half)
  })

  test('one that can tell adds much: the measure is able to see a lift', async () => {
    const { mean, half } = liftOf(await runAll(knowing))
    expect(mean - half).toBeGreaterThan(0.02)
  })
})
