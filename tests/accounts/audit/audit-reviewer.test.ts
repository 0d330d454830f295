import { expect, test } from 'vitest'
import { AuditReviewer } from '../../../src/accounts/audit/audit-reviewer.ts'
import type { AuditStore } from '../../../src/accounts/ports.ts'
import { SkippingClock } from '../../../src/simulation/skipping-clock.ts'
import { madeUpKeys } from '../../domain/audit-log.ts'

/** A reviewer of an empty log, whose store waits for `answer`. */
function reviewerOver(answer: () => Promise<void>): {
  reviewer: AuditReviewer
  clock: SkippingClock
  reads: number[]
  failed: unknown[]
} {
  const clock = new SkippingClock()
  const reads: number[] = []
  const failed: unknown[] = []
  const store = {
    async listCheckpoints() {
      reads.push(clock.nowMs())
      await answer()
      return []
    },
    auditHead: () => Promise.resolve({ sequence: 0, hash: '' }),
    readAudit: () => Promise.resolve([]),
  } as unknown as AuditStore
  const memory = { read: () => Promise.resolve(undefined), keep: () => Promise.resolve() }
  return {
    reviewer: new AuditReviewer({
      store,
      keys: madeUpKeys(),
      memory,
      clock,
      onFailed: (error) => void failed.push(error),
    }),
    clock,
    reads,
    failed,
  }
}

test('simultaneous callers share one verification, and the log is not verified again within five seconds', async () => {
  const { reviewer, clock, reads } = reviewerOver(() => Promise.resolve())
  expect(reviewer.last).toBeUndefined()
  await Promise.all([reviewer.verify(), reviewer.verify(), reviewer.verify()])
  await reviewer.verify()
  expect(reads.length).toBe(1)
  expect(reviewer.last?.verdict).toEqual({ state: 'intact', entries: 0, provenTo: 0 })
  await clock.skip(6_000)
  await reviewer.verify()
  expect(reads.length).toBe(2)
})

test('a caller waits at most five seconds, and a verification that takes longer completes in the background', async () => {
  const { promise, resolve } = Promise.withResolvers<void>()
  const { reviewer, clock } = reviewerOver(() => promise)
  const waiting = reviewer.verify()
  await clock.skip(5_001)
  await waiting
  expect(reviewer.runningSinceMs).toBeDefined()
  expect(reviewer.last).toBeUndefined()
  resolve()
  await expect.poll(() => reviewer.runningSinceMs).toBeUndefined()
  expect(reviewer.last?.verdict).toMatchObject({ state: 'intact' })
})

test('a failure of the store is reported, and the next verification runs as usual', async () => {
  let isBroken = true
  const { reviewer, clock, failed } = reviewerOver(() =>
    isBroken ? Promise.reject(new Error('gone')) : Promise.resolve(),
  )
  await reviewer.verify()
  expect([reviewer.last?.verdict, failed.length]).toEqual(['failed', 1])
  isBroken = false
  await clock.skip(6_000)
  await reviewer.verify()
  expect(reviewer.last?.verdict).toMatchObject({ state: 'intact' })
})
