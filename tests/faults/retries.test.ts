import { afterAll, beforeAll, expect, test } from 'vitest'
import { Service } from '../service.ts'

let service: Service
beforeAll(async () => {
  service = await Service.start()
})
afterAll(() => service.stop())

const callsSoFar = (): number => service.providers.reduce((sum, provider) => sum + provider.captured().length, 0)

/** How many calls a request causes. */
async function callsOf(headers: Record<string, string>): Promise<number> {
  const before = callsSoFar()
  await (await service.chat({}, headers)).text()
  return callsSoFar() - before
}

test('while all backends fail, a retry of the client causes one call, and first requests cause more only for a while', async () => {
  for (const provider of service.providers) provider.script([{ do: 'status', status: 503, repeat: true }])
  for (let request = 0; request < 20; request++) await callsOf({})
  const retries: number[] = []
  for (let request = 0; request < 20; request++) retries.push(await callsOf({ 'x-stainless-retry-count': '1' }))
  expect(Math.max(...retries)).toBe(1)
  let calls = 0
  for (let request = 0; request < 50; request++) calls += await callsOf({ 'x-stainless-retry-count': '0' })
  expect(calls).toBeLessThanOrEqual(60)
})
