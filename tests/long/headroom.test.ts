import { expect, test } from 'vitest'
import { threeDiverse } from '../simulation/accuracy-world.ts'
import { assumedJudges, followingTheMajority } from '../simulation/assumed-judges.ts'
import { runClosed } from '../simulation/closed-fusions.ts'
import { measureHeadroom, tableOf } from '../simulation/headroom.ts'
import { liftOf, placebos } from '../simulation/placebo-judges.ts'

const questions = 20_000
const placeboQuestions = 40_000

test.each([
  ['judges that give agreement little weight', assumedJudges],
  ['judges that follow the majority', followingTheMajority],
] as const)('simulated: headroom increases with the accuracy of %s', async (title, judges) => {
  const rows: Parameters<typeof tableOf>[0] = new Map(
    await Promise.all(
      Object.entries(judges).map(
        async ([name, knobs]) => [name, [knobs, await measureHeadroom(knobs, questions)]] as const,
      ),
    ),
  )
  process.stdout.write(tableOf(rows, questions, title))
  const captured = [...rows.values()].map(([, found]) => found.captured)
  expect(captured).toEqual(captured.toSorted((a, b) => a - b))
})

test.each(Object.entries(placebos).filter(([name]) => name !== 'the longest'))(
  'a placebo judge that chooses %s changes the result by less than half a point',
  async (name, judge) => {
    const { mean, half } = liftOf(await runClosed(threeDiverse, judge, placeboQuestions))
    process.stdout.write(
      `a placebo judge that chooses ${name}: ${(mean * 100).toFixed(2)} ± ${(half * 100).toFixed(2)} points\n`,
    )
    expect(Math.abs(mean)).toBeLessThanOrEqual(0.005)
  },
)
