import { expect, test } from 'vitest'
import { casesOf } from '../long-run.ts'
import { threeDiverse } from './accuracy-world.ts'
import { assumedJudges } from './assumed-judges.ts'
import { runClosed, type SimulatedJudge } from './closed-fusions.ts'
import { measureHeadroom, tableOf, type Headroom } from './headroom.ts'
import { meanWithInterval } from './statistics.ts'

const questions = casesOf({ sample: 1_000, all: 3_000 })
const qualityQuestions = casesOf({ sample: 2_500, all: 10_000 })
const limitMs = 120_000

/** Always tells a right answer from a wrong one, or in so many cases; else it draws lots. */
function tellingIn(share: number): SimulatedJudge {
  return (shown, { random }) => {
    const right = shown.flatMap(({ isRight }, place) => (isRight ? [place] : []))
    const knows = random() < share && right.length > 0
    const chosen = knows ? right[Math.floor(random() * right.length)]! : Math.floor(random() * shown.length)
    return shown.map((_, place) => (place === chosen ? 9 : 3))
  }
}

test(
  'simulated: how much of what any member knew reaches the reply depends on what the judge can tell, and on nothing that the engine does',
  async () => {
    const rows = new Map<string, readonly [(typeof assumedJudges)['default'], Headroom]>()
    for (const [name, knobs] of Object.entries(assumedJudges))
      rows.set(name, [knobs, await measureHeadroom(knobs, questions)])
    process.stdout.write(tableOf(rows, questions, 'judges for whom agreement counts little'))
    const found = [...rows.values()].map(([, headroom]) => headroom)
    const captured = found.map((headroom) => headroom.captured)
    expect(captured).toEqual(captured.toSorted((a, b) => a - b))
    // One that cannot tell wins nothing.
    expect(Math.abs(captured[0]!)).toBeLessThan(found[0]!.capturedHalf)
    // As assumed, the default judge stays below the 75 % that were aimed at with the preset balanced, and the strong one reaches them (decision 25).
    expect(captured[2]!).toBeGreaterThan(0.6)
    expect(captured[3]!).toBeGreaterThanOrEqual(0.75)
    // Letters, order, rounding, second looks, totals and the writer take nothing away from what the judge saw at first.
    for (const { overFirstReading } of found)
      expect(overFirstReading.mean).toBeGreaterThanOrEqual(-overFirstReading.half)
    for (const { judgings } of found) expect(judgings).toBeLessThan(1.35)
  },
  limitMs,
)

test(
  'simulated: with the preset quality the default judge, whose close readings are averaged, brings three quarters of it',
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
  'what a judge can tell in %d of all cases arrives in the reply whole',
  async (share) => {
    const all = await runClosed(threeDiverse, tellingIn(share), questions)
    const byLot = meanWithInterval(all.map(({ right }) => right.filter(Boolean).length / right.length)).mean
    const any = meanWithInterval(all.map(({ right }) => Number(right.includes(true)))).mean
    const fused = meanWithInterval(all.map(({ right, chosen }) => Number(right[chosen])))
    expect(Math.abs(fused.mean - (share * any + (1 - share) * byLot))).toBeLessThanOrEqual(fused.half)
  },
  limitMs,
)
