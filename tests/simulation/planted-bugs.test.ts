import { execFile } from 'node:child_process'
import { availableParallelism } from 'node:os'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { casesOf } from '../long-run.ts'
import { plantedBugs } from './service/planted/all-bugs.ts'
import { readPatched } from './service/planted/planted-bug.ts'

/*
 * Proof that the simulation of the service notices what it should: each planted bug breaks an invariant within a number
 * of schedules. `npm test` hunts a fixed sample, and checks that every patch still applies; `npm run test:long` hunts all
 * bugs, each from several first seeds, and prints how many schedules each took.
 */

const run = promisify(execFile)
const hunt = fileURLToPath(new URL('service/planted/hunt.ts', import.meta.url))
const sample = ['recovery-forgets-the-sum', 'abort-is-a-success']
const names = casesOf({ sample, all: plantedBugs.map(({ name }) => name) })
/** Hunts of one bug, each from a first seed of its own. */
const rounds = casesOf({ sample: 1, all: 5 })
const seedsApart = 1_000_000
/** Some bugs need one of the large schedules, of which there are few. */
const mostSchedules = casesOf({ sample: 5_000, all: 40_000 })

interface Hunt {
  readonly schedules: number
  /** The invariant that was broken; undefined if none was. */
  readonly id?: string
}

async function huntFrom(name: string, firstSeed: number): Promise<Hunt> {
  const { stdout } = await run(process.execPath, [hunt, name, String(firstSeed), String(mostSchedules)])
  return JSON.parse(stdout) as Hunt
}

test('there are at least 40 planted bugs, each with a name of its own', () => {
  expect(new Set(plantedBugs.map(({ name }) => name)).size).toBe(plantedBugs.length)
  expect(plantedBugs.length).toBeGreaterThanOrEqual(40)
})

test.each(plantedBugs)('the patches of $name apply exactly once', (bug) => {
  for (const { file } of bug.patches) expect(readPatched(bug, file)).not.toBe('')
})

test.each(names)('the simulation notices %s', { timeout: 1_200_000 }, async (name) => {
  const hunts: Hunt[] = []
  let next = 0
  const work = async (): Promise<void> => {
    while (next < rounds) hunts.push(await huntFrom(name, 1 + next++ * seedsApart))
  }
  await Promise.all(Array.from({ length: availableParallelism() }, work))
  const missed = hunts.filter(({ id }) => id === undefined).length
  const median = hunts.map(({ schedules }) => schedules).toSorted((a, b) => a - b)[hunts.length >> 1]
  const ids = [...new Set(hunts.map(({ id }) => id))].join(', ')
  if (rounds > 1) console.log(`${name}: noticed after ${median} schedules (median of ${rounds}), by ${ids}`)
  expect(missed).toBe(0)
})
