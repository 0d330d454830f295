import { expect, test } from 'vitest'
import { hasPostgres, startPostgres } from '../postgres.ts'
import { BudgetDrills, limit, requestsPerDrill } from '../processes/budget-drills.ts'

const drills = 200
const limitMs = 3 * 3_600_000

test.runIf(hasPostgres('200 budget drills'))(
  'of 1,000 requests at once, three nodes never spend more than a dollar, with kill -9 in between, 200 times',
  { timeout: limitMs },
  async () => {
    const server = await startPostgres({ durable: true })
    const running = await BudgetDrills.start(await server.createDatabase())
    try {
      let needless = 0
      for (let drill = 0; drill < drills; drill += 1) {
        const report = await running.run()
        console.log(JSON.stringify(report))
        expect(report.billed).toBeLessThanOrEqual(report.spent)
        expect(report.spent).toBeLessThanOrEqual(limit)
        expect(report).toMatchObject({ held: 0, isBalanced: true })
        needless += report.needless
      }
      expect(needless / (drills * requestsPerDrill)).toBeLessThan(0.01)
    } finally {
      await running.stop()
      await server.stop()
    }
  },
)
