import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { approveUpgrade } from '../../src/accounts/billing/upgrade-requests.ts'
import { openSession } from '../../src/accounts/identity/sessions.ts'
import type { Service } from '../service.ts'
import { startWeb, Visitor } from './browser-less.ts'

const patienceMs = 10_000

async function signIn(service: Service, accountId: string): Promise<Visitor> {
  const { store, accountsDeps } = service
  const visitor = new Visitor(service.config.appUrl)
  const { token } = await openSession({ ...accountsDeps, store }, accountId, { method: 'link', agent: 'Tests' })
  visitor.cookie = `svc_session=${token.reveal()}`
  return visitor
}

const post = (url: string): Promise<Response> => fetch(url, { method: 'POST', redirect: 'manual' })

describe('simulated plan sales on this machine', () => {
  let service: Service
  let visitor: Visitor
  let accountId: string
  beforeAll(async () => {
    ;({ service } = await startWeb({ settings: { billing: { simulated: true, grace: '3d' } } }))
    ;({
      account: { id: accountId },
    } = await service.addAccount('buyer', 'free'))
    visitor = await signIn(service, accountId)
  })
  afterAll(() => service.stop())

  const planNow = async (): Promise<string | undefined> => (await service.store.findAccount(accountId))?.planId

  test('the pages say that sales are simulated, and their forms may only lead to the checkout', async () => {
    const started = service.events.find(({ event }) => event === 'billing_simulated')
    for (const path of ['/billing', '/billing/upgrade']) {
      const response = await visitor.get(path)
      expect(await response.text()).toContain('Payments are simulated')
      const policy = response.headers.get('content-security-policy')
      expect(policy).toContain(`form-action 'self' ${started?.event === 'billing_simulated' ? started.origin : '?'};`)
    }
    expect((await visitor.get('/account')).headers.get('content-security-policy')).toContain("form-action 'self';")
  })

  test('checkout starts at the plans and returns with the new plan already in force', async () => {
    const plans = await (await visitor.get('/billing/upgrade')).text()
    expect(plans).toContain('$20.00 a month')
    expect(plans).toContain('your plan')
    const sent = await visitor.post('/billing/upgrade', { plan: 'pro' })
    expect(sent.status).toBe(303)
    const paid = await post(`${sent.headers.get('location')}/pay`)
    expect(paid.headers.get('location')).toBe(`${service.config.appUrl}/billing/return`)
    expect((await visitor.get('/billing/return')).headers.get('location')).toBe('/billing')
    expect(await planNow()).toBe('pro')
    const page = await (await visitor.get('/billing')).text()
    expect(page).toContain('<strong>Pro</strong>')
    expect(page).toContain('Your next invoice is due on')
  })

  test('a change in the portal arrives by webhook, without a return to the app', async () => {
    const portal = (await visitor.post('/billing/portal')).headers.get('location') ?? ''
    const text = await (await fetch(portal)).text()
    const change = /action="([^"]+\/change\/[^"]+)"/.exec(text)?.[1] ?? ''
    await post(`${new URL(portal).origin}${change}`)
    const giveUpAtMs = Date.now() + patienceMs
    while ((await planNow()) !== 'max' && Date.now() < giveUpAtMs) await sleep(20)
    expect(await planNow()).toBe('max')
  })

  test('checkout returns to the host name that the browser used', async () => {
    const { account } = await service.addAccount('local buyer', 'free')
    const signedIn = await signIn(service, account.id)
    const here = service.config.appUrl.replace('127.0.0.1', 'localhost')
    const visitorHere = new Visitor(here)
    visitorHere.cookie = signedIn.cookie
    const sent = await visitorHere.post('/billing/upgrade', { plan: 'pro' })
    const paid = await post(`${sent.headers.get('location')}/pay`)
    expect(paid.headers.get('location')).toBe(`${here}/billing/return`)
  })

  test('anyone can read the prices on the plans page, on the home page, and as JSON', async () => {
    for (const path of ['/', '/pricing'])
      expect(await (await new Visitor(service.config.appUrl).get(path)).text(), path).toContain('$20.00 a month')
    const headers = { 'user-agent': 'svc-router-test/1' }
    const { plans } = (await (await fetch(`${service.origin}/pricing`, { headers })).json()) as {
      plans: { id: string; price?: object }[]
    }
    expect(plans.map(({ price }) => price)).toEqual([
      undefined,
      { currency: 'usd', minor_units: 2000, interval: 'month', interval_count: 1 },
      { currency: 'usd', minor_units: 10000, interval: 'month', interval_count: 1 },
    ])
  })

  test('an unsigned webhook is rejected', async () => {
    const response = await fetch(`${service.config.appUrl}/webhooks/stripe`, { method: 'POST', body: '{"id":"evt_1"}' })
    expect([response.status, await response.json()]).toEqual([400, { outcome: 'refused' }])
  })

  test('a past-due plan leads to the portal, and an unknown plan back to the plans', async () => {
    const plans = await (await visitor.get('/billing/upgrade')).text()
    expect(plans).toMatch(/action="\/billing\/portal"[\s\S]*Change to Free/)
    expect((await visitor.post('/billing/upgrade', { plan: 'gold' })).headers.get('location')).toBe('/billing/upgrade')
  })
})

describe('plans that an operator approves', () => {
  let service: Service
  let visitor: Visitor
  let accountId: string
  beforeAll(async () => {
    ;({ service } = await startWeb())
    ;({
      account: { id: accountId },
    } = await service.addAccount('asker', 'free'))
    visitor = await signIn(service, accountId)
  })
  afterAll(() => service.stop())

  test('an upgrade request is created, shown, withdrawn only by its own account, and approved', async () => {
    expect((await visitor.post('/billing/upgrade', { plan: 'pro' })).headers.get('location')).toBe(
      '/billing?done=upgrade-requested',
    )
    const page = await (await visitor.get('/billing')).text()
    expect(page).toContain('waiting for the operator')
    const [request] = await service.store.billing.listUpgradeRequests({ accountId, limit: 1 })
    const stranger = await signIn(service, service.account.id)
    expect((await stranger.post(`/billing/requests/${request!.id}/withdraw`)).status).toBe(404)
    await visitor.post(`/billing/requests/${request!.id}/withdraw`)
    expect((await service.store.billing.findUpgradeRequest(request!.id))?.state).toBe('withdrawn')
    await visitor.post('/billing/upgrade', { plan: 'max' })
    const [second] = await service.store.billing.listUpgradeRequests({ accountId, onlyOpen: true, limit: 1 })
    const { plans, defaultPlan } = service.config
    const { store } = service
    await approveUpgrade(
      {
        ...service.accountsDeps,
        clock: { ...service.accountsDeps.clock, monotonicMs: () => 0, after: () => ({ cancel: () => {} }) },
        accounts: store,
        store: store.billing,
        plans,
        defaultPlan,
        graceMs: 0,
      },
      second!.id,
    )
    expect(await (await visitor.get('/billing')).text()).toContain('<strong>Max</strong>')
  })

  test('there is no portal and no webhook', async () => {
    expect((await visitor.post('/billing/portal')).status).toBe(404)
    expect((await fetch(`${service.config.appUrl}/webhooks/stripe`, { method: 'POST', body: '{}' })).status).toBe(404)
  })
})
