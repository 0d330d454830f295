// node bin/run.mjs node scripts/simulate-routing.ts [seeds] [seconds]: compares ways to choose a backend, in a
// simulation with common random numbers.
import { deathOf, policies, surgeOf, waitsOf, type PolicyName } from '../tests/simulation/routing-experiments.ts'

const seeds = Number(process.argv[2] ?? 5)
const seconds = Number(process.argv[3] ?? 1_200)
const print = (line: string): void => void process.stdout.write(`${line}\n`)
const percent = (share: number): string => `${(share * 100).toFixed(2)}%`

print('SIMULATED: the real gateway over simulated backends and a simulated clock. No provider was called.')
print(
  `${seeds} seeds of ${seconds} s with 8 requests per second; the same requests and response times for each policy.\n`,
)
print('Five backends that are slow or down now and then   p50 ms   p95 ms   p99 ms   extra calls   answered')
for (const name of Object.keys(policies) as PolicyName[]) {
  const { p50, p95, p99, extraCalls, requests, answered } = await waitsOf(name, seeds, seconds)
  const figures = [p50, p95, p99].map((ms) => ms.toFixed(0).padStart(9))
  print(
    `${name.padEnd(48)}${figures.join('')}${percent(extraCalls).padStart(14)}${percent(answered / requests).padStart(11)}`,
  )
}
print(
  '\nOne of five backends is down for 60 s, balanced     failed calls in 10 s   in 60 s   share back after 20 s   unanswered',
)
for (const how of ['refuses', 'hangs'] as const) {
  for (let seed = 1; seed <= seeds; seed++) {
    const { failedAtFirst, failed, shareBack, unanswered } = await deathOf(how, seed)
    const row = [String(failedAtFirst).padStart(24), String(failed).padStart(10), percent(shareBack).padStart(24)]
    print(`${`it ${how}, seed ${seed}`.padEnd(48)}${row.join('')}${String(unanswered).padStart(13)}`)
  }
}
print(
  '\nA surge of 13 times the load for 30 s, with hedge   answered during   after   p95 after : before   calls per request',
)
for (let seed = 1; seed <= seeds; seed++) {
  const { answeredDuring, answeredAfter, slowerAfter, callsPerRequest } = await surgeOf(seed)
  const row = [percent(answeredDuring), percent(answeredAfter), slowerAfter.toFixed(2), callsPerRequest.toFixed(3)]
  print(`${`seed ${seed}`.padEnd(48)}${row.map((text) => text.padStart(16)).join('')}`)
}
