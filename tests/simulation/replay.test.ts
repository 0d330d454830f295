import { expect, test } from 'vitest'
import type { ReplayFigureName } from '../../src/domain/replay.ts'
import type { RoutingPolicy } from '../../src/domain/routing-policy.ts'
import { casesOf } from '../long-run.ts'
import { recordsUnder, replayAndRun, replayOf } from './replay-experiments.ts'
import { unsteadyBackends } from './routing-world.ts'

const limitMs = 600_000
const seeds = casesOf({ sample: 1, all: 10 })
const perSecond = casesOf({ sample: 4, all: 8 })
const seconds = casesOf({ sample: 660, all: 1_200 })
/** Backends that stay as fast under any load. */
const roomy = (seed: number, untilMs: number) =>
  unsteadyBackends(seed, untilMs).map((backend) => ({ ...backend, capacity: 10_000 }))

/** What is recorded, and what is replayed. */
const allComparisons: readonly (readonly [RoutingPolicy, RoutingPolicy])[] = [
  [{ sort: 'balanced' }, { sort: 'latency' }],
  [{ sort: 'balanced' }, { sort: 'balanced', hedge: true }],
  [{ sort: 'balanced', hedge: true }, { sort: 'balanced' }],
  [{ sort: 'balanced' }, { sort: 'balanced', weights: { b4: 4 } }],
  [{ sort: 'latency' }, { sort: 'price' }],
  [{ sort: 'balanced' }, { sort: 'order' }],
]

const comparisons = allComparisons.slice(0, casesOf({ sample: 2, all: allComparisons.length }))

test(
  'the intervals of a replay contain what really happens under the other policy, in most worlds',
  { timeout: limitMs },
  async () => {
    const missed = new Map<ReplayFigureName, number>()
    let replayed = 0
    for (const [recordedUnder, replayedUnder] of comparisons) {
      for (let seed = 1; seed <= seeds; seed++) {
        const experiment = { seed, seconds, perSecond, recordedUnder, replayedUnder }
        const { report, truth } = await replayAndRun({ ...experiment, backends: roomy, assumesCapacity: true })
        expect(report.canTell, `${JSON.stringify(replayedUnder)}, seed ${seed}`).toBe(true)
        replayed += 1
        for (const { name, change } of report.figures) {
          const isInside = change !== null && truth[name] >= change.low && truth[name] <= change.high
          if (!isInside) missed.set(name, (missed.get(name) ?? 0) + 1)
        }
      }
    }
    process.stdout.write(`replayed ${replayed}, missed ${JSON.stringify(Object.fromEntries(missed))}\n`)
    for (const [name, count] of missed) expect(count, name).toBeLessThanOrEqual(Math.max(1, replayed * 0.2))
  },
)

test('the same policy changes nothing', { timeout: limitMs }, async () => {
  const balanced = { sort: 'balanced' } as const
  const experiment = { seed: 3, seconds, perSecond, recordedUnder: balanced, replayedUnder: balanced }
  const { figures, recordedOtherwise } = replayOf(experiment, await recordsUnder(experiment, balanced))
  for (const { name, change } of figures.filter(({ name: each }) => each !== 'failed'))
    expect(change, name).toEqual({ estimate: 0, low: 0, high: 0 })
  expect(recordedOtherwise).toBe(false)
})

test('records of a fixed order do not tell how the backends behind the first would do as the first choice', async () => {
  const [recordedUnder, replayedUnder] = [{ sort: 'order' }, { sort: 'balanced' }] as const
  const experiment = { seed: 1, seconds, perSecond, recordedUnder, replayedUnder }
  const report = replayOf(experiment, await recordsUnder(experiment, recordedUnder))
  expect(report.canTell).toBe(false)
  expect(report.figures).toEqual([])
  expect(report.unseenShare).toBeGreaterThan(0.3)
  const reasons = report.unseen.map(({ why }) => why)
  expect(reasons).toEqual(expect.arrayContaining(['only_after_failures', 'not_then', 'never']))
})

test('a policy that needs more open calls than were recorded has unknown latencies and a known cost', async () => {
  const [recordedUnder, replayedUnder] = [{ sort: 'balanced' }, { sort: 'price' }] as const
  const experiment = { seed: 5, seconds, perSecond, recordedUnder, replayedUnder }
  const records = await recordsUnder(experiment, recordedUnder)
  const { canTell, figures, loads } = replayOf(experiment, records)
  expect(canTell).toBe(true)
  expect(loads.map(({ backend }) => backend)).toContain('b0')
  const known = figures.filter(({ change }) => change !== null).map(({ name }) => name)
  expect(known).toEqual(['cost_usd'])
  expect(figures[0]!.change!.high).toBeLessThan(0)
})
