import { describe, expect, test } from 'vitest'
import { casesOf } from '../long-run.ts'
import { threeDiverse } from './accuracy-world.ts'
import { runClosed, type Run, type SimulatedJudge } from './closed-fusions.ts'
import { liftOf, placebos } from './placebo-judges.ts'

const runs = casesOf({ sample: 1_000, all: 4_000 })
/** Recognizes a right answer, if there is one, four times in five. */
const knowing: SimulatedJudge = (shown, { random }) => {
  const right = shown.findIndex(({ isRight }) => isRight)
  const chosen = right >= 0 && random() < 0.8 ? right : Math.floor(random() * shown.length)
  return shown.map((_, place) => (place === chosen ? 9 : 3))
}

const runAll = (judge: SimulatedJudge): Promise<Run[]> => runClosed(threeDiverse, judge, runs)

describe(`placebo judges in the engine, ${runs} simulated fusions each`, () => {
  test.each(Object.entries(placebos).filter(([name]) => name !== 'the longest'))(
    'a judge that chooses %s adds nothing beyond noise, and chooses each member equally often',
    async (_, judge) => {
      const all = await runAll(judge)
      const { mean, half } = liftOf(all)
      expect(Math.abs(mean)).toBeLessThanOrEqual(half)
      for (const member of [0, 1, 2]) {
        const share = all.filter(({ chosen }) => chosen === member).length / runs
        // Four standard deviations.
        expect(Math.abs(share - 1 / 3)).toBeLessThan(4 * Math.sqrt(2 / 9 / runs))
      }
    },
  )

  test('a judge that chooses the longest answer adds nothing, although it favors the wordy member', async () => {
    const all = await runAll(placebos['the longest']!)
    const wordy = all.filter(({ chosen }) => chosen === 2).length / runs
    expect(wordy).toBeGreaterThan(0.4)
    const { mean, half } = liftOf(all)
    expect(mean).toBeLessThanOrEqual(half)
  })

  test('a judge that can tell adds a lot, so the measurement can detect a gain', async () => {
    const { mean, half } = liftOf(await runAll(knowing))
    expect(mean - half).toBeGreaterThan(0.02)
  })
})
