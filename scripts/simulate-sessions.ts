// node bin/run.mjs node scripts/simulate-sessions.ts [sessions] [seeds]: what agents' sessions cost over backends with
// caches of their own that fail now and then, with and without stickiness.
import { bestPinned, runSessions, type SessionsResult } from '../tests/simulation/session-experiments.ts'

const sessions = Number(process.argv[2] ?? 1_000)
const seeds = Number(process.argv[3] ?? 1)
const turns = 20
const print = (line: string): void => void process.stdout.write(`${line}\n`)
const percent = (share: number, digits = 2): string => `${(share * 100).toFixed(digits)}%`

print('SIMULATED: the real gateway over simulated backends, caches, and a simulated clock. No provider was called.')
print(
  `${sessions} sessions at once, ${turns} turns each, five backends with separate caches, each down or limited now and then.\n`,
)
print('                                     cost $   : best pinned   answered   read    moves   p50 ms   p95 ms')
for (let seed = 1; seed <= seeds; seed++) {
  const shared = { seed, sessions, turns }
  const pinned = await bestPinned(shared)
  const show = (name: string, result: SessionsResult): void => {
    const { costUsd, requests, answered, readShare, moved, p50Ms, p95Ms } = result
    const figures = [
      costUsd.toFixed(2).padStart(11),
      (costUsd / pinned.costUsd).toFixed(3).padStart(16),
      percent(answered / requests).padStart(11),
      percent(readShare, 1).padStart(7),
      String(moved).padStart(9),
      p50Ms.toFixed(0).padStart(9),
      p95Ms.toFixed(0).padStart(9),
    ]
    print(`${name.padEnd(32)}${figures.join('')}`)
  }
  print(`seed ${seed}`)
  show('best pinned backend', pinned)
  const sticky = await runSessions({ ...shared, routing: { sort: 'balanced' } })
  show('balanced', sticky)
  show('order', await runSessions({ ...shared, routing: { sort: 'order' } }))
  show('balanced, sticky: false', await runSessions({ ...shared, routing: { sort: 'balanced', sticky: false } }))
  show('no failures, balanced', await runSessions({ ...shared, routing: { sort: 'balanced' }, isFailing: false }))
  const cold = [...sticky.reasons].map(([reason, count]) => `${reason ?? 'none'} ${count}`)
  print(`why, balanced: ${cold.join(', ')}\n`)
}
