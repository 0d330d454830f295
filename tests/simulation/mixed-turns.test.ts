import { afterAll, beforeAll, describe, test } from 'vitest'
import type { Service } from '../service.ts'
import { expectRandomSound, expectSound, moves, startMixed } from './mixed-turns.ts'

let service: Service
beforeAll(async () => {
  service = await startMixed()
})
afterAll(() => service.stop())

const everyCase = (['/chat/completions', '/responses'] as const).flatMap((path) =>
  [true, false].flatMap((stream) =>
    (['defer', 'drop'] as const).flatMap((mixed) => [1, 2].map((maxRuns) => ({ path, stream, mixed, maxRuns }))),
  ),
)

describe.each(everyCase)('$path, streamed: $stream, mixed: $mixed, max_runs: $maxRuns', (given) => {
  test('every way of three turns is sound', async () => {
    for (const first of moves)
      for (const second of moves)
        for (const third of moves) await expectSound(service, { ...given, moves: [first, second, third] })
  })
})

test('so are longer ones, drawn by lot', () => expectRandomSound(service, 150, 4))
