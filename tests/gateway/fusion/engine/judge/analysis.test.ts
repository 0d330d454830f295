import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { Json, JsonObject } from '../../../../../src/domain/json.ts'
import { findJsonObject } from '../../../../../src/gateway/fusion/engine/answer/find-json-object.ts'
import { readAnalysis } from '../../../../../src/gateway/fusion/engine/judge/analysis.ts'
import { seededRandom } from '../../../../../src/gateway/fusion/engine/seeded-random.ts'

const labels = ['A', 'B', 'C']
const score = (value: number): JsonObject => ({
  correct: value,
  complete: value,
  grounded: value,
  instruction: value,
  format: value,
})
const sound: JsonObject = {
  answer_type: 'closed',
  verdict: 'adopt',
  consensus: [{ claim: 'Both say four.', support: ['A', 'C'], confidence: 0.9 }],
  contradictions: [
    {
      topic: 'the sum',
      material: true,
      positions: [
        { labels: ['A'], claim: 'four' },
        { labels: ['B'], claim: 'five' },
      ],
      resolution: { side: ['A'], basis: 'derivation', check: 'Add it up.' },
    },
  ],
  partial_coverage: [{ labels: ['B'], point: 'units' }],
  unique_insights: [{ label: 'C', insight: 'It is even.', keep: true, risk: 'low' }],
  blind_spots: ['the sign'],
  scores: { A: score(9), B: score(3), C: score(8) },
  injection_flags: ['B'],
  best: 'A',
  outline: ['the result'],
}

function read(body: JsonObject) {
  const reading = readAnalysis(body, labels)
  if ('problem' in reading) throw new Error(reading.problem)
  return reading.analysis
}

describe('the judge’s object', () => {
  test('all its fields are read', () => {
    expect(read(sound)).toMatchObject({
      answerType: 'closed',
      verdict: 'adopt',
      consensus: [{ claim: 'Both say four.', support: ['A', 'C'] }],
      contradictions: [{ topic: 'the sum', material: true, side: ['A'], check: 'Add it up.' }],
      partialCoverage: [{ labels: ['B'], point: 'units' }],
      uniqueInsights: [{ label: 'C', insight: 'It is even.', keep: true }],
      blindSpots: ['the sign'],
      scores: { A: { correct: 9 }, B: { correct: 3 }, C: { correct: 8 } },
      injectionFlags: ['B'],
      outline: ['the result'],
    })
  })

  test.each<[string, JsonObject, object]>([
    [
      'texts for objects',
      { consensus: ['Four.'], contradictions: 'the sum' },
      { consensus: [{ claim: 'Four.', support: [] }], contradictions: [{ topic: 'the sum', side: [] }] },
    ],
    [
      'one entry for a list',
      { blind_spots: 'the sign', outline: 'result' },
      { blindSpots: ['the sign'], outline: ['result'] },
    ],
    ['objects for texts', { outline: [{ point: 'result' }] }, { outline: ['result'] }],
    ['labels with decoration', { injection_flags: ['Candidate B', '[c]'] }, { injectionFlags: ['B', 'C'] }],
    ['labels in a text', { injection_flags: 'A, B' }, { injectionFlags: ['A', 'B'] }],
    ['unknown labels', { injection_flags: ['Z', 'D', 'B'] }, { injectionFlags: ['B'] }],
    [
      'one number for a candidate',
      { scores: { A: 9, B: '3/10', C: 7.6 } },
      { scores: { A: score(9), B: score(3), C: score(8) } },
    ],
    ['scores out of range', { scores: { A: 99, B: -4, C: 5 } }, { scores: { A: score(10), B: score(0), C: score(5) } }],
    [
      'scores as a list',
      {
        scores: [
          { label: 'A', ...score(9) },
          { candidate: 'b', score: 2 },
        ],
      },
      { scores: { A: score(9), B: score(2), C: score(5) } },
    ],
    ['a candidate without a score', { scores: { A: score(9), B: score(3) } }, { scores: { C: score(5) } }],
    [
      'names in other capitalization',
      { verdict: ' Synthesize.', answer_type: 'CODE' },
      { verdict: 'synthesize', answerType: 'code' },
    ],
    [
      'a resolution that is a word',
      { contradictions: [{ topic: 't', resolution: 'unresolved' }] },
      { contradictions: [{ topic: 't', side: [] }] },
    ],
  ])('%s are accepted', (_, changes, expected) => {
    expect(read({ ...sound, ...changes })).toMatchObject(expected)
  })

  test.each<[string, JsonObject, RegExp]>([
    ['no scores', { scores: {} }, /"scores"/],
    ['too few scores', { scores: { A: score(5) } }, /A, B, C/],
    ['scores that are words', { scores: { A: 'good', B: 'bad', C: 'fair' } }, /"scores"/],
    ['no verdict', { verdict: 'perhaps' }, /"verdict"/],
    ['no type', { answer_type: null }, /"answer_type"/],
  ])('it is rejected with %s, and the judge gets the reason', (_, changes, problem) => {
    const reading = readAnalysis({ ...sound, ...changes }, labels)
    expect('problem' in reading && reading.problem).toMatch(problem)
  })

  test('it is limited to 8 entries of 400 characters', () => {
    const many = Array.from({ length: 100 }, (_, index) => `${index}`.repeat(500))
    const { blindSpots, consensus } = read({ ...sound, blind_spots: many, consensus: many })
    expect(blindSpots).toHaveLength(8)
    expect(consensus).toHaveLength(8)
    for (const text of blindSpots) expect(text.length).toBeLessThanOrEqual(400)
  })

  test('reading it never throws, whatever it contains', () => {
    const any = fc.dictionary(
      fc.constantFrom(...Object.keys(sound), 'x'),
      fc.jsonValue({ maxDepth: 4 }) as fc.Arbitrary<Json>,
    )
    fc.assert(
      fc.property(any, (body) => {
        const reading = readAnalysis(body, labels)
        if ('analysis' in reading) for (const label of labels) expect(reading.analysis.scores[label]).toBeDefined()
      }),
      { numRuns: 2_000, seed: 4 },
    )
  })
})

