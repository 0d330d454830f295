import { expect, test } from 'vitest'
import type { UsdPerMillion } from '../../../src/domain/model-facts.ts'
import { operatorsPrice } from '../../../src/domain/model-price.ts'
import { CostTracker } from '../../../src/gateway/fusion/engine/cost-tracker.ts'
import { planFusion } from '../../../src/gateway/fusion/engine/plan.ts'
import { settingsFrom, settingsOf } from '../../../src/gateway/fusion/engine/settings.ts'
import { membersOf } from '../../../src/gateway/fusion/members.ts'
import type { Backend } from '../../../src/gateway/ports.ts'
import { question } from '../../simulation/conversations.ts'

const backend = (id: string, facts: Partial<Backend> = {}): Backend =>
  ({ id, model: `${id}-model`, failureDomain: id, ...facts }) as Backend
const qualities = (all: readonly Backend[]): number[] => membersOf(all).map(({ quality }) => quality)

test('without quality ratings, all models are equal', () => {
  expect(new Set(qualities([backend('a'), backend('b')])).size).toBe(1)
})

test('an unrated model may be asked, but never before the best rated one', () => {
  const all = [
    backend('mystery'),
    backend('best', { quality: 90 }),
    backend('good', { quality: 84 }),
    backend('weak', { quality: 60 }),
  ]
  const members = membersOf(all)
  const { slots, reserves } = planFusion({ conversation: question(), members, settings: settingsOf('balanced', true) })
  expect(slots.map(({ member }) => member.id)).toEqual(['best', 'good', 'mystery'])
  expect(reserves.map(({ id }) => id)).not.toContain('weak')
  expect(Math.min(...qualities([backend('mystery'), backend('poor', { quality: 3 })]))).toBeGreaterThanOrEqual(0)
})

test('a call’s cost is computed from its model’s price, with a separate price for cached tokens', () => {
  const priced = (own: UsdPerMillion) => ({ price: { version: 'v', at: () => operatorsPrice(own) } })
  const [member, plain] = membersOf([
    backend('a', priced({ input: 2, output: 10, cachedInput: 0.5 })),
    backend('b', priced({ input: 2, output: 10 })),
  ])
  const usage = {
    inputTokens: 1_000_000,
    cachedTokens: 400_000,
    outputTokens: 100_000,
    reasoningTokens: 0,
    source: 'counted',
  } as const
  const book = new CostTracker(undefined)
  for (const asked of [member!, plain!])
    book.settle(book.reserve('panel', asked, 0)!, { status: 'answered', ms: 1, usage })
  expect(book.records.map(({ costUsd }) => costUsd)).toEqual([0.6 * 2 + 0.4 * 0.5 + 1, 2 + 1])
  expect(book.costUsd).toBeCloseTo(5.4, 9)
})

test('an operator’s defaults that are not available are skipped', () => {
  const members = membersOf([backend('a'), backend('b')])
  const defaults = {
    preset: 'quality',
    panelModels: ['gone', 'b-model'],
    judgeModel: 'gone',
    namesModels: true,
  } as const
  const settings = settingsFrom(defaults, members, true)
  expect(settings).toMatchObject({ preset: 'quality', panelModels: ['b-model'], namesModels: true })
  expect(settings).not.toHaveProperty('judgeModel')
  expect(settingsFrom({ panelModels: ['gone'] }, members, true)).toEqual(settingsOf('balanced', true))
  expect(settingsFrom({ preset: 'fast', panelSize: 4, judgeModel: 'a' }, members, false)).toMatchObject({
    panelSize: 4,
    judgeModel: 'a',
    totalMs: 40_000,
  })
})
