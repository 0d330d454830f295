import { describe, expect, test } from 'vitest'
import { linearRows } from './linear-rows.ts'

/**
 * Reads one large input and four inputs of a quarter of its size. Both have the same number of bytes, and other load on
 * the machine affects both equally. A linear reader takes the same time for both, a quadratic one four times as long
 * for the large input.
 */
const factor = 4
const largestRatio = 2.8
/** A reader that takes less than this for the large input is fast enough at any ratio. */
const negligibleMs = 3
const maxRounds = 20
/** The first rounds already reveal a quadratic reader. */
const maxMs = 3_000

/** The CPU time of this process in milliseconds, because other processes use the processors, too. */
function cpuMs(): number {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1_000
}

/** The total CPU time of these runs in milliseconds. */
async function timeOf(runs: readonly (() => void | Promise<void>)[]): Promise<number> {
  const startedMs = cpuMs()
  for (const run of runs) {
    const ended = run()
    if (ended !== undefined) await ended
  }
  return cpuMs() - startedMs
}

describe('the time is linear in the size of the worst-case input', () => {
  test.each(linearRows)('$what', async ({ size, prepare }) => {
    let smallMs = Number.POSITIVE_INFINITY
    let largeMs = Number.POSITIVE_INFINITY
    const startedMs = cpuMs()
    for (let round = 0; round < maxRounds; round += 1) {
      if (round > 1 && cpuMs() - startedMs > maxMs) break
      const small = await timeOf(Array.from({ length: factor }, () => prepare(size)))
      const large = await timeOf([prepare(size * factor)])
      // The first round includes compilation.
      if (round === 0) continue
      smallMs = Math.min(smallMs, small)
      largeMs = Math.min(largeMs, large)
      if (largeMs < negligibleMs || largeMs / smallMs < largestRatio) return
    }
    expect(largeMs / smallMs, `${smallMs.toFixed(1)} ms, then ${largeMs.toFixed(1)} ms`).toBeLessThan(largestRatio)
  })
})
