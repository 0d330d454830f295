import { expect, test } from 'vitest'
import { runBenchmark, writeScorecard } from '../failover-benchmark/run.ts'
import type { ScenarioResult } from '../failover-benchmark/run.ts'

const ranks = { fail: 0, safe: 1, partial: 2, pass: 3 } as const

function isWorse({ scenario, verdict }: ScenarioResult): boolean {
  return ranks[verdict] < ranks[scenario.expected]
}

/** The provider's times and the backend's limits are a tenth of the published ones; tests/long has those. */
test('the sixteen scenarios of the public failover benchmark end at least as well as promised', async () => {
  const results = await runBenchmark({
    times: {
      retryAfterMs: 2_000,
      firstTokenMs: 2_000,
      stallMs: 3_000,
      silentMs: 9_000,
      downMs: 6_000,
      betweenTokensMs: 2,
    },
    sequence: { count: 12, everyMs: 1_200 },
    timeouts: { headers: '1s', first_content: '3s', idle: '1s' },
  })
  console.info(writeScorecard(results))
  expect(results).toHaveLength(16)
  expect(results.filter(isWorse).map(({ scenario, verdict }) => `${scenario.id} ${verdict}`)).toEqual([])
}, 120_000)
