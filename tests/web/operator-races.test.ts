import { request as openRequest } from 'node:http'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { requestUpgrade, withdrawUpgrade } from '../../src/accounts/billing/upgrade-requests.ts'
import { requestManagedAccess, withdrawManagedRequest } from '../../src/accounts/managed-access/managed-access.ts'
import { changeOperatorRole, createOperator, removeOperator } from '../../src/accounts/operators/operators.ts'
import type { Operator } from '../../src/domain/operators.ts'
import { SkippingClock } from '../../src/simulation/skipping-clock.ts'
import type { Service } from '../service.ts'
import { startWeb, type Visitor } from './browser-less.ts'
import { enterAs, operatorsDeps, upgradesDeps } from './operator.ts'

const clock = new SkippingClock()
let service: Service
let admin: Visitor
let ada: Operator
beforeAll(async () => {
  ;({ service } = await startWeb({
    clock,
    facts: { beta: { managed: true, credential_env: 'BETA_KEY' } },
    env: { BETA_KEY: 'made-up-credential' },
  }))
  ;({ visitor: admin, operator: ada } = await enterAs(service, 'admin', 'ada@example.com'))
})
afterAll(() => service.stop())

/** Sends the headers and the first half of a form, runs `meanwhile`, then sends the rest. */
function postSlowly(
  visitor: Visitor,
  path: string,
  body: string,
  meanwhile: () => Promise<unknown>,
): Promise<{ readonly status: number; readonly location: string | undefined }> {
  const { hostname, port } = new URL(service.config.appUrl)
  const { promise, resolve, reject } = Promise.withResolvers<{ status: number; location: string | undefined }>()
  const request = openRequest({
    hostname,
    port,
    path,
    method: 'POST',
    timeout: 10_000,
    headers: {
      cookie: visitor.cookie,
      'sec-fetch-site': 'same-origin',
      'content-type': 'application/x-www-form-urlencoded',
      'content-length': Buffer.byteLength(body),
    },
  })
  request.on('error', reject)
  request.on('response', (response) => {
    response.resume()
    resolve({ status: response.statusCode ?? 0, location: response.headers.location })
  })
  request.write(body.slice(0, 5))
  // The service identifies the operator as soon as the headers arrive.
  setTimeout(() => {
    meanwhile().then(() => request.end(body.slice(5)), reject)
  }, 100)
  return promise
}

describe('slow operator requests', () => {
  test('a request has no effect if its operator was removed before it ended', async () => {
    const { operator, visitor } = await enterAs(service, 'support', 'slow@example.com')
    const body = new URLSearchParams({ csrf: await visitor.csrf() }).toString()
    const answer = await postSlowly(visitor, `/operator/accounts/${service.account.id}/suspend`, body, () =>
      removeOperator(operatorsDeps(service), operator.id),
    )
    expect(answer).toEqual({ status: 303, location: '/operator/sign-in' })
    expect((await service.store.findAccount(service.account.id))?.suspended).toBe(false)
  })

  test("a request may do what its operator's role allows when it ends", async () => {
    const { operator, visitor } = await enterAs(service, 'support', 'lowered@example.com')
    const body = new URLSearchParams({ csrf: await visitor.csrf() }).toString()
    const answer = await postSlowly(visitor, `/operator/accounts/${service.account.id}/suspend`, body, () =>
      changeOperatorRole(operatorsDeps(service), operator.id, 'viewer'),
    )
    expect(answer.status).toBe(403)
    expect((await service.store.findAccount(service.account.id))?.suspended).toBe(false)
  })
})

