import { expect, test } from 'vitest'
import { calibrate, threeDiverse, type World } from './accuracy-world.ts'

const items = 40_000

/** Nine models of seven families. Their quality is an assumption: the studies behind the limits do not report it. */
function nine(best: number): World {
  const members = Array.from({ length: 9 }, (_, index) => ({ right: best - index / 100, family: index % 7 }))
  return { ...threeDiverse, members }
}

test('the models in the assumed world make correlated mistakes as often as real models do', () => {
  const ratios: number[] = []
  for (const best of [0.85, 0.8]) {
    const world = nine(best)
    const found = calibrate(world, items)
    const without = calibrate({ ...world, allWrong: 0 }, items)
    ratios.push(found.allWrong / without.allWrong)
    const percent = (share: number): string => `${(share * 100).toFixed(1)} %`
    process.stdout.write(
      `SIMULATED, ASSUMED PARAMETERS, nine models from ${percent(best)} down: of two that are wrong the same ${percent(found.sameWrong)}, ` +
        `worth ${found.effectiveMembers.toFixed(2)} models, all wrong ${percent(found.allWrong)}, ${percent(without.allWrong)} without the spike\n`,
    )
    expect(found.sameWrong).toBeGreaterThanOrEqual(0.55)
    expect(found.sameWrong).toBeLessThanOrEqual(0.65)
    expect(found.effectiveMembers).toBeGreaterThanOrEqual(1.8)
    expect(found.effectiveMembers).toBeLessThanOrEqual(2.4)
  }
  // The spike matters less if more answers are wrong anyway, so the limit for weaker models is lower.
  expect(ratios[0]!).toBeGreaterThanOrEqual(2)
  expect(ratios[1]!).toBeGreaterThanOrEqual(1.5)
})
