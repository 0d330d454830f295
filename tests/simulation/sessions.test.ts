import { expect, test } from 'vitest'
import { casesOf } from '../long-run.ts'
import { bestPinned, runSessions } from './session-experiments.ts'

const shared = { sessions: 40, turns: 20 }

test.each(casesOf({ sample: [1, 2], all: [1, 2, 3, 4, 5, 6] }))(
  'sessions cost at most 1.05 times the best pinned backend while backends fail, and are answered as often (seed %i)',
  async (seed) => {
    const pinned = await bestPinned({ ...shared, seed })
    const sticky = await runSessions({ ...shared, seed, routing: { sort: 'balanced' } })
    const free = await runSessions({ ...shared, seed, routing: { sort: 'balanced', sticky: false } })
    expect(sticky.costUsd / pinned.costUsd).toBeLessThanOrEqual(1.05)
    expect(sticky.costUsd / free.costUsd).toBeLessThan(0.7)
    expect(sticky.answered).toBeGreaterThanOrEqual(free.answered)
    // Every answered turn has a verdict, and none is unexplained.
    expect(sticky.reasons.has(undefined)).toBe(false)
    expect(sticky.reasons.get('unread') ?? 0).toBe(0)
    expect(sticky.reasons.get('uncounted') ?? 0).toBe(0)
  },
)
