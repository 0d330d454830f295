import { createHmac } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { maxWebhooksPerAccount } from '../../src/accounts/alerts/webhooks.ts'
import { SkippingClock } from '../../src/simulation/skipping-clock.ts'
import { serveHttp, serveTcp } from '../providers/support.ts'
import type { Service } from '../service.ts'
import { shareServices } from '../shared-service.ts'
import { signedInTo, type Visitor } from './browser-less.ts'

const start = shareServices()

interface Received {
  readonly signature: string
  readonly body: string
}

/** A program that answers each message with the next status. */
async function openReceiver(...statuses: readonly number[]) {
  const got: Received[] = []
  const { baseUrl } = await serveHttp((request, response) => {
    let body = ''
    request.on('data', (chunk: Buffer) => (body += chunk.toString()))
    request.on('end', () => {
      const status = statuses[got.length] ?? 204
      got.push({ signature: String(request.headers['x-svc-router-signature']), body })
      response.writeHead(status, { location: 'http://127.0.0.1:9/' }).end()
    })
  })
  return { url: `${baseUrl}/alerts?to=me`, got }
}

async function webhooksOf(service: Service) {
  return service.store.listWebhooks(service.account.id)
}

/** Adds a webhook on the page, and returns the secret that it shows. */
async function add(visitor: Visitor, url: string): Promise<string> {
  const response = await visitor.post('/account/webhooks', { url })
  const text = await response.text()
  expect(response.status, text).toBe(200)
  return /whs_\w{40}/.exec(text)![0]
}

/** The latest messages to webhooks of the account. */
const latest = (service: Service) => service.store.listWebhookDeliveries(service.account.id, undefined, 9)

const mac = (secret: string, time: string | number, body: string) =>
  createHmac('sha256', secret).update(`${time}.${body}`).digest('hex')

let count = 0
/** Stores an alert of a budget as `BudgetAlerts` does. */
async function alert(service: Service, webhookId: string, name: string): Promise<void> {
  const accountId = service.account.id
  const event = `${name}-${accountId}`
  const atMs = Date.now()
  const common = { eventId: event, accountId, channel: 'webhook', target: webhookId } as const
  const body = `{"id":"${name}","type":"budget.alert"}`
  const id = `adl_${String((count += 1)).padStart(5, '0')}`
  const passed = { budgetId: event, windowMs: 1, thresholds: [50], accountId, atMs }
  expect(await service.store.addBudgetAlert(passed, [{ ...common, id, body, atMs }])).toBe(true)
}

