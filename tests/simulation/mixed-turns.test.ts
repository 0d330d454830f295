import { afterAll, beforeAll, describe, test } from 'vitest'
import { casesOf, isLongRun } from '../long-run.ts'
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

const everyThreeMoves = moves.flatMap((first) =>
  moves.flatMap((second) => moves.map((third) => [first, second, third] as const)),
)
/**
 * `npm test` takes a quarter of the conversations in each case: with each `mixed` and `max_runs`, every conversation
 * runs for one of the four kinds of requests.
 */
const stride = isLongRun ? 1 : 4

describe.each(everyCase.map((given, index) => ({ ...given, offset: index + Math.floor(index / 4) })))(
  '$path, streamed: $stream, mixed: $mixed, max_runs: $maxRuns',
  ({ offset, ...given }) => {
    test('every conversation of three turns satisfies all invariants', async () => {
      const conversations = everyThreeMoves.filter((_, at) => (at + Math.floor(at / stride) + offset) % stride === 0)
      for (const three of conversations) await expectSound(service, { ...given, moves: three })
    })
  },
)

test('longer random conversations satisfy all invariants', () =>
  expectRandomSound(service, casesOf({ sample: 60, all: 150 }), 4))
