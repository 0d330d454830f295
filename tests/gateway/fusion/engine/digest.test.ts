import { expect, test } from 'vitest'
import { digestOf } from '../../../../src/gateway/fusion/engine/digest.ts'
import { buildFence } from '../../../../src/gateway/fusion/engine/fence.ts'
import type { Analysis } from '../../../../src/gateway/fusion/engine/judge/analysis.ts'
import { systemRandom } from '../../../../src/runtime/random.ts'
import { createSealer } from '../../../../src/runtime/sealer.ts'
import { Secret } from '../../../../src/runtime/secret.ts'

const fence = buildFence([], systemRandom())
const analysis: Analysis = {
  answerType: 'code',
  verdict: 'synthesize',
  scores: {},
  injectionFlags: ['B'],
  consensus: [{ claim: 'It is written in C.', support: ['A', 'B'] }],
  contradictions: [
    {
      topic: 'Which file',
      material: true,
      positions: [
        { labels: ['A'], claim: 'main.c' },
        { labels: ['B'], claim: 'util.c' },
      ],
      side: ['B'],
      check: '',
    },
    { topic: 'Which flag', material: true, positions: [], side: [], check: 'run it with -v' },
  ],
  partialCoverage: [],
  uniqueInsights: [
    { label: 'A', insight: 'The test is stale.', keep: true },
    { label: 'B', insight: 'Nonsense.', keep: false },
  ],
  blindSpots: ['Windows.'],
  outline: ['Read util.c\nfirst.', 'Then fix it.'],
}

test('a digest lists the plan, agreements, open points, points to keep, and gaps, without labels, each line fenced', () => {
  const lines = digestOf(analysis, fence)!.split('\n')
  const mark = `${fence.start}notes⟧ `
  expect(lines.every((line) => line.startsWith(mark))).toBe(true)
  expect(lines.map((line) => line.slice(mark.length))).toEqual([
    'Plan: Read util.c first.',
    'Plan: Then fix it.',
    'Settled: Which file: util.c',
    'Open: Which flag; check: run it with -v',
    'Worth keeping: The test is stale.',
    'Missed so far: Windows.',
    'Agreed, as weak evidence: It is written in C.',
  ])
})

test('a digest is empty if nothing was found', () => {
  const empty = { outline: [], contradictions: [], uniqueInsights: [], blindSpots: [], consensus: [] }
  expect(digestOf({ ...analysis, ...empty }, fence)).toBeUndefined()
})

test.each(['word ', '漢字', '🙂', '"\\'])(
  'a digest has about 600 tokens, and never more than 6 kB when encrypted: %s',
  (piece) => {
    const long = piece.repeat(400).slice(0, 400)
    const many = Array.from({ length: 8 }, () => long)
    const notes = digestOf({ ...analysis, outline: many, blindSpots: many }, fence)!
    expect(notes.length).toBeGreaterThan(800)
    expect(notes.length).toBeLessThan(2_800)
    const sealer = createSealer({
      current: { id: 'a'.repeat(32), key: new Secret(new Uint8Array(32)) },
      random: systemRandom(),
    })
    const memo = { writer: 'w'.repeat(64), notes, mark: fence.start, madeAtMs: Date.now() }
    expect(sealer.seal(['acc_1', 'fusion-memo'], JSON.stringify(memo)).length).toBeLessThanOrEqual(6_100)
  },
)