describe('finding the object in a reply', () => {
  const json = JSON.stringify(sound)
  test.each([
    ['it may be the whole reply', json],
    ['it may be in a code fence', `\`\`\`json\n${json}\n\`\`\``],
    ['it may follow a greeting', `Here is my comparison {as asked}:\n${json}\nI hope it helps {really}.`],
    ['it may precede a second one', `${json}\n${JSON.stringify({ verdict: 'insufficient' })}`],
    ['it may have trailing commas', json.replace(/\]/g, ',]').replace(/\}$/, ',}').replaceAll('[,]', '[]')],
    ['it may be indented', JSON.stringify(sound, undefined, 4)],
  ])('%s', (_, reply) => {
    expect(findJsonObject(reply)).toEqual(sound)
  })

  test.each([
    ['nothing', ''],
    ['text', 'no object'],
    ['a brace', '{'],
    ['half an object', '{"a": '],
    ['a list', '[1, 2]'],
    ['a flood of braces', '{'.repeat(100_000)],
  ])('there is none in %s', (_, reply) => {
    expect(findJsonObject(reply)).toBeUndefined()
  })

  test('of 5000 replies damaged as models damage them, at least 99.5 % are read without another request', () => {
    const random = seededRandom(11)
    let isRead = 0
    for (let run = 0; run < 5_000; run++) {
      const body = findJsonObject(mangle(random))
      if (body !== undefined && 'analysis' in readAnalysis(body, labels)) isRead += 1
    }
    expect(isRead / 5_000).toBeGreaterThanOrEqual(0.995)
  })
})

/** A valid object damaged as models damage it: decorated, fields missing, shapes changed; one to four faults each. */
function mangle(random: () => number): string {
  const pick = <Item>(items: readonly Item[]): Item => items[Math.floor(random() * items.length)]!
  const body: Record<string, Json | undefined> = { ...sound }
  let dress = (text: string): string => text
  const faults: readonly (() => void)[] = [
    () => (body['scores'] = { A: 8, B: 4, C: 6 }),
    () => (body['scores'] = { 'Candidate A': score(8), 'Candidate B': score(2), 'Candidate C': score(1) }),
    () => (body['scores'] = labels.map((label) => ({ label, ...score(7) }))),
    () => (body['scores'] = { A: { correct: '8/10' }, B: { correct: 7.5 }, C: { correct: 2 } }),
    () => (body['scores'] = { A: score(8), C: score(3) }),
    () => (body['verdict'] = pick(['ADOPT', 'synthesize ', 'Insufficient', 'adopt A'])),
    () => (body['answer_type'] = pick(['Open', 'closed question', 'code ', 'Structured'])),
    () =>
      (body[pick(['consensus', 'contradictions', 'blind_spots', 'outline', 'unique_insights'])] = pick([
        'a text',
        null,
        {},
        [],
        ['a'],
        7,
      ])),
    () => delete body[pick(['consensus', 'contradictions', 'blind_spots', 'outline', 'best', 'injection_flags'])],
    () => (body['injection_flags'] = pick(['none', null, 'B', ['b'], {}])),
    () => (body['extra'] = { nested: ['{', '}', '"'] }),
    () => (dress = (text) => `\`\`\`json\n${text}\n\`\`\``),
    () => (dress = (text) => `Sure! {here} it is:\n\n${text}\n\nBest regards {me}`),
    () => (dress = (text) => text.replace(/\}$/, ',}')),
    () => (dress = (text) => `\uFEFF  ${text}\n`),
  ]
  const count = 1 + Math.floor(random() * 4)
  for (let fault = 0; fault < count; fault++) pick(faults)()
  return dress(JSON.stringify(body))
}
