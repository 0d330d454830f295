import { describeViolations, runSchedule } from './run-schedule.ts'

/*
 * Replays the schedule of one seed, and prints its trace of events and what it broke:
 * node bin/run.mjs node tests/simulation/service/replay.ts SEED
 */

const seed = Number(process.argv[2])
if (!Number.isSafeInteger(seed)) throw new Error('name the seed: replay.ts SEED')
const { violations } = await runSchedule(seed, (line) => console.log(line))
console.log(
  violations.length === 0 ? `The schedule of seed ${seed} broke nothing.` : describeViolations(seed, violations),
)
process.exitCode = violations.length === 0 ? 0 : 1
