import { expect, test } from 'vitest'
import { casesOf } from '../long-run.ts'
import { hasPostgres } from '../postgres.ts'
import { sharedPostgres } from '../shared-postgres.ts'
import { BudgetDrills, expectKept, requestsPerDrill } from './budget-drills.ts'

const drills = casesOf({ sample: 2, all: 10 })

test.runIf(hasPostgres('budget drills'))(
  `of 1,000 requests at once, three nodes never spend more than a dollar, with kill -9 in between (${drills} times)`,
  { timeout: 180_000 },
  async () => {
    const server = await sharedPostgres({ durable: true })
    const running = await BudgetDrills.start(await server.createDatabase())
    try {
      let refused = 0
      let needless = 0
      for (let drill = 0; drill < drills; drill += 1) {
        const report = await running.run()
        console.log(JSON.stringify(report))
        expectKept(report)
        refused += report.refused
        needless += report.needless
      }
      expect(refused).toBeGreaterThan(0)
      expect(needless / (drills * requestsPerDrill)).toBeLessThan(0.01)
    } finally {
      await running.stop()
    }
  },
)
