import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { Conversation } from '../../../../src/domain/conversation.ts'
import type { Json, JsonObject } from '../../../../src/domain/json.ts'
import { mergeJson, type JsonAnswer } from '../../../../src/gateway/fusion/engine/answer/merge-json.ts'
import { fitsSchema } from '../../../../src/gateway/fusion/engine/answer/schema-fit.ts'
import { fuse } from '../../../../src/gateway/fusion/engine/fusion.ts'
import { settingsOf } from '../../../../src/gateway/fusion/engine/settings.ts'
import { question } from '../../../simulation/conversations.ts'
import { expectSound } from '../../../simulation/invariants.ts'
import { candidatesIn, judgeReply, judgeSays } from '../../../simulation/simulated-judge.ts'
import {
  SimulatedModels,
  simulatedMember,
  streamedAnswer,
  textAnswer,
  type Behaviour,
} from '../../../simulation/simulated-models.ts'
import { SimulatedTime } from '../../../simulation/simulated-time.ts'

/** Answers of different families, the best first. */
function answers(...values: readonly Json[]): JsonAnswer[] {
  return values.map((value, index) => ({ value, family: `f${index}`, weight: 8 - index }))
}

describe('structured answers are merged field by field', () => {
  test.each<[string, readonly Json[], Json, number]>([
    ['a value in all answers is settled', [{ a: 1 }, { a: 1 }, { a: 1 }], { a: 1 }, 0],
    [
      'a value of two families, including the best answer, is settled',
      [
        { a: 1, b: 'x' },
        { a: 1, b: 'x' },
        { a: 2, b: 'y' },
      ],
      { a: 1, b: 'x' },
      0,
    ],
    ['a value of two answers against the best is taken, but open', [{ a: 2 }, { a: 1 }, { a: 1 }], { a: 1 }, 1],
    [
      'a field that the best answer lacks is taken, but open',
      [{ b: 1 }, { a: 1, b: 1 }, { a: 1, b: 1 }],
      { a: 1, b: 1 },
      1,
    ],
    [
      'a list entry that differs only in the best answer is taken from the others, but open',
      [[{ id: 1, n: 1 }], [{ id: 1, n: 2 }], [{ id: 1, n: 2 }]],
      [{ id: 1, n: 2 }],
      1,
    ],
    [
      'if all differ, the answer with the highest weight is taken, but open',
      [{ a: 1 }, { a: 2 }, { a: 3 }],
      { a: 1 },
      1,
    ],
    [
      'nested fields are merged separately',
      [{ a: { b: 1, c: 2 } }, { a: { b: 1, c: 3 } }, { a: { b: 9, c: 2 } }],
      { a: { b: 1, c: 2 } },
      0,
    ],
    ['a field of only one answer is left out, and open', [{ a: 1 }, { a: 1 }, { a: 1, odd: true }], { a: 1 }, 1],
    [
      'list entries are matched by their IDs',
      [
        [
          { id: 'x', n: 1 },
          { id: 'y', n: 2 },
        ],
        [
          { id: 'y', n: 2 },
          { id: 'x', n: 1 },
        ],
      ],
      [
        { id: 'x', n: 1 },
        { id: 'y', n: 2 },
      ],
      0,
    ],
    [
      'list entries without IDs are matched by position',
      [
        [1, 2, 3],
        [1, 5, 3],
        [1, 2, 4],
      ],
      [1, 2, 3],
      0,
    ],
    [
      'of lists with different lengths, one is taken whole',
      [
        [1, 2],
        [1, 2, 3],
      ],
      [1, 2],
      1,
    ],
    ['values other than objects are merged', [true, true, false], true, 0],
    [
      'names that look like indexes are merged',
      [
        { 2: 'b', 1: 'a' },
        { 2: 'b', 1: 'a' },
      ],
      { 1: 'a', 2: 'b' },
      0,
    ],
  ])('%s', (_, values, value, disputed) => {
    expect(mergeJson(answers(...values))).toMatchObject({ value, disputed })
  })

  test('two answers of one family do not outvote another', () => {
    const [best, ...others] = answers({ a: 1 }, { a: 2 }, { a: 2 })
    const same = others.map((answer) => ({ ...answer, family: 'one' }))
    expect(mergeJson([best!, ...same])?.disputed).toBe(1)
  })

  test('a single answer is not merged', () => {
    expect(mergeJson(answers({ a: 1 }))).toBeUndefined()
    expect(mergeJson([])).toBeUndefined()
  })

  test('settled values replace those of another answer, and nothing else changes', () => {
    const merged = mergeJson(
      answers({ a: 1, b: { c: 'x', d: 1 } }, { a: 1, b: { c: 'x', d: 2 } }, { a: 1, b: { c: 'y', d: 3 } }),
    )!
    expect(merged.disputed).toBe(1)
    expect(merged.settle({ b: { d: 7, c: 'z' }, a: 5, further: [1] })).toEqual({
      b: { d: 7, c: 'x' },
      a: 1,
      further: [1],
    })
    expect(merged.settle('nothing like it')).toBe('nothing like it')
  })

  test('merging equal answers gives the same answer, whatever it contains', () => {
    const value = (fc.jsonValue({ maxDepth: 4 }) as fc.Arbitrary<Json>).map(
      (json) => JSON.parse(JSON.stringify(json)) as Json,
    )
    fc.assert(
      fc.property(value, fc.integer({ min: 2, max: 5 }), (json, count) => {
        const merged = mergeJson(answers(...Array.from({ length: count }, () => json)))!
        expect(JSON.parse(JSON.stringify(merged.value))).toEqual(json)
        expect(merged.disputed).toBe(0)
      }),
      { numRuns: 1_000, seed: 8 },
    )
  })
})

