// node bin/run.mjs node scripts/simulate-routing.ts [seeds] [seconds]: compares ways to choose a backend, in a
// simulation with common random numbers.
import { filterViolations } from '../tests/simulation/filter-experiment.ts'
import {
  deathOf,
  policies,
  surgeOf,
  waitsOf,
  type Death,
  type PolicyName,
  type Surge,
  type Waits,
} from '../tests/simulation/routing-experiments.ts'

const seeds = Number(process.argv[2] ?? 5)
const seconds = Number(process.argv[3] ?? 1_200)
const filterRequests = 1_000_000
const print = (line: string): void => void process.stdout.write(`${line}\n`)
const percent = (share: number): string => `${(share * 100).toFixed(2)}%`

/** Prints a figure with its target. */
function judge(what: string, figure: string, target: string, isMet: boolean): void {
  print(`${isMet ? 'met    ' : 'NOT MET'}  ${what}: ${figure} (target: ${target})`)
  if (!isMet) process.exitCode = 1
}

print('SIMULATED: the real gateway over simulated backends and a simulated clock. No provider was called.')
print(
  `${seeds} seeds of ${seconds} s with 8 requests per second; the same requests and response times for each policy.\n`,
)
print('Five backends that are slow or down now and then   p50 ms   p95 ms   p99 ms   extra calls   answered')
const waits = new Map<PolicyName, Waits>()
for (const name of Object.keys(policies) as PolicyName[]) {
  const found = await waitsOf(name, seeds, seconds)
  waits.set(name, found)
  const { p50, p95, p99, extraCalls, requests, answered } = found
  const figures = [p50, p95, p99].map((ms) => ms.toFixed(0).padStart(9))
  print(
    `${name.padEnd(48)}${figures.join('')}${percent(extraCalls).padStart(14)}${percent(answered / requests).padStart(11)}`,
  )
}
print(
  '\nOne of five backends is down for 60 s, balanced     failed calls in 10 s   in 60 s   share back after 20 s   unanswered',
)
const ways = [
  { how: 'refuses', rate: 32 },
  { how: 'hangs', rate: 8 },
  { how: 'hangs', rate: 32 },
] as const
const deaths: { readonly how: string; readonly rate: number; readonly death: Death }[] = []
for (const { how, rate } of ways) {
  for (let seed = 1; seed <= seeds; seed++) {
    const death = await deathOf(how, seed, rate)
    deaths.push({ how, rate, death })
    const { failedAtFirst, failed, shareBack, unanswered } = death
    const row = [String(failedAtFirst).padStart(24), String(failed).padStart(10), percent(shareBack).padStart(24)]
    print(
      `${`it ${how}, ${rate} requests per second, seed ${seed}`.padEnd(48)}${row.join('')}${String(unanswered).padStart(13)}`,
    )
  }
}
print(
  '\nA surge of 13 times the load for 30 s, with hedge   answered during   after   p95 after : before   calls per request',
)
const surges: Surge[] = []
for (let seed = 1; seed <= seeds; seed++) {
  const surge = await surgeOf(seed)
  surges.push(surge)
  const { answeredDuring, answeredAfter, slowerAfter, callsPerRequest } = surge
  const row = [percent(answeredDuring), percent(answeredAfter), slowerAfter.toFixed(2), callsPerRequest.toFixed(3)]
  print(`${`seed ${seed}`.padEnd(48)}${row.map((text) => text.padStart(16)).join('')}`)
}

const [usual, ours] = [waits.get('two choices by load')!, waits.get('balanced, hedge')!]
const leastAfter = Math.min(...surges.map(({ answeredAfter }) => answeredAfter))
const slowest = Math.max(...surges.map(({ slowerAfter }) => slowerAfter))
const filtered = filterViolations(filterRequests, 2)
print('\nTargets, in this simulation')
judge(
  'p99 to first content, hedged, relative to two choices by load with breakers',
  percent(ours.p99 / usual.p99),
  'at most 50%',
  ours.p99 <= usual.p99 / 2,
)
judge('extra calls of it', percent(ours.extraCalls), 'at most 6%', ours.extraCalls <= 0.06)
for (const { how, rate } of ways) {
  const all = deaths.flatMap((one) => (one.how === how && one.rate === rate ? [one.death] : []))
  const mostFailed = Math.max(...all.map(({ failedAtFirst }) => failedAtFirst))
  const back = all.reduce((sum, { shareBack }) => sum + shareBack / all.length, 0)
  const what = `failed calls in 10 s of a dead backend that ${how}, ${rate} requests per second`
  if (how === 'hangs' && rate > 8)
    print(`         ${what}: ${mostFailed} (no target: a healthy one has more than 3 calls without an answer)`)
  else judge(what, String(mostFailed), 'at most 3', mostFailed <= 3)
  judge('its share 20 to 40 s after its recovery', percent(back), 'at least 80%', back >= 0.8)
}
judge(
  'answered from 30 s after a surge on, and p95 relative to before it',
  `${percent(leastAfter)}, ${slowest.toFixed(2)}`,
  '100%, at most 1.6: no metastable state',
  leastAfter === 1 && slowest <= 1.6,
)
judge(
  `filter violations in ${filterRequests} requests whose backends fail, ${filtered.calls} calls`,
  String(filtered.violations.length),
  '0',
  filtered.violations.length === 0,
)
