import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createSignInLink } from '../../src/accounts/identity/proofs.ts'
import { maxKeysPerAccount } from '../../src/accounts/keys.ts'
import type { Service } from '../service.ts'
import { startWeb, Visitor } from './browser-less.ts'

let service: Service
let visitor: Visitor
beforeAll(async () => {
  ;({ service, visitor } = await startWeb())
  await signIn(visitor, service.account.id)
})
afterAll(() => service.stop())

async function signIn(who: Visitor, accountId: string): Promise<void> {
  const accountsDeps = { ...service.accountsDeps, store: service.store }
  const link = await createSignInLink(accountsDeps, accountId, service.config.appUrl)
  await who.post('/sign-in/link', { token: link.reveal().split('=')[1]! })
}

/** All boxes checked, as in the unchanged form. */
const profiles = ['svc-router/frontier', 'svc-router/fusion']
const keyIn = (text: string): string => /sk_svc_[0-9A-Za-z]{38}/.exec(text)?.[0] ?? ''
const statusOf = async (key: string): Promise<number> =>
  (await service.chat({}, { authorization: `Bearer ${key}` })).status
const idOf = async (name: string): Promise<string> =>
  (await service.store.listKeys(service.account.id, 100)).find((key) => key.name === name)!.id

async function create(name: string): Promise<string> {
  const response = await visitor.post('/account/keys', { name, profiles })
  expect(response.status).toBe(200)
  return keyIn(await response.text())
}

describe('keys', () => {
  test('a new key is shown once and works; the list shows only its first and last characters and its last use', async () => {
    const key = await create('laptop')
    const before = await (await visitor.get('/account/keys')).text()
    expect(before).toContain('laptop')
    expect(before).toContain(`${key.slice(0, 11)}…${key.slice(-4)}`)
    expect(before).not.toContain(key)
    expect(await statusOf(key)).toBe(200)
    await expect
      .poll(async () => (await (await visitor.get('/account/keys')).text()).includes('just now'), { timeout: 3000 })
      .toBe(true)
  })

  test.each(['', '   ', 'x'.repeat(101)])('a key needs a valid name: %j', async (name) => {
    const response = await visitor.post('/account/keys', { name, profiles })
    expect(response.status).toBe(422)
    expect(await response.text()).toContain('aria-invalid="true"')
  })

  test('a name is shown as text on every page, whatever it contains', async () => {
    await create('<script>alert(1)</script>"\'')
    const text = await (await visitor.get('/account/keys')).text()
    expect(text).not.toContain('<script>alert')
    expect(text).toContain('&lt;script&gt;alert(1)&lt;/script&gt;')
  })

  test.each([
    ['now', 401],
    ['1h', 200],
    ['24h', 200],
    ['7d', 200],
    ['a year', 200],
  ])(
    'after a rotation with an overlap of %s, the new key works and the old one answers %i',
    async (overlap, oldStatus) => {
      const name = `rotated ${overlap}`
      const old = await create(name)
      const response = await visitor.post(`/account/keys/${await idOf(name)}/rotate`, { overlap })
      const key = keyIn(await response.text())
      expect(await statusOf(key)).toBe(200)
      await expect.poll(() => statusOf(old), { timeout: 3000 }).toBe(oldStatus)
    },
  )

  test('a revoked key is rejected within two seconds, and can be neither rotated nor revoked again', async () => {
    const key = await create('gone')
    const id = await idOf('gone')
    expect((await visitor.post(`/account/keys/${id}/revoke`)).headers.get('location')).toBe(
      '/account/keys?done=key-revoked',
    )
    await expect.poll(() => statusOf(key), { timeout: 3000 }).toBe(401)
    expect((await visitor.post(`/account/keys/${id}/revoke`)).status).toBe(422)
    expect((await visitor.post(`/account/keys/${id}/rotate`, { overlap: 'now' })).status).toBe(422)
  })

  test('all keys are revoked at once', async () => {
    const keys = [service.key, await create('one more')]
    await visitor.post('/account/keys/revoke-all')
    for (const key of keys) await expect.poll(() => statusOf(key), { timeout: 3000 }).toBe(401)
    expect(await (await visitor.get('/account/keys')).text()).toContain('You have no active keys')
  })

  test('an account has at most one hundred keys, and the page says so', async () => {
    for (let count = 0; count < maxKeysPerAccount; count++) await service.addKey(service.account.id)
    const response = await visitor.post('/account/keys', { name: 'too many', profiles })
    expect(response.status).toBe(422)
    expect(await response.text()).toContain('Revoke one first')
  })
})

test('every change is logged with the session that made it, without a name, address, or token', async () => {
  const { account } = await service.addAccount('audited', 'max')
  const who = new Visitor(service.config.appUrl)
  await signIn(who, account.id)
  const [session] = await service.store.listSessions(account.id)
  await who.post('/account/keys', { name: 'canary of a name', profiles })
  const [key] = await service.store.listKeys(account.id, 1)
  await who.post(`/account/keys/${key!.id}/revoke`)
  const entries = (await service.store.readAudit(0, 1000))
    .map(({ entry }) => entry)
    .filter((each) => each.includes(session!.id))
  expect(entries.map((entry) => /"type":"([\w.]+)"/.exec(entry)?.[1])).toEqual(['key.created', 'key.revoked'])
  expect(entries.join()).not.toContain('canary')
  expect(entries.join()).not.toContain(who.cookie.split('=')[1])
})

describe('the account', () => {
  test('the page shows the enforced month and minute, equal to the headers of an answer', async () => {
    const { account, key } = await service.addAccount('counted', 'pro')
    const who = new Visitor(service.config.appUrl)
    await signIn(who, account.id)
    await service.chat({}, { authorization: `Bearer ${key}` })
    const answer = await service.chat({}, { authorization: `Bearer ${key}` })
    expect(answer.headers.get('x-quota-used')).toBe('2')
    const text = (await (await who.get('/account')).text()).replaceAll(/\s+/g, ' ')
    expect(text).toContain('<strong>2</strong> of 20,000 requests this month')
    expect(text).toContain('19,998 left')
    expect(text).toContain('Of the 120 requests allowed in any 60 seconds, 118 are left.')
  })
})
