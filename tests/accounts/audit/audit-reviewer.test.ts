import { expect, test } from 'vitest'
import { AuditReviewer } from '../../../src/accounts/audit/audit-reviewer.ts'
import type { AuditStore } from '../../../src/accounts/ports.ts'
import { madeUpKeys } from '../../domain/audit-log.ts'
import { SkippingClock } from '../../skipping-clock.ts'

/** A desk over an empty log whose store answers when it is let. */
function deskOver(answer: () => Promise<void>): {
  desk: AuditReviewer
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
    desk: new AuditReviewer({ store, keys: madeUpKeys(), memory, clock, onFailed: (error) => void failed.push(error) }),
    clock,
    reads,
    failed,
  }
}

test('however many ask, the log is verified once at a time, and not again within five seconds', async () => {
  const { desk, clock, reads } = deskOver(() => Promise.resolve())
  expect(desk.last).toBeUndefined()
  await Promise.all([desk.verify(), desk.verify(), desk.verify()])
  await desk.verify()
  expect(reads.length).toBe(1)
  expect(desk.last?.verdict).toEqual({ state: 'intact', entries: 0, provenTo: 0 })
  await clock.skip(6_000)
  await desk.verify()
  expect(reads.length).toBe(2)
})

test('who asks waits five seconds at most; the verification goes on, and its end is seen later', async () => {
  const { promise, resolve } = Promise.withResolvers<void>()
  const { desk, clock } = deskOver(() => promise)
  const asked = desk.verify()
  await clock.skip(5_001)
  await asked
  expect(desk.runningSinceMs).toBeDefined()
  expect(desk.last).toBeUndefined()
  resolve()
  await expect.poll(() => desk.runningSinceMs).toBeUndefined()
  expect(desk.last?.verdict).toMatchObject({ state: 'intact' })
})

test('a store that does not answer is said, and the next verification is made as usual', async () => {
  let isBroken = true
  const { desk, clock, failed } = deskOver(() => (isBroken ? Promise.reject(new Error('gone')) : Promise.resolve()))
  await desk.verify()
  expect([desk.last?.verdict, failed.length]).toEqual(['failed', 1])
  isBroken = false
  await clock.skip(6_000)
  await desk.verify()
  expect(desk.last?.verdict).toMatchObject({ state: 'intact' })
})
