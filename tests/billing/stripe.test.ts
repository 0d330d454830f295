import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { closeBilling, openCheckout, openPortal } from '../../src/accounts/billing/checkout.ts'
import { checkDue } from '../../src/accounts/billing/checks.ts'
import { describeBilling, describeChange } from '../../src/accounts/billing/overview.ts'
import { checkIdleEveryMs, refresh } from '../../src/accounts/billing/refresh.ts'
import { createWebhookHandler, maxWebhookBytes } from '../../src/accounts/billing/webhook.ts'
import { createStripeBilling, stripeApiVersion } from '../../src/billing/stripe-billing.ts'
import type { Account } from '../../src/domain/accounts.ts'
import { Secret } from '../../src/runtime/secret.ts'
import type { FakeCustomer } from '../../src/simulation/stripe/state.ts'
import { signWebhook } from '../../src/simulation/stripe/webhook-outbox.ts'
import { createStore, type Store } from '../../src/storage/store.ts'
import { enginesFor } from '../contract/engines.ts'
import { graceMs, StripeWorld } from './stripe-world.ts'

const dayMs = 86_400_000
const pages = { returnUrl: 'http://127.0.0.1/billing/return', cancelUrl: 'http://127.0.0.1/billing/upgrade' }
const secret = new Secret('whsec_made_up_for_tests')
const [, engine] = enginesFor('Stripe')[0]!

let store: Store
let world: StripeWorld
let account: Account

beforeAll(() => engine.start())
afterAll(() => engine.stop())
beforeEach(async () => {
  store = createStore(await (await engine.fresh())())
  world = await StripeWorld.start(store, 'hold')
  account = await world.addAccount('Ada')
})
afterEach(async () => {
  await world.stop()
  await store.close()
})

const post = (url: string): Promise<Response> => fetch(url, { method: 'POST', redirect: 'manual' })
const plan = (): Promise<string | undefined> => world.planOf(account.id)
const read = (): Promise<unknown> => refresh(world.accountsDeps, account.id)

async function subscribe(planId: string): Promise<FakeCustomer> {
  const { url } = await openCheckout(world.accountsDeps, account.id, planId, pages)
  const paid = await post(`${url}/pay`)
  expect([paid.status, paid.headers.get('location')]).toEqual([303, pages.returnUrl])
  const record = await store.billing.findBilling(account.id)
  return world.double.customer(record?.customerId ?? '')!
}

async function deliverAll(): Promise<number[]> {
  return Promise.all(world.server.outbox.take().map((event) => world.server.outbox.send(event)))
}

describe('checkout', () => {
  test('a paid checkout sets the plan by webhooks, and the page says that it is simulated', async () => {
    const { url, kind } = await openCheckout(world.accountsDeps, account.id, 'pro', pages)
    expect(kind).toBe('checkout')
    const shown = await (await fetch(url)).text()
    expect(shown).toContain('Pro for $20.00 a month')
    expect(shown).toContain('No money moves')
    expect(await plan()).toBe('free')
    await post(`${url}/pay`)
    expect(await plan()).toBe('free')
    expect(new Set(await deliverAll())).toEqual(new Set([200]))
    expect(await plan()).toBe('pro')
    expect(world.events).toContainEqual({ event: 'subscription_changed_plan', accountId: account.id, planId: 'pro' })
  })

  test('a declined card and an abandoned checkout change nothing', async () => {
    const { url } = await openCheckout(world.accountsDeps, account.id, 'max', pages)
    expect(await (await post(`${url}/pay-refused`)).text()).toContain('The card was declined')
    expect((await post(`${url}/cancel`)).headers.get('location')).toBe(pages.cancelUrl)
    await read()
    expect(await plan()).toBe('free')
  })

  test('a second checkout closes the first, and subscribers are sent to the portal, so that no one pays twice', async () => {
    const first = await openCheckout(world.accountsDeps, account.id, 'pro', pages)
    const second = await openCheckout(world.accountsDeps, account.id, 'max', pages)
    await post(`${first.url}/pay`)
    expect(world.double.state.subscriptions).toHaveLength(0)
    await post(`${second.url}/pay`)
    const third = await openCheckout(world.accountsDeps, account.id, 'pro', pages)
    expect(third.kind).toBe('portal')
    expect(world.double.state.subscriptions).toHaveLength(1)
    expect(world.double.state.customers).toHaveLength(1)
    expect(await plan()).toBe('max')
  })

  test('only plans for sale have a checkout, and only customers have a portal', async () => {
    const refusal = (code: string): object => expect.objectContaining({ name: 'AccountsError', code }) as object
    await expect(openCheckout(world.accountsDeps, account.id, 'free', pages)).rejects.toEqual(refusal('plan_not_sold'))
    await expect(openCheckout(world.accountsDeps, 'acc_9', 'pro', pages)).rejects.toEqual(refusal('account_unknown'))
    await expect(openPortal(world.accountsDeps, account.id, pages.returnUrl)).rejects.toEqual(refusal('not_subscribed'))
  })

  test('the next scheduled check compensates for a lost webhook', async () => {
    await subscribe('pro')
    world.server.outbox.take()
    expect(await checkDue(world.accountsDeps)).toBe(0)
    world.clock.movedMs += 20 * 60_000
    expect(await checkDue(world.accountsDeps)).toBe(1)
    expect(await plan()).toBe('pro')
  })
})

