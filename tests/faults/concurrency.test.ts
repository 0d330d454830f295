import { afterEach, describe, expect, test, vi } from 'vitest'
import { createKey } from '../../src/accounts/keys.ts'
import type { ScriptStep } from '../../src/simulation/providers/script.ts'
import { casesOf } from '../long-run.ts'
import { Service } from '../service.ts'

const requests = casesOf({ sample: 400, all: 1_000 })
const half = 0.5 * requests
const few = 0.3 * requests
const many = 0.7 * requests
const limitMs = 60_000

let service: Service
afterEach(() => service.stop())

interface Answered {
  readonly status: number
  readonly headers: Headers
  readonly text: string
}

async function startWith(perMinute: number, perMonth: number): Promise<void> {
  service = await Service.start({
    settings: {
      plans: {
        max: { name: 'Max', requests_per_minute: 1_000_000, requests_per_month: 1_000_000, premium: true },
        tight: { name: 'Tight', requests_per_minute: perMinute, requests_per_month: perMonth },
      },
    },
  })
  const { account, key } = await service.addAccount('crowd', 'tight')
  service.account = account
  service.key = key
}

/** Sends all at once: every second one streamed, alternating between the two endpoints and the keys. */
function askAll(keys: readonly string[]): Promise<Answered[]> {
  return Promise.all(
    Array.from({ length: requests }, async (_, number) => {
      const stream = number % 2 === 0
      const authorization = `Bearer ${keys[number % keys.length]!}`
      const response = await (number % 4 < 2
        ? service.chat({ stream }, { authorization })
        : service.responses({ stream }, { authorization }))
      return { status: response.status, headers: response.headers, text: await response.text() }
    }),
  )
}

function countOf(answers: readonly Answered[], status: number): number {
  return answers.filter((answer) => answer.status === status).length
}

const number = ({ headers }: Answered, name: string): number => Number(headers.get(name))

/** Asserts that the headers are consistent with one another and with the stored records (contract 5.5, 5.6, 5.13). */
async function expectSignalsToHold(
  answers: readonly Answered[],
  perMinute: number,
  perMonth: number,
  admitted: number,
): Promise<void> {
  for (const answer of answers) {
    expect(number(answer, 'x-ratelimit-limit')).toBe(perMinute)
    expect(number(answer, 'x-quota-limit')).toBe(perMonth)
    expect(number(answer, 'x-quota-used') + number(answer, 'x-quota-remaining')).toBe(perMonth)
    expect(number(answer, 'x-ratelimit-remaining')).toBeGreaterThanOrEqual(0)
    expect(number(answer, 'x-quota-used')).toBeLessThanOrEqual(admitted)
    if (answer.status !== 200) continue
    expect(number(answer, 'x-quota-used')).toBeGreaterThanOrEqual(1)
    expect(number(answer, 'x-ratelimit-remaining')).toBeLessThan(perMinute)
    expect(answer.text).toContain('simulated')
  }
  const period = new Date().toISOString().slice(0, 7)
  await expect.poll(() => service.store.usedUnits(service.account.id, period), { timeout: 5_000 }).toBe(admitted)
  const refused = await service.post('/chat/completions', { model: 'no-such-profile', messages: [] })
  expect(Number(refused.headers.get('x-quota-used'))).toBe(admitted)
  expect(Number(refused.headers.get('x-ratelimit-remaining'))).toBe(perMinute - admitted)
}

const upstreamRequests = (): number => service.providers.reduce((sum, provider) => sum + provider.counts().requests, 0)

describe(`${requests} simultaneous requests`, () => {
  test(
    `with ${half} a minute and ${many} a month for three keys of one account, exactly ${half} are answered and ${half} get a 429`,
    { timeout: limitMs },
    async () => {
      await startWith(half, many)
      const others = await Promise.all(
        ['second', 'third'].map((name) => createKey(service.accountsDeps, service.account.id, name)),
      )
      const answers = await askAll([service.key, ...others.map(({ key }) => key.reveal())])
      expect([countOf(answers, 200), countOf(answers, 429)]).toEqual([half, half])
      await expectSignalsToHold(answers, half, many, half)
      expect(upstreamRequests()).toBe(half)
      for (const answer of answers.filter(({ status }) => status === 429)) {
        expect(number(answer, 'retry-after')).toBeGreaterThanOrEqual(1)
        expect(number(answer, 'retry-after')).toBeLessThanOrEqual(60)
      }
    },
  )

  test(
    `with ${half} a minute and ${few} a month, exactly ${few} are answered and ${many} learn that the quota is used up`,
    { timeout: limitMs },
    async () => {
      await startWith(half, few)
      const answers = await askAll([service.key])
      expect([countOf(answers, 200), countOf(answers, 402)]).toEqual([few, many])
      await expectSignalsToHold(answers, half, few, few)
      expect(answers.filter(({ status, headers }) => status === 402 && headers.has('retry-after'))).toEqual([])
    },
  )

  test(
    'while the first backend fails, a retried request is charged once and rejected ones cost nothing',
    { timeout: limitMs },
    async () => {
      await startWith(half, many)
      const failure: ScriptStep = { do: 'status', status: 503, repeat: true }
      service.providers[0]!.script([failure])
      const answers = await askAll([service.key])
      const [answered, overloaded, refused] = [200, 503, 429].map((status) => countOf(answers, status))
      // Requests beyond the retry budget get a 503: they count in the minute, but are not charged (contract 6.2, 7.8).
      expect(refused).toBe(half)
      expect(answered! + overloaded!).toBe(half)
      expect(answered).toBeGreaterThan(0)
      expect(answers.some((answer) => answer.headers.get('x-svc-router-retry-count') === '1')).toBe(true)
      const period = new Date().toISOString().slice(0, 7)
      await expect.poll(() => service.store.usedUnits(service.account.id, period), { timeout: 5_000 }).toBe(answered)
      const after = await service.post('/chat/completions', { model: 'no-such-profile', messages: [] })
      expect(Number(after.headers.get('x-quota-used'))).toBe(answered)
      expect(Number(after.headers.get('x-ratelimit-remaining'))).toBe(0)
      const records = await vi.waitFor(
        async () => {
          const listed = await service.store.listRequests({ limit: requests, accountId: service.account.id })
          expect(listed.filter(({ state }) => state === 'done')).toHaveLength(half)
          return listed
        },
        { timeout: 5_000 },
      )
      expect(records.filter(({ charged }) => charged > 0)).toHaveLength(answered!)
      expect(
        records.every(({ charged, attempts }) => charged === Number(attempts.at(-1)?.outcome === 'answered')),
      ).toBe(true)
    },
  )
})
