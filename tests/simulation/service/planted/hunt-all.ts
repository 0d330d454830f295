import { execFile } from 'node:child_process'
import { availableParallelism } from 'node:os'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { plantedBugs } from './all-bugs.ts'

/*
 * Hunts every planted bug from several first seeds, and prints how many schedules and how much CPU time each took:
 * node bin/run.mjs node tests/simulation/service/planted/hunt-all.ts ROUNDS SCHEDULES
 * Run it before and after a change of the schedules, on an idle machine.
 */

const [rounds = 2, most = 10_000] = process.argv.slice(2).map(Number)
const hunt = fileURLToPath(new URL('hunt.ts', import.meta.url))
const seedsApart = 1_000_000
const jobs = plantedBugs.flatMap(({ name }) => Array.from({ length: rounds }, (_, round) => ({ name, round })))
let found = 0
let seconds = 0

async function work(): Promise<void> {
  for (let job = jobs.shift(); job !== undefined; job = jobs.shift()) {
    const { name, round } = job
    const args = [hunt, name, String(1 + round * seedsApart), String(most)]
    const { stdout } = await promisify(execFile)(process.execPath, args)
    const { schedules, id, cpuMs } = JSON.parse(stdout) as { schedules: number; id?: string; cpuMs: number }
    if (id !== undefined) found += 1
    seconds += cpuMs / 1_000
    const columns = [
      name.padEnd(45),
      `${schedules}`.padStart(7),
      (cpuMs / 1_000).toFixed(1).padStart(7),
      id ?? 'missed',
    ]
    console.log(columns.join(' '))
  }
}

await Promise.all(Array.from({ length: availableParallelism() }, work))
console.log(`${found} of ${plantedBugs.length * rounds} hunts found their bug, in ${Math.round(seconds)} s of CPU`)
