import { expect, test } from 'vitest'
import { runCrashCycles } from '../faults/crash-cycles.ts'

const cycles = 200
const limitMs = 1_800_000

test(
  'two hundred times kill -9 under load: nothing delivered is uncounted, nothing undelivered is counted',
  { timeout: limitMs },
  async () => {
    const report = await runCrashCycles(cycles)
    console.log(JSON.stringify(report))
    expect(report.deliveredUncounted).toEqual([])
    // Two adjacent system calls remain, the mark and its write: only who was killed right there may be counted
    // undelivered.
    expect(report.undeliveredCounted).toEqual(report.diedAtTheMark)
    expect(report.diedAtTheMark.length).toBeLessThanOrEqual(cycles / 50)
    expect(report.unequalTotals).toBe(0)
    expect(report.delivered).toBeGreaterThan(cycles * 10)
    expect(report.cut).toBeGreaterThan(cycles)
  },
)
