import { createHmac } from 'node:crypto'
import { expect, test } from 'vitest'
import { BudgetWebhook, type PassedThreshold } from '../../src/accounts/budget-webhook.ts'
import { UpstreamError } from '../../src/domain/upstream.ts'
import { Secret } from '../../src/runtime/secret.ts'
import { SimulatedTime } from '../simulation/simulated-time.ts'

const key = 'made-up-secret-of-the-webhook'
const passed: PassedThreshold = {
  threshold: 80,
  windowMs: 1_799_971_200_000,
  state: {
    budget: {
      id: 'bud_1',
      accountId: 'acc_1',
      scope: 'account',
      subject: '',
      unit: 'usd',
      window: 'month',
      rolling: false,
      limit: 20_000_000_000,
      setBy: 'operator',
      createdAtMs: 1,
    },
    spent: 16_400_000_000,
    held: 0,
    left: 3_600_000_000,
    resetsAtMs: Date.UTC(2027, 1, 1),
  },
}

/** A webhook whose receiver answers attempt `n` as told. */
function open(answer: (attempt: number) => Promise<void>) {
  const clock = new SimulatedTime()
  const startMs = clock.nowMs()
  const posts: { readonly atMs: number; readonly headers: readonly string[]; readonly body: string }[] = []
  const reasons: string[] = []
  const webhook = new BudgetWebhook({
    secret: new Secret(key),
    budgetsUrl: 'https://app.example.com/account/budgets',
    clock,
    log: (event) => void (event.event === 'budget_webhook_failing' && reasons.push(event.reason)),
    post(headers, body) {
      posts.push({ atMs: clock.nowMs() - startMs, headers, body })
      return answer(posts.length)
    },
  })
  return { clock, webhook, posts, reasons }
}

test('an alert is sent once, with the budget and a signature of the time and the body', async () => {
  const { clock, webhook, posts, reasons } = open(() => Promise.resolve())
  webhook.send(passed)
  await clock.drain()
  expect(posts).toHaveLength(1)
  const { headers, body } = posts[0]!
  expect(JSON.parse(body)).toMatchObject({
    object: 'event',
    id: 'bud_1-1799971200000-80',
    type: 'budget.alert',
    created_at: '2027-01-15T08:00:00.000Z',
    threshold_percent: 80,
    budget: { id: 'bud_1', account: 'acc_1', unit: 'usd', limit: 20, spent: 16.4, left: 3.6 },
    url: 'https://app.example.com/account/budgets',
  })
  const mac = createHmac('sha256', key).update(`1800000000.${body}`).digest('hex')
  expect(headers).toEqual([`x-svc-router-signature: t=1800000000,v1=${mac}`])
  expect(reasons).toEqual([])
})

test('a failed alert is tried again with longer waits, five times at most, each signed with its own time', async () => {
  const { clock, webhook, posts, reasons } = open((attempt) =>
    Promise.reject(attempt === 1 ? new UpstreamError('server_error', { status: 302 }) : new UpstreamError('timeout')),
  )
  webhook.send(passed)
  await clock.drain()
  expect(posts.map(({ atMs }) => atMs / 1000)).toEqual([0, 5, 35, 155, 755])
  expect(new Set(posts.map(({ body }) => body)).size).toBe(1)
  expect(posts.map(({ headers }) => /t=(\d+)/.exec(headers[0]!)?.[1])).toEqual(
    [0, 5, 35, 155, 755].map((seconds) => String(1_800_000_000 + seconds)),
  )
  expect(reasons).toEqual(['302', 'timeout', 'timeout', 'timeout', 'timeout'])
})

test('an alert that is received after a failure is not sent again', async () => {
  const { clock, webhook, posts } = open((attempt) =>
    attempt === 1 ? Promise.reject(new UpstreamError('unreachable')) : Promise.resolve(),
  )
  webhook.send(passed)
  await clock.drain()
  expect(posts).toHaveLength(2)
})

test('at most 100 alerts are open at once; others are logged, and there is room again when those end', async () => {
  let answer = (): void => {}
  const answered = new Promise<void>((resolve) => (answer = resolve))
  const { clock, webhook, posts, reasons } = open(() => answered)
  for (let count = 0; count < 101; count += 1) webhook.send(passed)
  expect([posts.length, reasons]).toEqual([100, ['too many alerts at once']])
  answer()
  await clock.drain()
  webhook.send(passed)
  expect(posts).toHaveLength(101)
})

test('a service that stops waits for what is being sent, and gives up what waits for another attempt', async () => {
  let answer = (): void => {}
  const answered = new Promise<void>((resolve) => (answer = resolve))
  const { clock, webhook, posts } = open((attempt) =>
    attempt === 1 ? Promise.reject(new UpstreamError('unreachable')) : answered,
  )
  webhook.send(passed)
  webhook.send(passed)
  await Promise.resolve()
  let isClosed = false
  const closed = webhook.close().then(() => (isClosed = true))
  await clock.drain()
  expect([posts.length, isClosed]).toEqual([2, false])
  answer()
  await closed
  expect(posts).toHaveLength(2)
})
