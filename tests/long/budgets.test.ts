import { expect, test } from 'vitest'
import { hasPostgres, startPostgres } from '../postgres.ts'
import { BudgetDrills, expectKept, requestsPerDrill } from '../processes/budget-drills.ts'

/** `SVC_ROUTER_DRILLS=20 npm run test:long -- tests/long/budgets.test.ts` runs fewer. */
const drills = Number(process.env['SVC_ROUTER_DRILLS'] ?? 200)
const limitMs = 3 * 3_600_000

test.runIf(hasPostgres(`${drills} budget drills`))(
  `of 1,000 requests at once, three nodes never spend more than a dollar, with kill -9 in between, ${drills} times`,
  { timeout: limitMs },
  async () => {
    const server = await startPostgres({ durable: true })
    const running = await BudgetDrills.start(await server.createDatabase())
    const sums = { answered: 0, refused: 0, needless: 0, running: 0, cut: 0 }
    try {
      for (let drill = 1; drill <= drills; drill += 1) {
        const beganMs = performance.now()
        const report = await running.run()
        const seconds = Math.round((performance.now() - beganMs) / 1000)
        console.log(`drill ${drill} of ${drills}, ${seconds} s: ${JSON.stringify(report)}`)
        expectKept(report)
        for (const name of Object.keys(sums) as (keyof typeof sums)[]) sums[name] += report[name]
      }
      console.log(`${drills} drills kept their budgets: ${JSON.stringify(sums)}`)
      expect(sums.refused).toBeGreaterThan(0)
      expect(sums.needless / (drills * requestsPerDrill)).toBeLessThan(0.01)
    } finally {
      await running.stop()
      await server.stop()
    }
  },
)
