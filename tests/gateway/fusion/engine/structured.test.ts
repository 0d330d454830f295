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

/** Answers of families of their own, the first the best. */
function answers(...values: readonly Json[]): JsonAnswer[] {
  return values.map((value, index) => ({ value, family: `f${index}`, weight: 8 - index }))
}

describe('structured answers are put together field by field', () => {
  test.each<[string, readonly Json[], Json, number]>([
    ['what all say', [{ a: 1 }, { a: 1 }, { a: 1 }], { a: 1 }, 0],
    [
      'what two families say, and the best with them',
      [
        { a: 1, b: 'x' },
        { a: 1, b: 'x' },
        { a: 2, b: 'y' },
      ],
      { a: 1, b: 'x' },
      0,
    ],
    ['what two say against the best: taken, and open', [{ a: 2 }, { a: 1 }, { a: 1 }], { a: 1 }, 1],
    ['what the best one lacks: taken, and open', [{ b: 1 }, { a: 1, b: 1 }, { a: 1, b: 1 }], { a: 1, b: 1 }, 1],
    [
      'an entry on which the best one stands alone',
      [[{ id: 1, n: 1 }], [{ id: 1, n: 2 }], [{ id: 1, n: 2 }]],
      [{ id: 1, n: 2 }],
      1,
    ],
    ['what each says differently: the heaviest, and open', [{ a: 1 }, { a: 2 }, { a: 3 }], { a: 1 }, 1],
    [
      'fields inside of fields',
      [{ a: { b: 1, c: 2 } }, { a: { b: 1, c: 3 } }, { a: { b: 9, c: 2 } }],
      { a: { b: 1, c: 2 } },
      0,
    ],
    ['a field that only one has: left out, and open', [{ a: 1 }, { a: 1 }, { a: 1, odd: true }], { a: 1 }, 1],
    [
      'lists by what identifies their entries',
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
      'lists by place',
      [
        [1, 2, 3],
        [1, 5, 3],
        [1, 2, 4],
      ],
      [1, 2, 3],
      0,
    ],
    [
      'lists of different length: one of them whole',
      [
        [1, 2],
        [1, 2, 3],
      ],
      [1, 2],
      1,
    ],
    ['values that are no objects', [true, true, false], true, 0],
    [
      'names that look like places',
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

  test('two of one family settle nothing against another', () => {
    const [best, ...others] = answers({ a: 1 }, { a: 2 }, { a: 2 })
    const same = others.map((answer) => ({ ...answer, family: 'one' }))
    expect(mergeJson([best!, ...same])?.disputed).toBe(1)
  })

  test('one answer is no merger', () => {
    expect(mergeJson(answers({ a: 1 }))).toBeUndefined()
    expect(mergeJson([])).toBeUndefined()
  })

  test('what is settled takes its place in another answer, and nothing else does', () => {
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

  test('the same answer any number of times is itself, whatever it holds', () => {
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

describe('a schema’s plain words are kept', () => {
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
    ['what it needs', { name: 'x' }, true],
    ['all of it', { name: 'x', size: null, kind: 'b', fixed: 1, tags: ['t'], free: [1] }, true],
    ['a missing field', { size: 1 }, false],
    ['a further field', { name: 'x', more: 1 }, false],
    ['a wrong type', { name: 7 }, false],
    ['a fraction for a whole number', { name: 'x', size: 1.5 }, false],
    ['a value not of the list', { name: 'x', kind: 'c' }, false],
    ['another constant', { name: 'x', fixed: 2 }, false],
    ['a wrong entry', { name: 'x', tags: ['t', 1] }, false],
    ['a list', [], false],
    ['a name of the prototype', JSON.parse('{"name":"x","constructor":1}') as Json, false],
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

  test('in which nothing is open is sent without a writer', async () => {
    const { text, outcome, roles } = await fuseJson(['{"a":1,"b":2}', '{"a":1,"b":3}', '{"a":4,"b":2}'], {
      steps: [],
      hangs: true,
    })
    expect(text).toBe('{"a":1,"b":2}')
    expect(outcome.record.mode).toBe('merged')
    expect(roles).not.toContain('synthesis')
  })

  test('in which something is open is written, and what was settled stays', async () => {
    const panel = ['{"a":1,"b":2}', '{"a":1,"b":3}', '{"a":1,"b":4}']
    expect((await fuseJson(panel, streamedAnswer('{"a": 9, "b": 3}'))).text).toBe('{"a":1,"b":3}')
    // Nothing had to be put in its place: byte for byte.
    expect((await fuseJson(panel, streamedAnswer('{"a": 1, "b": 3}'))).text).toBe('{"a": 1, "b": 3}')
  })

  test.each([
    ['fails', { steps: [{ afterMs: 5, fails: 'reset' as const }] }],
    ['writes prose', streamedAnswer('Well, it depends.')],
    ['keeps no schema', streamedAnswer('{"b": "two"}')],
  ])('whose writer %s is put together by vote', async (_, written) => {
    const { text, outcome } = await fuseJson(['{"a":1,"b":2}', '{"a":1,"b":3}', '{"a":1,"b":4}'], written)
    expect(text).toBe('{"a":1,"b":2}')
    expect(outcome.record).toMatchObject({ mode: 'merged', degraded: ['synthesis_failed'] })
  })

  test.each([1, 3])('of %i answers without the form is written', async (count) => {
    const { text, outcome } = await fuseJson(['Hm.', 'Well.', 'So.'].slice(0, count), streamedAnswer('{"a": 7}'))
    expect(text).toBe('{"a": 7}')
    expect(outcome.record.mode).toBe('synthesised')
  })

  test('of which one alone has the form gives that one', async () => {
    const { text } = await fuseJson(['Hm.', '{"a":1}', '{"b":1}'], { steps: [{ afterMs: 5, fails: 'reset' }] })
    expect(text).toBe('{"a":1}')
  })
})
