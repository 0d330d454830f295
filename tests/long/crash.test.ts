import { expect, test } from 'vitest'
import { type CrashReport, runCrashCycles } from '../processes/crash-cycles.ts'

const cycles = 1_000
/** Services that are killed at the same time, each with data of its own: a start uses only one processor. */
const services = 2
/** After as many kills, a line says how far it is. */
const reportedAfter = 50
const limitMs = 3_600_000

test(
  'after a thousand kills with kill -9 under load, every delivered answer is counted and no undelivered one is',
  { timeout: limitMs },
  async () => {
    const onCycle = progressOf(cycles)
    const reports = await Promise.all(
      Array.from({ length: services }, () => runCrashCycles(cycles / services, { onCycle })),
    )
    console.log(JSON.stringify(reports))
    const all = <Item>(of: (report: CrashReport) => readonly Item[]): readonly Item[] => reports.flatMap(of)
    const sum = (of: (report: CrashReport) => number): number => reports.reduce((total, each) => total + of(each), 0)
    expect(sum((report) => report.cycles)).toBe(cycles)
    expect(all((report) => report.deliveredUncounted)).toEqual([])
    // Only a request that was killed between its mark and its first byte, two adjacent system calls, may be counted
    // undelivered.
    expect(all((report) => report.undeliveredCounted)).toEqual(all((report) => report.diedAtTheMark))
    expect(all((report) => report.diedAtTheMark).length).toBeLessThanOrEqual(cycles / 50)
    expect(sum((report) => report.unequalTotals)).toBe(0)
    expect(sum((report) => report.delivered)).toBeGreaterThan(cycles * 10)
    expect(sum((report) => report.cut)).toBeGreaterThan(cycles)
  },
)

function progressOf(total: number): () => void {
  const startedMs = performance.now()
  let done = 0
  return () => {
    done += 1
    if (done % reportedAfter > 0) return
    console.log(`${done} of ${total} kills after ${Math.round((performance.now() - startedMs) / 1_000)} s`)
  }
}
