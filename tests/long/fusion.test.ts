import { expect, test } from 'vitest'
import { ordersEach, ordersObeyedIn } from '../simulation/gullible-models.ts'
import { runRandomFusions } from '../simulation/random-fusions.ts'

const fusions = 200_000
const hostileFusions = 250_000
const atOnce = 10_000

test(`${fusions} random fusions, simulated: each ends, adds up, leaks nothing, and answers whenever one member answered`, async () => {
  const tally = await runRandomFusions(fusions, 1_000_000)
  expect([...tally.values()].reduce((sum, number) => sum + number, 0)).toBe(fusions)
})

test(`a gullible judge and a gullible writer, simulated, obey none of ${hostileFusions * ordersEach} injected orders`, async () => {
  for (let done = 0; done < hostileFusions; done += atOnce) {
    expect(await ordersObeyedIn(atOnce, 1_000_000 + done)).toEqual([])
  }
})