describe('simultaneous operator requests', () => {
  test('when admins remove or demote each other at once, one remains', async () => {
    const accountsDeps = operatorsDeps(service)
    for (let round = 0; round < 5; round++) {
      const { operator: bob, visitor } = await enterAs(service, 'admin', `bob${round}@example.com`)
      const step = round % 2 === 0 ? 'remove' : 'role'
      const [one, other] = await Promise.all([
        admin.post(`/operator/operators/${bob.id}/${step}`, { role: 'viewer' }),
        visitor.post(`/operator/operators/${ada.id}/${step}`, { role: 'viewer' }),
      ])
      const admins = (await service.store.operators.listOperators(100)).filter(
        ({ state, role }) => state === 'active' && role === 'admin',
      )
      expect(admins.length, `${one.status} ${other.status}`).toBe(1)
      // The remaining operator is the admin of the next round.
      if (admins[0]!.id === bob.id) {
        admin = visitor
        ada = bob
      }
    }
    await expect(removeOperator(accountsDeps, ada.id)).rejects.toMatchObject({ code: 'operator_last_admin' })
  })

  test('one address becomes one operator', async () => {
    const made = await Promise.allSettled(
      Array.from({ length: 8 }, () => createOperator(operatorsDeps(service), 'once@example.com', 'viewer')),
    )
    expect(made.filter(({ status }) => status === 'fulfilled').length).toBe(1)
  })

  test('an upgrade request is decided once, by whichever operator is first', async () => {
    const accountsDeps = upgradesDeps(service)
    for (let round = 0; round < 6; round++) {
      const { account } = await service.addAccount(`upgrade-${round}`, 'free')
      const { id } = await requestUpgrade(accountsDeps, account.id, 'pro')
      const before = (await service.store.auditHead()).sequence
      await Promise.allSettled([
        admin.post(`/operator/requests/${id}/approve`),
        admin.post(`/operator/requests/${id}/approve`),
        admin.post(`/operator/requests/${id}/reject`),
        withdrawUpgrade(accountsDeps, account.id, id),
      ])
      const [request] = await service.store.billing.listUpgradeRequests({ limit: 1, accountId: account.id })
      const events = await service.store.listAudit({ limit: 9, fromSequence: before + 1 })
      expect(events.map(({ event }) => event.type)).toEqual([`upgrade.${request!.state}`])
      const { planId } = (await service.store.findAccount(account.id))!
      expect(planId).toBe(request!.state === 'approved' ? 'pro' : 'free')
    }
  })

  test('a request for managed access is decided once, or withdrawn after its approval', async () => {
    const accountsDeps = { ...service.accountsDeps, store: service.store }
    for (let round = 0; round < 6; round++) {
      const { account } = await service.addAccount(`managed-${round}`, 'free')
      const { id } = await requestManagedAccess(accountsDeps, account.id)
      const before = (await service.store.auditHead()).sequence
      await Promise.allSettled([
        admin.post(`/operator/managed-access/${id}/approve`),
        admin.post(`/operator/managed-access/${id}/approve`),
        withdrawManagedRequest(accountsDeps, account.id, id),
      ])
      const events = (await service.store.listAudit({ limit: 9, fromSequence: before + 1 })).map(
        ({ event }) => event.type,
      )
      const [request] = await service.store.listManagedRequests({ limit: 1, accountId: account.id })
      expect(request?.state).toBe('withdrawn')
      expect([['managed.withdrawn'], ['managed.withdrawn', 'managed.approved']]).toContainEqual(events)
    }
  })

  test('a request of a deleted account cannot be approved', async () => {
    const accountsDeps = { ...service.accountsDeps, store: service.store }
    const { account } = await service.addAccount('soon gone', 'free')
    const managed = await requestManagedAccess(accountsDeps, account.id)
    const upgrade = await requestUpgrade(upgradesDeps(service), account.id, 'pro')
    const record = {
      actor: { kind: 'cli' },
      atMs: 1,
      event: { type: 'account.deleted', accountId: account.id },
    } as const
    expect(await service.store.deleteAccount(account.id, clock.nowMs(), record)).toBe(true)
    const before = (await service.store.auditHead()).sequence
    expect((await admin.post(`/operator/managed-access/${managed.id}/approve`)).status).toBe(404)
    expect((await admin.post(`/operator/requests/${upgrade.id}/approve`)).status).toBe(404)
    for (const step of ['plan', 'suspend', 'resume', 'keys/revoke-all'])
      expect((await admin.post(`/operator/accounts/${account.id}/${step}`, { plan: 'pro' })).status, step).toBe(404)
    expect((await service.store.auditHead()).sequence).toBe(before)
  })

  test('a confirmation code works once, in its own session, until it expires', async () => {
    const { visitor } = await enterAs(service, 'admin', 'codes@example.com')
    await clock.skip(10 * 60_000)
    const asked = (await visitor.post('/operator/confirm', { next: '/operator/backends' })).headers.get('location')!
    const [path] = asked.split('?')
    const letters = await (await fetch(`${service.config.appUrl}/dev/outbox`)).text()
    const code = /\b(\d{6})\b/.exec(letters)![1]!
    const answers = await Promise.all(Array.from({ length: 4 }, () => visitor.post(path!, { code })))
    expect(answers.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([303, 422, 422, 422])
    expect((await visitor.post('/operator/backends/alpha/drain', { reason: 'asked' })).headers.get('location')).toBe(
      '/operator/backends/alpha?done=backend-drained',
    )
    await clock.skip(10 * 60_000)
    expect((await visitor.post(path!, { code })).status).toBe(422)
    expect((await visitor.post('/operator/backends/alpha/undrain')).headers.get('location')).toContain(
      '/operator/confirm',
    )
  })
})

test('a note about resale is requested after the proof that the action needs', async () => {
  const { visitor } = await enterAs(service, 'admin', 'notes@example.com')
  const first = 'Confirm your identity first'
  expect(await (await visitor.get('/operator/managed-access')).text()).not.toContain(first)
  await clock.skip(10 * 60_000)
  const text = await (await visitor.get('/operator/managed-access')).text()
  expect(text).toContain('name="note"')
  expect(text).toContain(first)
})