describe('subscriptions', () => {
  test('an upgrade takes effect immediately, a downgrade at the end of the period, and both are announced', async () => {
    const customer = await subscribe('pro')
    const { url } = await openPortal(world.accountsDeps, account.id, pages.returnUrl)
    const [subscription] = world.double.subscriptionsOf(customer.id)
    const up = await describeChange(world.accountsDeps, account.id, 'max', await world.accountsDeps.billing.offers())
    expect(up).toMatchObject({ direction: 'upgrade', takesEffectAtMs: null, price: { minorUnits: 10_000 } })
    await post(`${url}/change/${subscription!.id}/price_max`)
    await read()
    expect(await plan()).toBe('max')
    const periodEndsAtMs = Math.floor(subscription!.periodEndsAtMs / 1000) * 1000
    const down = await describeChange(world.accountsDeps, account.id, 'pro')
    expect(down).toMatchObject({ direction: 'downgrade', takesEffectAtMs: periodEndsAtMs })
    await post(`${url}/change/${subscription!.id}/price_pro`)
    await read()
    expect(await plan()).toBe('max')
    expect(await describeBilling(world.accountsDeps, account.id)).toMatchObject({
      isPaid: true,
      pendingChange: { planId: 'pro', atMs: periodEndsAtMs },
      nextInvoice: { atMs: periodEndsAtMs },
      paymentDue: null,
    })
    world.pass(32 * dayMs)
    await checkDue(world.accountsDeps)
    expect(await plan()).toBe('pro')
  })

  test('after a cancellation, the plan remains until the end of the paid period, and the cancellation can be undone', async () => {
    const customer = await subscribe('max')
    const [subscription] = world.double.subscriptionsOf(customer.id)
    const { url } = await openPortal(world.accountsDeps, account.id, pages.returnUrl)
    await post(`${url}/cancel/${subscription!.id}`)
    await read()
    const overview = await describeBilling(world.accountsDeps, account.id)
    expect(overview).toMatchObject({ nextInvoice: null, pendingChange: { planId: 'free' } })
    await post(`${url}/resume/${subscription!.id}`)
    await read()
    expect((await describeBilling(world.accountsDeps, account.id)).pendingChange).toBeNull()
    await post(`${url}/cancel/${subscription!.id}`)
    expect(await plan()).toBe('max')
    world.pass(32 * dayMs)
    await checkDue(world.accountsDeps)
    expect(await plan()).toBe('free')
  })

  test('an unpaid invoice has the configured grace period, even without events, and payment restores the plan', async () => {
    const customer = await subscribe('pro')
    await read()
    world.double.setCard(customer, true)
    const [subscription] = world.double.subscriptionsOf(customer.id)
    world.pass(subscription!.periodEndsAtMs - world.clock.nowMs() + 1000)
    await read()
    expect(await plan()).toBe('pro')
    const { paymentDue } = await describeBilling(world.accountsDeps, account.id)
    expect(paymentDue!.planEndsAtMs - paymentDue!.sinceMs).toBe(graceMs)
    world.pass(graceMs + 120_000)
    await checkDue(world.accountsDeps)
    expect(await plan()).toBe('free')
    world.double.setCard(customer, false)
    await deliverAll()
    expect(await plan()).toBe('pro')
  })

  test('the subscription of an abandoned account is canceled immediately, and its data is deleted a day later', async () => {
    await subscribe('pro')
    await read()
    await closeBilling(world.accountsDeps, account.id)
    expect(world.double.state.subscriptions.map(({ status }) => status)).toEqual(['canceled'])
    world.pass(26 * 3_600_000)
    await checkDue(world.accountsDeps)
    expect(await store.billing.findBilling(account.id)).toBeUndefined()
    await closeBilling(world.accountsDeps, account.id)
  })

  test('the next check cancels the subscription of a deleted account, even without an event', async () => {
    await subscribe('pro')
    await read()
    const gone = { ...world.accountsDeps, accounts: { findAccount: () => Promise.resolve(undefined) } }
    world.pass(checkIdleEveryMs + 60_000)
    await checkDue(gone)
    expect(world.double.state.subscriptions.map(({ status }) => status)).toEqual(['canceled'])
  })
})

