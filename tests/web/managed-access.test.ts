import { afterAll, beforeAll, expect, test } from 'vitest'
import { openSession } from '../../src/accounts/identity/sessions.ts'
import {
  recordResale,
  reviewManagedRequest,
  switchManagedAccess,
} from '../../src/accounts/managed-access/managed-access.ts'
import { SkippingClock } from '../../src/simulation/skipping-clock.ts'
import type { Service } from '../service.ts'
import { startWeb, Visitor } from './browser-less.ts'

const path = '/account/managed-access'
let service: Service
let owner: Visitor
let clock: SkippingClock
beforeAll(async () => {
  clock = new SkippingClock()
  ;({ service } = await startWeb({ clock }))
  owner = new Visitor(service.config.appUrl)
  const accountsDeps = { ...service.accountsDeps, store: service.store }
  const { token } = await openSession(accountsDeps, service.account.id, { method: 'link', agent: 'Tests' })
  owner.cookie = `svc_session=${token.reveal()}`
})
afterAll(() => service.stop())

const read = async (): Promise<string> => (await (await owner.get(path)).text()).replaceAll(/\s+/g, ' ')
const own = () => service.store.listManagedRequests({ accountId: service.account.id, limit: 10 })
const operator = () => ({ ...service.accountsDeps, store: service.store, actor: { kind: 'cli' } as const })

test("a request is filed once on behalf of the session's account, and switches nothing on", async () => {
  expect((await owner.post(path)).headers.get('location')).toBe(`${path}?done=managed-asked`)
  expect(await own()).toMatchObject([{ state: 'requested' }])
  expect((await owner.post(path)).status).toBe(422)
  expect((await own()).length).toBe(1)
  expect(await read()).toContain('waiting for review')
  expect(await service.store.hasManagedAccess(service.account.id)).toBe(false)
  const entries = JSON.stringify(await service.store.readAudit(0, 100))
  expect(entries).toContain('managed.requested')
  expect(entries).toContain('session')
})

test('the checklist shows the current state of the switch and the three checks', async () => {
  const states = async (): Promise<string[]> =>
    Array.from((await read()).matchAll(/>(met|not met)</g), ([, state]) => state!)
  expect(await states()).toEqual(['not met', 'not met', 'met', 'met'])
  await switchManagedAccess(operator(), true)
  await recordResale(operator(), 'openai', 'CONTRACT-17')
  await clock.skip(5_000)
  expect(await states()).toEqual(['met', 'met', 'met', 'met'])
  expect(await read()).toContain('Providers allow resale: openai')
  expect(await read()).not.toContain('CONTRACT-17')
})

test("the operator's decision is shown, and the account can withdraw once", async () => {
  const [request] = await own()
  await reviewManagedRequest(operator(), request!.id, 'approved')
  expect(await read()).toContain('approved')
  const withdraw = `${path}/${request!.id}/withdraw`
  expect((await owner.post(withdraw)).headers.get('location')).toBe(`${path}?done=managed-withdrawn`)
  expect((await owner.post(withdraw)).status).toBe(422)
  expect((await owner.post(`${path}/mar_none/withdraw`)).status).toBe(404)
  expect(await read()).toContain('Request a review')
})
