import { existsSync } from 'node:fs'
import { expect, test } from 'vitest'
import { runCrashCycles } from '../faults/crash-cycles.ts'

const limitMs = 20 * 60_000

test.runIf(existsSync('/proc/self/task')).each([
  ['any of two workers', 'worker', 100],
  ['their owner', 'service', 50],
] as const)(
  'after kill -9 of %s on SQLite under load, every delivered answer is counted and no undelivered one is',
  { timeout: limitMs },
  async (_, victim, cycles) => {
    const report = await runCrashCycles(cycles, { workers: 2, victim })
    console.log(JSON.stringify(report))
    expect(report.deliveredUncounted).toEqual([])
    // A kill between a mark and its first byte, two adjacent system calls.
    expect(report.undeliveredCounted).toEqual(report.diedAtTheMark)
    expect(report.diedAtTheMark.length).toBeLessThanOrEqual(cycles / 25)
    expect(report.unequalTotals).toBe(0)
    expect(report.delivered).toBeGreaterThan(cycles * 10)
    expect(report.cut).toBeGreaterThan(cycles / 4)
  },
)
