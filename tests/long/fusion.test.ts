import { expect, test } from 'vitest'
import { runRandomFusions } from '../simulation/random-fusions.ts'

const count = 200_000

test(`${count} random fusions, simulated: each ends, adds up, leaks nothing, and answers whenever one member answered`, async () => {
  const tally = await runRandomFusions(count, 1_000_000)
  expect([...tally.values()].reduce((sum, number) => sum + number, 0)).toBe(count)
})
