import { expect, test } from 'vitest'
import { errorMessage } from '../../../src/domain/error-message.ts'
import { ServiceError } from '../../../src/domain/errors.ts'
import { linksFor } from '../../../src/domain/links.ts'
import type { Plan } from '../../../src/domain/plans.ts'
import { FusionSlots } from '../../../src/gateway/fusion/fusion-slots.ts'

const plan = { name: 'Pro', fusionsAtOnce: 512 } as Plan

/** The error of a fusion that gets no slot. */
function refused(slots: FusionSlots, accountId: string): ServiceError {
  try {
    slots.take(accountId, plan)
  } catch (error) {
    if (error instanceof ServiceError) return error
    throw error
  }
  throw new Error('The fusion got a slot')
}

test('a fusion without a slot is told to wait as long as Retry-After says', () => {
  const slots = new FusionSlots()
  for (let count = 0; count < 512; count++) slots.take('a', plan)
  const ofPlan = refused(slots, 'a')
  for (let count = 0; count < 512; count++) slots.take('b', plan)
  const ofProcess = refused(slots, 'c')
  expect([ofPlan.code, ofProcess.code]).toEqual(['too_many_fusions', 'server_busy'])
  for (const error of [ofPlan, ofProcess]) {
    expect(error.facts.retryAfterSeconds).toBe(10)
    expect(errorMessage(error, linksFor('https://app.example.com'))).toMatch(/ Please try again in 10s\.$/)
  }
})
