import { setTimeout as delay } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { Service } from '../service.ts'

const perMinute = 5
const admissions = 14
const limitMs = 240_000

test(
  'clients that wait as long as the 429 says are not rejected again, and no 60 s contain more requests than the limit',
  { timeout: limitMs },
  async () => {
    const service = await Service.start({
      settings: {
        plans: {
          max: { name: 'Max', requests_per_minute: 1_000, requests_per_month: 1_000, premium: true },
          small: { name: 'Small', requests_per_minute: perMinute, requests_per_month: 1_000 },
        },
      },
    })
    try {
      const { account, key } = await service.addAccount('patient', 'small')
      service.key = key
      let waited = 0
      for (let admitted = 0; admitted < admissions; admitted++) {
        // Spread the requests, so that they leave the minute one by one.
        await delay(1_500)
        const response = await service.chat()
        await response.arrayBuffer()
        if (response.status === 200) continue
        expect(response.status).toBe(429)
        const seconds = Number(response.headers.get('retry-after'))
        expect([seconds >= 1, seconds <= 60]).toEqual([true, true])
        waited += 1
        await delay(seconds * 1_000)
        expect((await service.chat()).status, 'after the wait in the 429').toBe(200)
      }
      expect(waited).toBeGreaterThan(1)
      const times = (await service.store.listRequests({ limit: 100, accountId: account.id }))
        .map(({ admittedAtMs }) => admittedAtMs)
        .sort((a, b) => a - b)
      expect(times).toHaveLength(admissions)
      for (const [index, time] of times.entries()) {
        const sixth = times[index + perMinute]
        if (sixth !== undefined) expect(sixth - time).toBeGreaterThanOrEqual(59_998)
      }
    } finally {
      await service.stop()
    }
  },
)
