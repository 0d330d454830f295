import { expect, test } from 'vitest'
import { LearnedLimits } from '../../../src/gateway/routing/learned-limits.ts'
import { ManualClock } from '../manual-clock.ts'
import { someBackend } from './some-backend.ts'

test('the window of a shared backend is remembered, however many are learned of backends of accounts', () => {
  const learned = new LearnedLimits(new ManualClock())
  const shared = someBackend('shared')
  learned.learnWindow(shared, 8_000)
  const own = someBackend('own', { owner: 'acc_1' })
  for (let index = 0; index < 10_001; index++) learned.learnWindow({ ...own, id: `own-${index}` }, 1_000)
  expect(learned.windowOf(shared)).toBe(8_000)
  expect(learned.knows(shared)).toBe(true)
  expect(learned.windowOf({ ...own, id: 'own-0' })).toBeUndefined()
  expect(learned.windowOf({ ...own, id: 'own-10000' })).toBe(1_000)
})