describe('the page of webhooks', () => {
  test('adds one, shows its secret once, and sends a signed test whose result it shows', async () => {
    const service = await start()
    const visitor = await signedInTo(service)
    const receiver = await openReceiver()
    const secret = await add(visitor, receiver.url)
    const [webhook] = await webhooksOf(service)
    expect(webhook!.sealedSecret).not.toContain(secret)
    expect(await (await visitor.get('/account/webhooks')).text()).not.toContain(secret)
    const tested = await visitor.post(`/account/webhooks/${webhook!.id}/test`)
    expect(tested.headers.get('location')).toBe('/account/webhooks?done=webhook-tested')
    const [{ signature, body }] = receiver.got as [Received]
    const [, time = '', given] = /^t=(\d+),v1=([0-9a-f]{64})$/.exec(signature)!
    expect(given).toBe(mac(secret, time, body))
    expect(Math.abs(Number(time) - Date.now() / 1000)).toBeLessThan(20)
    expect(JSON.parse(body)).toMatchObject({ object: 'event', type: 'webhook.test', account: service.account.id })
    const text = await (await visitor.get('/account/webhooks')).text()
    expect(text).toContain('webhook.test')
    expect(text).toContain('received')
    expect(await (await visitor.get('/account/budgets')).text()).toContain('we send an alert to your webhook')
  })

  test.each([
    [302, 'status 302'],
    [500, 'status 500'],
  ])('shows that a test failed with %i, which is not repeated, and follows no redirect', async (status, why) => {
    const service = await start()
    const visitor = await signedInTo(service)
    const receiver = await openReceiver(status)
    await add(visitor, receiver.url)
    const [webhook] = await webhooksOf(service)
    const tested = await visitor.post(`/account/webhooks/${webhook!.id}/test`)
    expect(tested.headers.get('location')).toContain('webhook-test-failed')
    expect(await (await visitor.get('/account/webhooks')).text()).toContain(why)
    const [delivery] = await service.store.listWebhookDeliveries(service.account.id, webhook!.id, 9)
    expect(delivery).toMatchObject({ state: 'failed', attempts: 1, result: String(status), dueAtMs: null })
  })

  test('signs with both secrets after a rotation', async () => {
    const service = await start()
    const visitor = await signedInTo(service)
    const receiver = await openReceiver()
    const old = await add(visitor, receiver.url)
    const [webhook] = await webhooksOf(service)
    const text = await (await visitor.post(`/account/webhooks/${webhook!.id}/rotate`)).text()
    const secret = /whs_\w{40}/.exec(text)![0]
    expect(secret).not.toBe(old)
    await visitor.post(`/account/webhooks/${webhook!.id}/test`)
    const [{ signature, body }] = receiver.got as [Received]
    const time = /^t=(\d+)/.exec(signature)![1]!
    expect(signature).toBe(`t=${time},v1=${mac(secret, time, body)},v1=${mac(old, time, body)}`)
    expect(await (await visitor.get('/account/webhooks')).text()).toContain(
      'messages are also signed with the previous secret until',
    )
  })

  test('removes one with its messages, and records every change in the audit log', async () => {
    const service = await start()
    const visitor = await signedInTo(service)
    await add(visitor, (await openReceiver()).url)
    const { id } = (await webhooksOf(service))[0]!
    await visitor.post(`/account/webhooks/${id}/rotate`)
    await visitor.post(`/account/webhooks/${id}/test`)
    await visitor.post(`/account/webhooks/${id}/remove`)
    expect(await webhooksOf(service)).toEqual([])
    expect(await service.store.listWebhookDeliveries(service.account.id, id, 9)).toEqual([])
    const entries = await service.store.listAudit({ limit: 3, accountId: service.account.id })
    expect(entries.map(({ event }) => event.type)).toEqual([
      'webhook.removed',
      'webhook.secret_rotated',
      'webhook.added',
    ])
    expect(JSON.stringify(entries)).not.toContain('127.0.0.1')
  })

  test.each(['', 'hooks.example.com', 'ftp://example.com/', 'https://a:b@example.com/', 'https://example.com/#x'])(
    'refuses the URL %j',
    async (url) => {
      const service = await start()
      const response = await (await signedInTo(service)).post('/account/webhooks', { url })
      expect(response.status).toBe(422)
      expect(await response.text()).toContain('Enter a URL that begins with https:// or http://')
      expect(await webhooksOf(service)).toEqual([])
    },
  )

  test('has a limit of webhooks, and of tests', async () => {
    const clock = new SkippingClock()
    const service = await start({ clock })
    // Tests are counted in spans of ten minutes.
    clock.startMinute(10)
    const visitor = await signedInTo(service)
    const { url } = await openReceiver()
    for (let count = 0; count < maxWebhooksPerAccount; count += 1) await add(visitor, url)
    expect((await visitor.post('/account/webhooks', { url })).status).toBe(422)
    expect(await webhooksOf(service)).toHaveLength(maxWebhooksPerAccount)
    const [webhook] = await webhooksOf(service)
    const tests = []
    for (let count = 0; count < 11; count += 1) tests.push(await visitor.post(`/account/webhooks/${webhook!.id}/test`))
    expect(tests.map(({ status }) => status)).toEqual([...Array.from({ length: 10 }, () => 303), 429])
  })

  test('the download of the account has webhooks and messages, and no secret', async () => {
    const service = await start()
    const visitor = await signedInTo(service)
    const receiver = await openReceiver()
    const secret = await add(visitor, receiver.url)
    const [webhook] = await webhooksOf(service)
    await visitor.post(`/account/webhooks/${webhook!.id}/test`)
    const text = await (await visitor.get('/account/data/download')).text()
    const data = JSON.parse(text) as Record<string, unknown>
    expect(data['webhooks']).toMatchObject([{ id: webhook!.id, url: receiver.url }])
    expect(data['webhookDeliveries']).toMatchObject([{ target: webhook!.id, state: 'delivered' }])
    for (const never of [secret, webhook!.sealedSecret, 'sealed']) expect(text).not.toContain(never)
  })
})

