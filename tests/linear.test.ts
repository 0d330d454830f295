import { describe, expect, test } from 'vitest'
import { linearRows } from './linear-rows.ts'

/**
 * One input is read that is four times as large, and four small ones: both have as many bytes, and are disturbed as
 * much by other work on the machine. A linear reader takes as long for both, a quadratic one four times as long for the
 * large.
 */
const factor = 4
const largestRatio = 2.8
/** What takes less than this for the large input is fast enough, whatever the ratio. */
const negligibleMs = 3
const maxRounds = 20
/** A quadratic reader shows in the first rounds. */
const maxMs = 3_000

/** Milliseconds that all these runs take. */
async function timeOf(runs: readonly (() => void | Promise<void>)[]): Promise<number> {
  const startedMs = performance.now()
  for (const run of runs) {
    const ended = run()
    if (ended !== undefined) await ended
  }
  return performance.now() - startedMs
}

describe('takes time linear in its worst input', () => {
  test.each(linearRows)('$what', async ({ size, prepare }) => {
    let smallMs = Number.POSITIVE_INFINITY
    let largeMs = Number.POSITIVE_INFINITY
    const startedMs = performance.now()
    for (let round = 0; round < maxRounds; round += 1) {
      if (round > 1 && performance.now() - startedMs > maxMs) break
      const small = await timeOf(Array.from({ length: factor }, () => prepare(size)))
      const large = await timeOf([prepare(size * factor)])
      // In the first round code is compiled.
      if (round === 0) continue
      smallMs = Math.min(smallMs, small)
      largeMs = Math.min(largeMs, large)
      if (largeMs < negligibleMs || largeMs / smallMs < largestRatio) return
    }
    expect(largeMs / smallMs, `${smallMs.toFixed(1)} ms, then ${largeMs.toFixed(1)} ms`).toBeLessThan(largestRatio)
  })
})
