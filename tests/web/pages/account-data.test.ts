import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, describe, expect, test } from 'vitest'
import { freshSessionMs, openSession } from '../../../src/accounts/identity/sessions.ts'
import { SkippingClock } from '../../../src/simulation/skipping-clock.ts'
import { type Service, type ServiceOptions } from '../../service.ts'
import { startWeb, Visitor } from '../browser-less.ts'

const credential = 'sk-made-up-credential-of-a-test-9fQk'
const question = 'A question that is stored.'
let service: Service
let visitor: Visitor
afterEach(() => service.stop())

async function start(options: ServiceOptions = {}): Promise<void> {
  ;({ service, visitor } = await startWeb(options))
  visitor.cookie = await cookieOf(service.account.id)
}

async function cookieOf(accountId: string): Promise<string> {
  const accountsDeps = { ...service.accountsDeps, store: service.store }
  const { token } = await openSession(accountsDeps, accountId, { method: 'link', agent: 'Tests' })
  return `svc_session=${token.reveal()}`
}

const path = '/account/data'

describe('downloading', () => {
  test('the download contains all data of the account, decrypted where it is its own, and no secrets', async () => {
    await start()
    await service.addEmail('owner@example.com')
    await service.connectOwn(credential)
    const answered = (await (await service.responses({ input: question })).json()) as { id: string }
    const { account: other } = await service.addAccount('someone else', 'free')
    const refused = { hourMs: 0, requests: 3, lastRequestId: 'req_1', lastKeyId: 'key_1', lastAtMs: Date.now() }
    const hours = Array.from({ length: 201 }, (_, hour) => ({
      ...refused,
      accountId: service.account.id,
      code: 'invalid_json',
      hourMs: refused.lastAtMs - hour * 3_600_000,
    }))
    await service.store.addRefused([...hours, { ...refused, accountId: other.id, code: 'key_revoked' }])
    await service.addEmail('second@example.com')
    const stranger = new Visitor(service.config.appUrl)
    stranger.cookie = await cookieOf(other.id)
    expect((await stranger.post('/account/emails', { email: 'owner@example.com' })).status).toBe(303)
    await sleep(50)
    const response = await visitor.get(`${path}/download`)
    expect(response.headers.get('content-disposition')).toBe('attachment; filename="svc-router-account.json"')
    const text = await response.text()
    const data = JSON.parse(text) as Record<string, unknown[]>
    expect(Object.keys(data)).toEqual([
      'madeAt',
      'account',
      'emails',
      'signInProofs',
      'sessions',
      'passkeys',
      'keys',
      'upstreams',
      'billing',
      'upgradeRequests',
      'managedRequests',
      'tickets',
      'budgets',
      'webhooks',
      'webhookDeliveries',
      'usedUnits',
      'requests',
      'refusedRequests',
      'storedAnswers',
      'conversations',
      'audit',
    ])
    expect(data['account']).toMatchObject({ id: service.account.id, name: 'tester' })
    expect(data['emails']!.length).toBe(2)
    expect(data['upstreams']).toMatchObject([{ credentialHint: '9fQk', hasCredential: true }])
    expect(data['requests']!.length).toBe(1)
    expect(data['refusedRequests']).toEqual(hours)
    expect(data['storedAnswers']).toMatchObject([
      { id: answered.id, content: { response: { id: answered.id, object: 'response' } } },
    ])
    expect(JSON.stringify(data['storedAnswers'])).toContain(question)
    expect(JSON.stringify(data['audit'])).toContain('upstream.added')
    for (const secret of [credential, service.key, visitor.cookie.split('=')[1]!, 'sealedCredential', other.id])
      expect(text).not.toContain(secret)
  })

  test('the download continues past one page of requests, and contains an empty list if there are none', async () => {
    await start()
    const empty = (await (await visitor.get(`${path}/download`)).json()) as { requests: unknown[] }
    expect(empty.requests).toEqual([])
    for (let round = 0; round < 5; round++) await Promise.all(Array.from({ length: 50 }, () => service.chat()))
    await expect
      .poll(async () => ((await (await visitor.get(`${path}/download`)).json()) as typeof empty).requests.length)
      .toBe(250)
  })
})

