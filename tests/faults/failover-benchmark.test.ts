import { expect, test } from 'vitest'
import { runBenchmark, worseThanExpected, writeScorecard } from '../failover-benchmark/run.ts'

/** The provider's times and the backend's limits are a tenth of the published ones; tests/long has those. */
test.concurrent.for(['default', 'tuned'] as const)(
  'the sixteen scenarios of the public failover benchmark end at least as well as promised: %s',
  { timeout: 120_000 },
  async (configuration) => {
    const results = await runBenchmark(configuration, {
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
    console.info(writeScorecard(configuration, results))
    expect(results).toHaveLength(16)
    expect(worseThanExpected(results)).toEqual([])
  },
)
