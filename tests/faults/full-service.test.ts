import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { Service } from '../service.ts'

const streams = 20
/** What a single account can hold of them (contract 29.2). */
const mostOfAccount = 16
/** Requests of the hostile account that hang, besides those that it holds. */
const hanging = 100

let service: Service
let neighbor: string
const open: Response[] = []

beforeAll(async () => {
  service = await Service.start({ settings: { limits: { streams } } })
  neighbor = (await service.addAccount('neighbor', 'max')).key
})
afterAll(() => service.stop())
afterEach(async () => {
  await Promise.all(open.splice(0).map(({ body }) => body!.cancel()))
})

/** Opens streams of the first account that never end. */
async function hang(count: number): Promise<number[]> {
  for (const provider of service.providers) provider.script([{ do: 'stall', afterEvents: 2, repeat: true }])
  const opened = await Promise.all(Array.from({ length: count }, () => service.chat({ stream: true })))
  for (const provider of service.providers) provider.script([])
  open.push(...opened)
  return opened.map(({ status }) => status)
}

test(`${hanging} hanging requests of one account beyond its share are not noticed by another account`, async () => {
  expect(await hang(mostOfAccount)).toEqual(Array.from({ length: mostOfAccount }, () => 200))
  const rest = Promise.all(Array.from({ length: hanging }, () => service.chat({ stream: true })))
  const answers: { status: number; ms: number }[] = []
  for (const endMs = performance.now() + 1_200; performance.now() < endMs || answers.length < 10;) {
    const beganMs = performance.now()
    const answer = await service.chat({}, { authorization: `Bearer ${neighbor}` })
    await answer.text()
    answers.push({ status: answer.status, ms: performance.now() - beganMs })
    // A fast machine would reach the neighbor's limit of 600 requests per minute.
    await sleep(3)
  }
  expect((await rest).map(({ status }) => status)).toEqual(Array.from({ length: hanging }, () => 503))
  expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200))
  expect(Math.max(...answers.map(({ ms }) => ms))).toBeLessThan(900)
})

test('a request of an account that has its share waits for one of its own to end', async () => {
  await hang(mostOfAccount)
  const waiting = service.chat({})
  await sleep(200)
  await open.pop()!.body!.cancel()
  expect((await waiting).status).toBe(200)
})