describe('checking a value against a schema', () => {
  const schema: JsonObject = {
    type: 'object',
    required: ['name'],
    additionalProperties: false,
    properties: {
      name: { type: 'string' },
      size: { type: ['integer', 'null'] },
      kind: { enum: ['a', 'b'] },
      fixed: { const: 1 },
      tags: { type: 'array', items: { type: 'string' } },
      free: {},
    },
  }
  test.each<[string, Json, boolean]>([
    ['the required fields fit', { name: 'x' }, true],
    ['all fields fit', { name: 'x', size: null, kind: 'b', fixed: 1, tags: ['t'], free: [1] }, true],
    ['a missing field does not fit', { size: 1 }, false],
    ['an additional field does not fit', { name: 'x', more: 1 }, false],
    ['a wrong type does not fit', { name: 7 }, false],
    ['a fraction does not fit an integer', { name: 'x', size: 1.5 }, false],
    ['a value outside the enum does not fit', { name: 'x', kind: 'c' }, false],
    ['another constant does not fit', { name: 'x', fixed: 2 }, false],
    ['a wrong list entry does not fit', { name: 'x', tags: ['t', 1] }, false],
    ['a list does not fit an object', [], false],
    ['a name of the prototype does not fit', JSON.parse('{"name":"x","constructor":1}') as Json, false],
  ])('%s', (_, value, fits) => {
    expect(fitsSchema(value, schema)).toBe(fits)
  })
})

describe('a fusion of structured answers', () => {
  const schema: JsonObject = {
    type: 'object',
    required: ['a'],
    properties: { a: { type: 'number' }, b: { type: 'number' } },
  }
  const conversation: Conversation = question('Give JSON.', {
    outputFormat: { type: 'json_schema', name: 'n', schema },
  })

  async function fuseJson(texts: readonly string[], written: Behaviour) {
    const members = texts.map(() => simulatedMember())
    const world = new SimulatedModels(new SimulatedTime(), (member, { role, conversation: asked }) => {
      if (role === 'panel') return textAnswer(texts[members.indexOf(member)]!, 1_000)
      if (role === 'synthesis') return written
      const scores = candidatesIn(asked).map(({ label, text }): [string, number] => [label, text === texts[0] ? 6 : 5])
      return judgeSays(judgeReply({ answerType: 'structured', scores: Object.fromEntries(scores) }))
    })
    const request = { conversation, members, settings: settingsOf('balanced', true) }
    const outcome = await world.clock.until(fuse(request, world, new AbortController().signal))
    const text = await expectSound(world, outcome)
    return { text, outcome, roles: world.seen.map(({ call }) => call.role) }
  }

  test('if nothing is open, the merged answer is sent without a writer', async () => {
    const { text, outcome, roles } = await fuseJson(['{"a":1,"b":2}', '{"a":1,"b":3}', '{"a":4,"b":2}'], {
      steps: [],
      hangs: true,
    })
    expect(text).toBe('{"a":1,"b":2}')
    expect(outcome.record.mode).toBe('merged')
    expect(roles).not.toContain('synthesis')
  })

  test('if something is open, it is written, and settled values are kept', async () => {
    const panel = ['{"a":1,"b":2}', '{"a":1,"b":3}', '{"a":1,"b":4}']
    expect((await fuseJson(panel, streamedAnswer('{"a": 9, "b": 3}'))).text).toBe('{"a":1,"b":3}')
    // No value had to be replaced, so the text is unchanged.
    expect((await fuseJson(panel, streamedAnswer('{"a": 1, "b": 3}'))).text).toBe('{"a": 1, "b": 3}')
  })

  test.each([
    ['fails', { steps: [{ afterMs: 5, fails: 'reset' as const }] }],
    ['writes prose', streamedAnswer('Well, it depends.')],
    ['violates the schema', streamedAnswer('{"b": "two"}')],
  ])('if the writer %s, the answers are merged by vote', async (_, written) => {
    const { text, outcome } = await fuseJson(['{"a":1,"b":2}', '{"a":1,"b":3}', '{"a":1,"b":4}'], written)
    expect(text).toBe('{"a":1,"b":2}')
    expect(outcome.record).toMatchObject({ mode: 'merged', degraded: ['synthesis_failed'] })
  })

  test.each([1, 3])('if none of %i answers has the format, the answer is written', async (count) => {
    const { text, outcome } = await fuseJson(['Hm.', 'Well.', 'So.'].slice(0, count), streamedAnswer('{"a": 7}'))
    expect(text).toBe('{"a": 7}')
    expect(outcome.record.mode).toBe('synthesised')
  })

  test('if only one answer has the format, it is sent', async () => {
    const { text } = await fuseJson(['Hm.', '{"a":1}', '{"b":1}'], { steps: [{ afterMs: 5, fails: 'reset' }] })
    expect(text).toBe('{"a":1}')
  })
})
