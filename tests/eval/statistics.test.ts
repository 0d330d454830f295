import { describe, expect, test } from 'vitest'
import { clopperPearson, mcnemarExact } from '../../src/eval/statistics/binomial.ts'
import { bootstrapMean } from '../../src/eval/statistics/bootstrap.ts'
import { holm, questionsNeeded } from '../../src/eval/statistics/compare.ts'
import { measureJointFailures } from '../../src/eval/statistics/joint-failures.ts'
import { poissonBinomialTest } from '../../src/eval/statistics/poisson-binomial.ts'
import { seededRandom } from '../../src/gateway/fusion/engine/seeded-random.ts'

describe('Clopper and Pearson', () => {
  // As printed in tables of exact binomial limits.
  test.each([
    [0, 10, 0, 0.3085],
    [1, 10, 0.0025, 0.445],
    [5, 10, 0.1871, 0.8129],
    [10, 10, 0.6915, 1],
    [2, 20, 0.0123, 0.317],
    [50, 100, 0.3983, 0.6017],
  ])('%i of %i lies between %f and %f', (hits, trials, low, high) => {
    const interval = clopperPearson(hits, trials)
    expect(interval.low).toBeCloseTo(low, 3)
    expect(interval.high).toBeCloseTo(high, 3)
  })

  test('no trials give the full interval, and thousands can be computed', () => {
    expect(clopperPearson(0, 0)).toEqual({ low: 0, high: 1 })
    const { low, high } = clopperPearson(2_500, 5_000)
    expect(low).toBeCloseTo(0.486, 3)
    expect(high).toBeCloseTo(0.514, 3)
  })

  test('the interval contains the true share at least as often as promised', () => {
    const random = seededRandom(3)
    let covered = 0
    for (let run = 0; run < 1_000; run++) {
      let hits = 0
      for (let trial = 0; trial < 40; trial++) hits += Number(random() < 0.13)
      const { low, high } = clopperPearson(hits, 40)
      covered += Number(low <= 0.13 && 0.13 <= high)
    }
    expect(covered).toBeGreaterThanOrEqual(950)
  })
})

describe('McNemar, exact', () => {
  test.each([
    [0, 0, 1],
    [5, 5, 1],
    [10, 2, 0.03857],
    [2, 10, 0.03857],
    [6, 0, 0.03125],
    [5, 0, 0.0625],
    [59, 121, 0.000004],
  ])('%i against %i has p = %f', (gained, lost, p) => {
    expect(mcnemarExact(gained, lost)).toBeCloseTo(p, 5)
  })
})

describe('the paired bootstrap', () => {
  test('covers the true difference about as often as promised', () => {
    const random = seededRandom(11)
    const runs = 400
    let covered = 0
    for (let run = 0; run < runs; run++) {
      // Gained on 14 of 100, lost on 8: a true difference of 6 points.
      const differences = Array.from({ length: 150 }, () => {
        const drawn = random()
        return drawn < 0.14 ? 1 : drawn < 0.22 ? -1 : 0
      })
      const { low, high } = bootstrapMean(differences)
      covered += Number(low <= 0.06 && 0.06 <= high)
    }
    // Four standard deviations of a share of 95 % of 400.
    expect(Math.abs(covered / runs - 0.95)).toBeLessThan(4 * Math.sqrt((0.95 * 0.05) / runs))
  }, 60_000)

  test('is the same for the same values', () => {
    const values = [1, 0, 0, -1, 1, 0, 1]
    expect(bootstrapMean(values)).toEqual(bootstrapMean(values))
  })
})

test('Holm accepts the smallest against the strictest level and stops at the first that fails', () => {
  expect(holm([0.01, 0.04, 0.03])).toEqual([true, false, false])
  expect(holm([0.01, 0.02, 0.04])).toEqual([true, true, true])
  expect(holm([0.06])).toEqual([false])
})

test('the reported number of questions shows a true gain in four of five runs', () => {
  const needed = questionsNeeded(0.03, 0.12)
  expect(needed).toBeGreaterThan(1_000)
  expect(needed).toBeLessThan(1_100)
  const random = seededRandom(5)
  let shown = 0
  for (let run = 0; run < 400; run++) {
    let [gained, lost] = [0, 0]
    for (let question = 0; question < needed; question++) {
      const drawn = random()
      if (drawn < 0.075) gained += 1
      else if (drawn < 0.12) lost += 1
    }
    shown += Number(mcnemarExact(gained, lost) < 0.05)
  }
  expect(shown / 400).toBeGreaterThan(0.72)
  expect(shown / 400).toBeLessThan(0.88)
})

describe('the Poisson binomial test', () => {
  test("equals McNemar's test for even chances, and certain outcomes are not significant", () => {
    const even = Array.from({ length: 12 }, () => 0.5)
    expect(poissonBinomialTest(2, even)).toBeCloseTo(mcnemarExact(2, 10), 12)
    expect(poissonBinomialTest(2, [1, 1, 0, 0])).toBe(1)
    // Three of three at a chance of a third each.
    expect(poissonBinomialTest(3, [1 / 3, 1 / 3, 1 / 3])).toBeCloseTo(2 / 27, 12)
  })

  test('has no more false alarms than promised', () => {
    const random = seededRandom(8)
    let alarms = 0
    for (let run = 0; run < 2_000; run++) {
      const chances = Array.from({ length: 30 }, () => Math.floor(random() * 4) / 3)
      const hits = chances.filter((chance) => random() < chance).length
      alarms += Number(poissonBinomialTest(hits, chances) < 0.05)
    }
    expect(alarms / 2_000).toBeLessThanOrEqual(0.05)
  })
})

describe('joint failures', () => {
  test('copies of one member count as one, and independent members count individually', () => {
    const random = seededRandom(9)
    const draw = (): boolean[] => Array.from({ length: 4_000 }, () => random() < 0.7)
    const [a, b, c] = [draw(), draw(), draw()]
    expect(measureJointFailures([a, a, a]).effectiveMembers).toBeCloseTo(1, 5)
    expect(measureJointFailures([a, b, c]).effectiveMembers).toBeGreaterThan(2.8)
    expect(measureJointFailures([a]).effectiveMembers).toBeUndefined()
    expect(measureJointFailures([a, b, c]).allWrong).toBeCloseTo(0.027, 1)
  })

  test('the questions on which all members or each pair are wrong are counted', () => {
    const failing = measureJointFailures([
      [true, false, false, false],
      [true, true, false, false],
    ])
    expect(failing.allWrong).toBe(0.5)
    expect(failing.bothWrong).toEqual([
      [0.75, 0.5],
      [0.5, 0.5],
    ])
  })
})
