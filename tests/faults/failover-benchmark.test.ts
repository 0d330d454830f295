import { expect, test } from 'vitest'
import { runBenchmark, writeScorecard } from '../failover-benchmark/run.ts'
import type { ScenarioResult } from '../failover-benchmark/run.ts'

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
  const verdicts = (of: (result: ScenarioResult) => string): object =>
    Object.fromEntries(results.map((result) => [result.scenario.id, of(result)]))
  expect(verdicts(({ verdict }) => verdict)).toEqual(verdicts(({ scenario }) => scenario.expected))
}, 120_000)