describe('alerts', () => {
  test('reach each webhook once, and a failed one again', async () => {
    const clock = new SkippingClock()
    const service = await start({ clock })
    const visitor = await signedInTo(service)
    const [first, second] = [await openReceiver(), await openReceiver(503)]
    await add(visitor, first.url)
    await add(visitor, second.url)
    const [one, two] = await webhooksOf(service)
    await alert(service, one!.id, 'e1')
    await alert(service, two!.id, 'e2')
    await clock.skip(5_001)
    await expect.poll(() => [first.got.length, second.got.length]).toEqual([1, 1])
    await expect.poll(async () => (await latest(service))[0]?.result).toBe('503')
    await clock.skip(11_001)
    await expect.poll(() => [first.got.length, second.got.length]).toEqual([1, 2])
    expect(new Set(second.got.map(({ body }) => body))).toEqual(new Set(['{"id":"e2","type":"budget.alert"}']))
    await expect.poll(async () => (await latest(service)).map(({ state }) => state)).toEqual(['delivered', 'delivered'])
    expect((await latest(service)).map(({ attempts }) => attempts)).toEqual([2, 1])
  })

  test('are not sent for a suspended account', async () => {
    const clock = new SkippingClock()
    const service = await start({ clock })
    const visitor = await signedInTo(service)
    const receiver = await openReceiver()
    await add(visitor, receiver.url)
    const [webhook] = await webhooksOf(service)
    await service.suspend(service.account.id)
    await alert(service, webhook!.id, 'e1')
    await clock.skip(5_001)
    await expect.poll(async () => (await latest(service)).map(({ result }) => result)).toEqual(['suspended'])
    expect(receiver.got).toEqual([])
  })

  test('of one account do not wait for the slow, endless, or silent receivers of another', async () => {
    const service = await start()
    const hostile = await signedInTo(service)
    const hostileId = service.account.id
    const silent = await serveTcp(() => {})
    const endless = await serveTcp((socket) => {
      socket.write('HTTP/1.1 200 OK\r\n\r\n')
      const timer = setInterval(() => socket.write('x'.repeat(1_000)), 5)
      socket.on('close', () => clearInterval(timer))
    })
    await add(hostile, silent.baseUrl)
    await add(hostile, endless.baseUrl)
    const [one, two] = await webhooksOf(service)
    for (let count = 0; count < 20; count += 1) await alert(service, count % 2 === 0 ? one!.id : two!.id, `h${count}`)
    await expect.poll(() => silent.sockets.size + endless.sockets.size, { timeout: 10_000 }).toBeGreaterThan(0)

    Object.assign(service, await service.addAccount('victim', 'max'))
    const victim = await signedInTo(service)
    const receiver = await openReceiver()
    await add(victim, receiver.url)
    const [webhook] = await webhooksOf(service)
    const beganMs = performance.now()
    const tested = await victim.post(`/account/webhooks/${webhook!.id}/test`)
    expect(tested.headers.get('location')).toContain('webhook-tested')
    expect(performance.now() - beganMs).toBeLessThan(3_000)
    // One connection at a time is all that the other account gets.
    expect(silent.sockets.size + endless.sockets.size).toBe(1)
    expect((await service.store.listWebhookDeliveries(hostileId, undefined, 99)).length).toBe(20)
  }, 30_000)

  test('an account has at most 100 messages waiting', async () => {
    const service = await start()
    const visitor = await signedInTo(service)
    await add(visitor, 'http://127.0.0.1:9/')
    const [webhook] = await webhooksOf(service)
    for (let count = 0; count < 105; count += 1) await alert(service, webhook!.id, `many${count}`)
    const deliveries = await service.store.listWebhookDeliveries(service.account.id, undefined, 200)
    expect(deliveries.length).toBe(100)
    const tested = await visitor.post(`/account/webhooks/${webhook!.id}/test`)
    expect(tested.headers.get('location')).toContain('webhook-busy')
  })
})
