import { findFailures } from './run-schedule.ts'

/*
 * Runs the schedules of a range of seeds, and prints what they broke:
 * node bin/run.mjs node tests/simulation/service/run-range.ts FIRST_SEED SCHEDULES
 */

const [firstSeed, schedules] = process.argv.slice(2).map(Number)
if (!Number.isSafeInteger(firstSeed) || !Number.isSafeInteger(schedules))
  throw new Error('name the range: run-range.ts FIRST_SEED SCHEDULES')
const failures = await findFailures(firstSeed!, schedules!)
console.log(
  failures.length === 0 ? `${schedules} schedules from seed ${firstSeed} broke nothing.` : failures.join('\n'),
)
// A simulated process that was killed can leave callers that wait 5 s of real time for its database.
process.exit(failures.length === 0 ? 0 : 1)
