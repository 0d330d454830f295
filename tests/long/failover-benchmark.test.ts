import { expect, test } from 'vitest'
import { runBenchmark, writeScorecard } from '../failover-benchmark/run.ts'

/** The published times of the benchmark and the default configuration; about five minutes. */
test('with default settings at least 11 of the 16 scenarios pass and none fails', async () => {
  const results = await runBenchmark({
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
  console.info(writeScorecard(results))
  expect(results.filter(({ verdict }) => verdict === 'fail')).toEqual([])
  expect(results.filter(({ verdict }) => verdict === 'pass').length).toBeGreaterThanOrEqual(11)
})
