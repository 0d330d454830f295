import { expect, test } from 'vitest'
import { connectPostgres } from '../../src/storage/postgres/open-postgres.ts'
import { hasPostgres, startPostgres } from '../postgres.ts'
import { runCrashCycles } from '../processes/crash-cycles.ts'
import { recordsInPostgres } from '../processes/records-in-postgres.ts'

const cycles = 100
const limitMs = 20 * 60_000

test.runIf(hasPostgres('100 crashes of a node'))(
  'after each of 100 crashes of a node under load, every delivered answer is counted and no undelivered one is',
  { timeout: limitMs },
  async () => {
    const server = await startPostgres({ durable: true })
    const url = await server.createDatabase()
    const db = connectPostgres(url, { maxConnections: 1 })
    try {
      const report = await runCrashCycles(cycles, { place: recordsInPostgres(db, { DATABASE_URL: url }) })
      console.log(JSON.stringify(report))
      expect(report.deliveredUncounted).toEqual([])
      // A kill between a mark and its first byte, two adjacent system calls.
      expect(report.undeliveredCounted).toEqual(report.diedAtTheMark)
      expect(report.unequalTotals).toBe(0)
      expect(report.delivered).toBeGreaterThan(cycles * 10)
    } finally {
      await db.destroy()
      await server.stop()
    }
  },
)
