import { expect, test } from 'vitest'
import { runBenchmark, worseThanExpected, writeScorecard } from '../failover-benchmark/run.ts'

/** The published times of the benchmark; about five minutes. */
test.concurrent.for(['default', 'tuned'] as const)(
  'no scenario fails, and each ends at least as well as promised: %s',
  async (configuration) => {
    const results = await runBenchmark(configuration, {
      times: {
        retryAfterMs: 2_000,
        firstTokenMs: 20_000,
        stallMs: 30_000,
        silentMs: 120_000,
        downMs: 60_000,
        betweenTokensMs: 15,
      },
      sequence: { count: 20, everyMs: 4_000 },
    })
    console.info(writeScorecard(configuration, results))
    expect(results.filter(({ verdict }) => verdict === 'fail')).toEqual([])
    expect(worseThanExpected(results)).toEqual([])
  },
)
