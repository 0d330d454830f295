import { describe, expect, test } from 'vitest'
import { runClosed, type Run, type SimulatedJudge } from './accuracy-world.ts'
import { meanWithInterval } from './statistics.ts'

const runs = 4_000
const best = 9
const rest = 3

const placebos: Readonly<Record<string, SimulatedJudge>> = {
  'always the first that it is shown': (shown) => shown.map((_, place) => (place === 0 ? best : rest)),
  'always the last that it is shown': (shown) => shown.map((_, place) => (place === shown.length - 1 ? best : rest)),
  'always the letter B': (shown) => shown.map(({ label }) => (label === 'B' ? best : rest)),
  'at random': (shown, random) => {
    const chosen = Math.floor(random() * shown.length)
    return shown.map((_, place) => (place === chosen ? best : rest))
  },
  'the longest': (shown) => {
    const longest = Math.max(...shown.map(({ text }) => text.length))
    const chosen = shown.findIndex(({ text }) => text.length === longest)
    return shown.map((_, place) => (place === chosen ? best : rest))
  },
}

/** Knows a right answer four times in five where there is one. */
const knowing: SimulatedJudge = (shown, random) => {
  const right = shown.findIndex(({ isRight }) => isRight)
  const chosen = right >= 0 && random() < 0.8 ? right : Math.floor(random() * shown.length)
  return shown.map((_, place) => (place === chosen ? best : rest))
}

async function runAll(judge: SimulatedJudge): Promise<Run[]> {
  const all: Run[] = []
  for (let seed = 1; seed <= runs; seed++) all.push(await runClosed(seed, judge))
  return all
}

/** What the judge's choice adds to choosing one of the same answers by lot, run by run. */
function liftOf(all: readonly Run[]): { readonly mean: number; readonly half: number } {
  return meanWithInterval(
    all.map(({ right, adopted }) => {
      const byLot = right.filter(Boolean).length / right.length
      return Number(right[adopted]) - byLot
    }),
  )
}

describe(`placebo judges in the engine, ${runs} simulated fusions each`, () => {
  test.each(Object.entries(placebos).filter(([name]) => name !== 'the longest'))(
    'one that chooses %s adds nothing beyond noise, and each member is chosen as often as any other',
    async (_, judge) => {
      const all = await runAll(judge)
      const { mean, half } = liftOf(all)
      expect(Math.abs(mean)).toBeLessThanOrEqual(half)
      for (const member of [0, 1, 2]) {
        const share = all.filter(({ adopted }) => adopted === member).length / runs
        // Four standard deviations of a third.
        expect(Math.abs(share - 1 / 3)).toBeLessThan(4 * Math.sqrt(2 / 9 / runs))
      }
    },
  )

  test('one that chooses the longest adds nothing either, although it favours whoever is wordy', async () => {
    const all = await runAll(placebos['the longest']!)
    const wordy = all.filter(({ adopted }) => adopted === 2).length / runs
    expect(wordy).toBeGreaterThan(0.4)
    const { mean, half } = liftOf(all)
    expect(mean).toBeLessThanOrEqual(half)
  })

  test('one that can tell adds much: the measure is able to see a lift', async () => {
    const { mean, half } = liftOf(await runAll(knowing))
    expect(mean - half).toBeGreaterThan(0.02)
  })
})