describe('deleting', () => {
  test('deleting removes the account and its keys at once, and signs out', async () => {
    await start()
    await service.responses({ input: question })
    const second = new Visitor(service.config.appUrl)
    second.cookie = await cookieOf(service.account.id)
    const done = await visitor.post(`${path}/delete`, { name: 'tester' })
    expect([done.status, done.headers.get('location'), visitor.cookie]).toEqual([
      303,
      '/sign-in?done=account-deleted',
      '',
    ])
    expect(await service.store.listActivity(service.account.id, { limit: 9 }, 9)).toEqual([])
    expect(await (await visitor.get('/sign-in?done=account-deleted')).text()).toContain(
      'Your account and all of its data were deleted',
    )
    expect((await second.get('/account')).status).toBe(303)
    await expect.poll(async () => (await service.chat()).status, { timeout: 2000 }).toBe(401)
    expect(await service.store.findAccount(service.account.id)).toBeUndefined()
    const [entry] = await service.store.listAudit({ limit: 1 })
    expect(entry).toMatchObject({ actor: { kind: 'session' }, event: { type: 'account.deleted' } })
    expect(JSON.stringify(service.events)).not.toContain('internal_error')
  })

  test('an answer in progress ends normally', async () => {
    await start()
    service.providers[0]!.script([{ do: 'slow_headers', ms: 800 }])
    const running = service.chat()
    await sleep(200)
    expect((await visitor.post(`${path}/delete`, { name: 'tester' })).status).toBe(303)
    expect((await running).status).toBe(200)
    await sleep(100)
    expect(JSON.stringify(service.events)).not.toMatch(/internal_error|failing/)
  })

  test('deleting needs the name of the account and changes nothing without it', async () => {
    await start()
    for (const name of ['', 'Tester', 'someone else']) {
      const response = await visitor.post(`${path}/delete`, { name })
      expect([response.status, (await response.text()).includes('Nothing was deleted')]).toEqual([422, true])
    }
    expect((await service.chat()).status).toBe(200)
  })

  test('deleting needs a sign-in within the last 15 minutes, and otherwise redirects to sign-in', async () => {
    const clock = new SkippingClock()
    await start({ clock })
    await clock.skip(freshSessionMs)
    const page = await (await visitor.get(path)).text()
    expect(page).not.toContain('action="/account/data/delete"')
    expect(page).toContain('href="/sign-in?again=1&amp;next=/account/data"')
    expect((await visitor.post(`${path}/delete`, { name: 'tester' })).status).toBe(422)
    expect(await service.store.findAccount(service.account.id)).toBeDefined()
    const again = await visitor.get('/sign-in?again=1&next=/account/data')
    expect([again.status, (await again.text()).includes('value="/account/data"')]).toEqual([200, true])
    visitor.cookie = await cookieOf(service.account.id)
    expect((await visitor.post(`${path}/delete`, { name: 'tester' })).status).toBe(303)
  })

  test("deleting cancels the account's subscription", async () => {
    await start({ settings: { billing: { simulated: true, grace: '3d' } } })
    const { account } = await service.addAccount('buyer', 'free')
    visitor.cookie = await cookieOf(account.id)
    const sent = await visitor.post('/billing/upgrade', { plan: 'pro' })
    await fetch(`${sent.headers.get('location')}/pay`, { method: 'POST', redirect: 'manual' })
    await visitor.get('/billing/return')
    expect((await service.store.findAccount(account.id))?.planId).toBe('pro')
    const { customerId } = (await service.store.billing.findBilling(account.id))!
    expect((await visitor.post(`${path}/delete`, { name: 'buyer' })).status).toBe(303)
    const record = await service.store.billing.findBilling(account.id)
    expect(record).toMatchObject({ customerId, closingSinceMs: expect.any(Number) as number })
    // A canceled subscription is checked again in an hour; if the cancellation failed, in minutes.
    expect(record!.checkAtMs - Date.now()).toBeGreaterThan(30 * 60_000)
  })
})
