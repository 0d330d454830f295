import { expect, test } from 'vitest'
import { casesOf } from '../long-run.ts'
import { threeDiverse } from './accuracy-world.ts'
import { assumedJudges } from './assumed-judges.ts'
import { runClosed, type SimulatedJudge } from './closed-fusions.ts'
import { measureHeadroom, tableOf, type Headroom } from './headroom.ts'
import { meanWithInterval } from './statistics.ts'

const questions = casesOf({ sample: 600, all: 3_000 })
const qualityQuestions = casesOf({ sample: 1_500, all: 10_000 })
const limitMs = 120_000

/** A judge that recognizes a right answer in this share of all cases, and otherwise chooses at random. */
function rightIn(share: number): SimulatedJudge {
  return (shown, { random }) => {
    const right = shown.flatMap(({ isRight }, place) => (isRight ? [place] : []))
    const knows = random() < share && right.length > 0
    const chosen = knows ? right[Math.floor(random() * right.length)]! : Math.floor(random() * shown.length)
    return shown.map((_, place) => (place === chosen ? 9 : 3))
  }
}

test(
  'simulated: the share of known right answers that reaches the reply depends only on the judge’s accuracy',
  async () => {
    const rows = new Map<string, readonly [(typeof assumedJudges)['default'], Headroom]>()
    for (const [name, knobs] of Object.entries(assumedJudges))
      rows.set(name, [knobs, await measureHeadroom(knobs, questions)])
    process.stdout.write(tableOf(rows, questions, 'judges that give agreement little weight'))
    const found = [...rows.values()].map(([, headroom]) => headroom)
    const captured = found.map((headroom) => headroom.captured)
    expect(captured).toEqual(captured.toSorted((a, b) => a - b))
    // A judge that cannot tell right from wrong gains nothing.
    expect(Math.abs(captured[0]!)).toBeLessThan(found[0]!.capturedHalf)
    // With the preset balanced, the assumed default judge stays below the target of 75 %, and the strong one reaches it
    // (decision 25).
    expect(captured[2]!).toBeGreaterThan(0.6)
    expect(captured[3]!).toBeGreaterThanOrEqual(0.75)
    // Labels, order, rounding, second judgments, totals, and the writer lose nothing of the judge's first reading.
    for (const { overFirstReading } of found)
      expect(overFirstReading.mean).toBeGreaterThanOrEqual(-overFirstReading.half)
    for (const { judgings } of found) expect(judgings).toBeLessThan(1.35)
  },
  limitMs,
)

test(
  'simulated: with the preset quality, the default judge, whose close scores are averaged, captures three quarters',
  async () => {
    const found = await measureHeadroom(assumedJudges.default, qualityQuestions, 'quality')
    const rows = new Map([['quality', [assumedJudges.default, found] as const]])
    process.stdout.write(tableOf(rows, qualityQuestions, 'the preset quality'))
    expect(found.captured).toBeGreaterThanOrEqual(0.75)
    expect(found.judgings).toBeLessThan(2.2)
  },
  limitMs,
)

test.each([0, 0.8, 1])(
  'a judge that is right in a share of %d of all cases has the same share of right replies',
  async (share) => {
    const all = await runClosed(threeDiverse, rightIn(share), questions)
    const byLot = meanWithInterval(all.map(({ right }) => right.filter(Boolean).length / right.length)).mean
    const any = meanWithInterval(all.map(({ right }) => Number(right.includes(true)))).mean
    const fused = meanWithInterval(all.map(({ right, chosen }) => Number(right[chosen])))
    expect(Math.abs(fused.mean - (share * any + (1 - share) * byLot))).toBeLessThanOrEqual(fused.half)
  },
  limitMs,
)