describe('webhooks', () => {
  const answerOf = async (
    body: string | Buffer,
    header: string | undefined,
    accountsDeps = world.accountsDeps,
  ): Promise<{ status: number; outcome: string }> =>
    createWebhookHandler(accountsDeps)(Buffer.from(body), { get: () => header ?? null })

  async function aBody(): Promise<Buffer> {
    await subscribe('pro')
    return world.server.outbox.take()[0]!.body
  }

  test('a webhook that is unsigned, wrongly signed, changed, or old is rejected and changes nothing', async () => {
    const body = await aBody()
    const nowMs = world.clock.nowMs()
    const signed = signWebhook(body, secret, nowMs)
    const changed = Buffer.from(body.toString().replace('"id"', '"ID"'))
    for (const [given, header] of [
      [body, undefined],
      [body, ''],
      [body, 'v1=,t='],
      [body, signWebhook(body, new Secret('whsec_another'), nowMs)],
      [body, signWebhook(body, secret, nowMs - 301_000)],
      [changed, signed],
      [Buffer.from('{}'), signWebhook(Buffer.from('{}'), secret, nowMs)],
      [Buffer.from('no json'), signWebhook(Buffer.from('no json'), secret, nowMs)],
      [Buffer.alloc(0), signWebhook(Buffer.alloc(0), secret, nowMs)],
    ] as const)
      expect(await answerOf(given, header), header).toEqual({ status: 400, outcome: 'refused' })
    expect(await plan()).toBe('free')
    expect(await answerOf(body, signWebhook(body, secret, nowMs - 299_000))).toEqual({
      status: 200,
      outcome: 'applied',
    })
    expect(await plan()).toBe('pro')
  })

  test('an event is handled once, and events about other customers or objects are ignored', async () => {
    const body = await aBody()
    const header = (): string => signWebhook(body, secret, world.clock.nowMs())
    expect((await answerOf(body, header())).outcome).toBe('applied')
    expect((await answerOf(body, header())).outcome).toBe('seen before')
    const other = (text: string): Promise<{ outcome: string }> =>
      answerOf(text, signWebhook(Buffer.from(text), secret, world.clock.nowMs()))
    const event = (type: string, customer: string): string =>
      JSON.stringify({ id: 'evt_1', object: 'event', type, data: { object: { id: 'x', customer } } })
    expect((await other(event('customer.subscription.updated', 'cus_of_somebody_else'))).outcome).toBe('not for us')
    expect((await other(event('payout.paid', 'cus_1'))).outcome).toBe('not for us')
  })

  test('a body above the size limit is rejected before it is parsed', async () => {
    expect(await answerOf(Buffer.alloc(maxWebhookBytes + 1), '')).toEqual({ status: 413, outcome: 'too large' })
  })

  test('if Stripe does not answer, the webhook asks for another delivery and the plan does not change', async () => {
    const body = await aBody()
    await read()
    expect(await plan()).toBe('pro')
    const billing = createStripeBilling({
      secretKey: new Secret('sk_test_wrong'),
      webhookSecret: secret,
      prices: new Map([['pro', ['price_pro']]]),
      clock: world.clock,
      simulation: world.server,
    })
    const answer = await answerOf(body, signWebhook(body, secret, world.clock.nowMs()), {
      ...world.accountsDeps,
      billing,
    })
    billing.close()
    expect(answer).toEqual({ status: 503, outcome: 'try again' })
    expect(world.events).toContainEqual({ event: 'billing_failing', reason: 'misconfigured' })
    expect(JSON.stringify(world.events)).not.toContain('sk_test')
    expect(await plan()).toBe('pro')
    expect((await answerOf(body, signWebhook(body, secret, world.clock.nowMs()))).outcome).toBe('applied')
  })

  test('a failure of the store is an error answer, never an exception', async () => {
    const body = await aBody()
    const broken = { ...world.accountsDeps.store, hasHandled: () => Promise.reject(new Error('disk canary')) }
    const accountsDeps = { ...world.accountsDeps, store: broken }
    expect(await answerOf(body, signWebhook(body, secret, world.clock.nowMs()), accountsDeps)).toEqual({
      status: 503,
      outcome: 'try again',
    })
    expect(JSON.stringify(world.events)).not.toContain('canary')
  })
})

test('calls send the API version, send no telemetry, and time out', async () => {
  const seen: Record<string, unknown>[] = []
  const silent = createServer((request, response) => {
    seen.push(request.headers)
    response.writeHead(500, { 'content-type': 'application/json' }).end('{"error":{"message":"canary"}}')
  })
  await new Promise<void>((resolve) => {
    silent.listen(0, '127.0.0.1', resolve)
  })
  const billing = createStripeBilling({
    secretKey: new Secret('sk_test_made_up'),
    webhookSecret: secret,
    prices: new Map([['pro', ['price_pro']]]),
    clock: world.clock,
    simulation: { host: '127.0.0.1', port: (silent.address() as AddressInfo).port },
  })
  await expect(billing.createCustomer('acc_1', 'Ada')).rejects.toMatchObject({
    name: 'BillingFailure',
    trouble: 'unreachable',
    message: 'unreachable',
  })
  billing.close()
  await new Promise((resolve) => silent.close(resolve))
  expect(seen).toHaveLength(3)
  for (const headers of seen) {
    expect(headers).toMatchObject({ 'stripe-version': stripeApiVersion, 'idempotency-key': 'customer-acc_1' })
    expect(headers['x-stripe-client-telemetry']).toBeUndefined()
  }
})
