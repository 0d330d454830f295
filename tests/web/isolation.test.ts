import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { requestUpgrade } from '../../src/accounts/billing/upgrade-requests.ts'
import { addPasskey } from '../../src/accounts/identity/sign-in.ts'
import { routes } from '../../src/web/routes.ts'
import type { Service } from '../service.ts'
import { budgetOf, nanoPerUsd, setTestBudget } from '../test-budgets.ts'
import { signedInTo, startWeb, type Visitor } from './browser-less.ts'
import { upgradesDeps } from './operator.ts'

/** The meaning of the parameter of each route. The test fails if a new route is missing here. */
type Owned =
  | 'keyId'
  | 'sessionId'
  | 'upstreamId'
  | 'proofId'
  | 'requestId'
  | 'recordId'
  | 'managedId'
  | 'budgetId'
  | 'webhookId'

let service: Service
let intruder: Visitor
let ids: Readonly<Record<Owned, string>>
/** The ID of a rejected request. */
let refusedId: string

beforeAll(async () => {
  ;({ service } = await startWeb())
  const owner = await signedInTo(service)
  intruder = await signedInTo(service, (await service.addAccount('intruder', 'max')).account.id)
  await service.connectOwn('sk-made-up-credential-of-the-owner')
  const asked = await owner.post('/account/emails', { email: 'owner@example.com' })
  const request = await requestUpgrade(upgradesDeps(service), service.account.id, 'pro')
  const recordId = (await service.chat()).headers.get('x-request-id')!
  await vi.waitFor(async () => {
    expect(await service.store.findActivity(service.account.id, recordId)).toBeDefined()
  })
  refusedId = (await service.chat({ model: 'no-such-model' })).headers.get('x-request-id')!
  await vi.waitFor(
    async () => expect((await service.store.listRefusedHours(service.account.id, undefined, 9)).length).toBe(1),
    { timeout: 5000 },
  )
  await owner.post('/account/managed-access')
  const [managed] = await service.store.listManagedRequests({ accountId: service.account.id, limit: 1 })
  const [session] = await service.store.listSessions(service.account.id)
  const [key] = await service.store.listKeys(service.account.id, 1)
  const [upstream] = await service.store.listUpstreams(service.account.id)
  await setTestBudget(service, { limit: nanoPerUsd })
  const { budget } = await budgetOf(service)
  await owner.post('/account/webhooks', { url: 'http://127.0.0.1:9/' })
  const [webhook] = await service.store.listWebhooks(service.account.id)
  ids = {
    webhookId: webhook!.id,
    budgetId: budget.id,
    keyId: key!.id,
    sessionId: session!.id,
    upstreamId: upstream!.id,
    requestId: request.id,
    recordId,
    managedId: managed!.id,
    proofId: asked.headers.get('location')!.split('/').at(-1)!,
  }
})
afterAll(() => service.stop())

async function everythingOf(accountId: string): Promise<string> {
  const { store } = service
  return JSON.stringify([
    await store.findAccount(accountId),
    await store.listKeys(accountId, 100),
    await store.listBudgets(accountId),
    await store.listWebhooks(accountId),
    await store.listWebhookDeliveries(accountId, undefined, 9),
    await store.listUpstreams(accountId),
    await store.listSessions(accountId),
    await store.listEmails(accountId),
  ])
}

const named = routes.filter(({ access, path }) => access === 'account' && path.includes(':'))

test.each(named.map((route) => [`${route.method} ${route.path}`, route] as const))(
  'IDs of one account are unknown to another: %s',
  async (_, { method, path }) => {
    const before = await everythingOf(service.account.id)
    const at = path.replaceAll(/:(\w+)/g, (_match, name: string) => {
      expect(Object.keys(ids), 'a parameter whose owner is known').toContain(name)
      return ids[name as Owned]
    })
    const fields = { code: '000000', overlap: 'now' }
    const response = method === 'GET' ? await intruder.get(at) : await intruder.post(at, fields)
    expect(response.status).toBe(404)
    const text = await response.text()
    for (const id of Object.values(ids)) expect(text).not.toContain(id)
    expect(await everythingOf(service.account.id)).toBe(before)
  },
)

test('an ID in a form field is unknown to another account, too', async () => {
  await service.addEmail('a@example.com')
  await service.addEmail('b@example.com')
  expect((await intruder.post('/account/emails/remove', { address: 'a@example.com' })).status).toBe(404)
  expect((await service.store.listEmails(service.account.id)).length).toBe(2)
  const passkey = { name: 'x', publicKey: 'x', counter: 0, transports: [], accountId: service.account.id }
  await addPasskey({ ...service.accountsDeps, store: service.store }, { ...passkey, id: 'owners-passkey' })
  expect((await intruder.post('/account/passkeys/remove', { passkey: 'owners-passkey' })).status).toBe(404)
  expect((await service.store.listPasskeys(service.account.id)).length).toBe(1)
})

test('no page of one account shows anything of another', async () => {
  const own = await (await (await signedInTo(service)).get('/activity')).text()
  expect(own).toContain(refusedId)
  for (const { method, path, access } of routes) {
    if (method !== 'GET' || access !== 'account' || path.includes(':')) continue
    const text = await (await intruder.get(path)).text()
    for (const secret of [...Object.values(ids), refusedId, service.account.id, 'a@example.com', 'tester'])
      expect(text, path).not.toContain(secret)
  }
})
