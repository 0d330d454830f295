import { expect, test } from 'vitest'
import { describeBackend } from '../../src/domain/backend-status-text.ts'

const closed = { state: 'closed', reason: undefined, isTroubled: false } as const

test('a backend with many recent failures is green for nobody', () => {
  expect(describeBackend(closed)).toMatchObject({ tone: 'good', component: 'operational' })
  expect(describeBackend({ ...closed, isTroubled: true })).toMatchObject({ tone: 'warn', component: 'degraded' })
  expect(describeBackend(closed, { answered: 66, failed: 34 })).toMatchObject({ tone: 'warn', component: 'degraded' })
  expect(describeBackend(closed, { answered: 1, failed: 4 }), 'too few to tell').toMatchObject({ tone: 'good' })
  expect(describeBackend(closed, { answered: 95, failed: 5 })).toMatchObject({ tone: 'good' })
})

test('operators and the public see the same color', () => {
  const colors = { operational: 'good', degraded: 'warn', maintenance: 'warn', down: 'bad' } as const
  for (const state of ['closed', 'open', 'half_open', 'drained', 'quarantined'] as const)
    for (const isTroubled of [false, true]) {
      const { tone, component } = describeBackend({ state, reason: undefined, isTroubled })
      expect(tone, state).toBe(colors[component])
    }
})
