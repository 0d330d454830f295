import { describe, expect, test } from 'vitest'
import { operatorsPrice } from '../../../../src/domain/model-price.ts'
import { familyOf } from '../../../../src/gateway/fusion/engine/model-family.ts'
import { assertConnected, planFusion, type FusionPlan } from '../../../../src/gateway/fusion/engine/plan.ts'
import type { FusionMember } from '../../../../src/gateway/fusion/engine/ports.ts'
import { settingsOf, type FusionSettings } from '../../../../src/gateway/fusion/engine/settings.ts'
import { question } from '../../../simulation/conversations.ts'

function member(id: string, of: Partial<FusionMember> = {}): FusionMember {
  const family = id.replace(/\d/g, '')
  return { id, model: `${family}-model`, family, failureDomain: family, quality: 80, ...of }
}

function plan(
  members: readonly FusionMember[],
  of: Partial<FusionSettings> = {},
  conversation = question(),
): FusionPlan {
  return planFusion({ conversation, members, settings: { ...settingsOf('balanced', true), ...of } })
}

const idsOf = ({ slots }: FusionPlan): string[] => slots.map(({ member: { id } }) => id)

describe('the panel', () => {
  test('it starts with the best member, then adds other families, then other failure domains', () => {
    const members = [
      member('gpt1'),
      member('gpt2', { failureDomain: 'azure' }),
      member('claude1', { quality: 82 }),
      member('gemini1'),
    ]
    expect(idsOf(plan(members))).toEqual(['claude1', 'gpt1', 'gemini1'])
    expect(idsOf(plan(members.slice(0, 2).concat(member('gpt3'))))).toEqual(['gpt1', 'gpt2', 'gpt3'])
  })

  test('among new families, one in a new failure domain comes first', () => {
    const members = [
      member('gpt1', { failureDomain: 'one' }),
      member('claude1', { failureDomain: 'one' }),
      member('gemini1', { failureDomain: 'two' }),
    ]
    expect(idsOf(plan(members, { panelSize: 2 }))).toEqual(['gpt1', 'gemini1'])
  })

  test('it does not add weak members for diversity', () => {
    const members = [
      member('gpt1', { quality: 90 }),
      member('claude1', { quality: 85 }),
      member('llama1', { quality: 60 }),
    ]
    const { slots, reserves } = plan(members)
    expect(slots.map(({ member: { id }, angle }) => [id, angle])).toEqual([
      ['gpt1', 0],
      ['claude1', 0],
      ['gpt1', 1],
    ])
    expect(reserves).toEqual([])
  })

  test('if there is only one strong model, it is asked in different ways', () => {
    const { slots, isSelfPanel } = plan([member('gpt1')])
    expect(slots.map(({ angle }) => angle)).toEqual([0, 1, 2])
    expect(isSelfPanel).toBe(true)
    expect(plan([member('gpt1'), member('claude1')]).isSelfPanel).toBe(false)
  })

  test('the remaining members are reserves, the most different first', () => {
    const members = [member('gpt1'), member('gpt2'), member('claude1'), member('gemini1'), member('mistral1')]
    const { reserves } = plan(members, { panelSize: 2 })
    expect(reserves.map(({ id }) => id)).toEqual(['gemini1', 'mistral1', 'gpt2'])
  })

  test('images go only to members that are known to support them', () => {
    const seeing = member('gpt1', { capabilities: { image_input: true } })
    const conversation = question(undefined, {
      turns: [{ role: 'user', parts: [{ type: 'image', url: 'data:image/png;base64,AA==' }] }],
    })
    expect(idsOf(plan([member('claude1', { quality: 99 }), seeing], {}, conversation))).toEqual([
      'gpt1',
      'gpt1',
      'gpt1',
    ])
  })

  test('members with too small a context window are left out', () => {
    const small = member('gpt1', { contextWindow: 5_000, quality: 85 })
    const long = question('word '.repeat(4_000))
    expect(idsOf(plan([small, member('claude1')], { panelSize: 1 }, long))).toEqual(['claude1'])
    expect(idsOf(plan([small, member('claude1')], { panelSize: 1 }, question('Short.')))).toEqual(['gpt1'])
  })

  test('the caller can name its members by backend or model, and repeat them', () => {
    const members = [member('gpt1'), member('claude1'), member('llama1', { quality: 20 })]
    const named = plan(members, { panelModels: ['llama1', 'gpt-model', 'llama1'], judgeModel: 'claude1' })
    expect(idsOf(named)).toEqual(['llama1', 'gpt1', 'llama1'])
    expect(named.judgeFirst?.id).toBe('claude1')
  })

  test('a named model that is not available is left out, and the plan reports it', () => {
    const members = [member('gpt1'), member('claude1')]
    const { slots, judgeFirst, isMissingNamed } = plan(members, {
      panelModels: ['gone', 'claude1'],
      judgeModel: 'gone',
    })
    expect(slots.map(({ member: { id } }) => id)).toEqual(['claude1'])
    expect({ judgeFirst, isMissingNamed }).toEqual({ judgeFirst: undefined, isMissingNamed: true })
    expect(idsOf(plan(members, { panelModels: ['gone'], panelSize: 2 }))).toEqual(['gpt1', 'claude1'])
    expect(plan(members, { panelModels: ['gpt1'], judgeModel: 'claude1' }).isMissingNamed).toBe(false)
  })

  test('naming a model that is not connected is an error', () => {
    for (const parameters of [{ panelModels: ['gpt1', 'nobody'] }, { judgeModel: 'nobody' }]) {
      const param = 'judgeModel' in parameters ? 'parameters.model' : 'parameters.analysis_models[1]'
      expect(() => assertConnected({ ...settingsOf('balanced', true), ...parameters }, [member('gpt1')])).toThrow(
        expect.objectContaining({ status: 400, facts: expect.objectContaining({ param }) }),
      )
    }
  })

  test('with a cost limit, only members of known price take part, and having none is an error', () => {
    const priced = member('gpt1', { price: operatorsPrice({ input: 1, output: 2 }) })
    expect(idsOf(plan([member('claude1', { quality: 99 }), priced], { maxCostUsd: 1, panelSize: 1 }))).toEqual(['gpt1'])
    expect(() => plan([member('claude1')], { maxCostUsd: 1 })).toThrow(expect.objectContaining({ status: 400 }))
  })
})

test('the writer is the one that answered earlier in this session, otherwise the best', () => {
  const members = [member('gpt1'), member('claude1', { quality: 85 }), member('gemini1')]
  const settings = settingsOf('balanced', true)
  expect(planFusion({ conversation: question(), members, settings }).writers[0]!.id).toBe('claude1')
  expect(planFusion({ conversation: question(), members, settings, pinned: 'gemini1' }).writers[0]!.id).toBe('gemini1')
  expect(planFusion({ conversation: question(), members, settings, pinned: 'gone' }).writers[0]!.id).toBe('claude1')
})

test.each([
  ['gpt-5.2', 'gpt'],
  ['openai/gpt-5', 'gpt'],
  ['Claude-Opus-5', 'claude'],
  ['meta/llama-3.3-70b', 'llama'],
  ['qwen3-max', 'qwen'],
  ['o3', 'o'],
  ['4711', 'unnamed'],
])('the model %s is of the family %s', (model, family) => {
  expect(familyOf(model)).toBe(family)
})
