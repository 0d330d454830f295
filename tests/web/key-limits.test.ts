import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openSession } from '../../src/accounts/identity/sessions.ts'
import { maxNetworks } from '../../src/accounts/key-limits.ts'
import type { StoredKey } from '../../src/domain/accounts.ts'
import type { Service } from '../service.ts'
import { startWeb, Visitor } from './browser-less.ts'

let service: Service
let visitor: Visitor
beforeAll(async () => {
  ;({ service } = await startWeb({ settings: { app_listen: { port: 0, trusted_proxies: 1 } } }))
  visitor = new Visitor(service.config.appUrl)
  const accountsDeps = { ...service.accountsDeps, store: service.store }
  const { token } = await openSession(accountsDeps, service.account.id, { method: 'link', agent: 'Tests' })
  visitor.cookie = `svc_session=${token.reveal()}`
})
afterAll(() => service.stop())

const all = ['svc-router/frontier', 'svc-router/fusion']
const frontier = ['svc-router/frontier']
const none = { profiles: null, perMinute: null, addresses: null }
const keyOf = async (name: string): Promise<StoredKey | undefined> =>
  (await service.store.listKeys(service.account.id, 100)).find((key) => key.name === name)

/** All fields that a browser sends for the unchanged form. */
const untouched = { profiles: all, per_minute: '', addresses: '' }

describe('limits of a key', () => {
  test('a key created without opening the limits has none', async () => {
    expect((await visitor.post('/account/keys', { name: 'free', ...untouched })).status).toBe(200)
    expect((await keyOf('free'))?.limits).toEqual(none)
  })

  test('limits are set at creation, shown in the list, and enforced', async () => {
    const addresses = '203.0.113.0/24\r\n 2001:DB8::/32\r\n\r\n203.0.113.0/24'
    const fields = { name: 'limited', profiles: frontier, per_minute: '30', addresses }
    expect((await visitor.post('/account/keys', fields)).status).toBe(200)
    const limits = { profiles: frontier, perMinute: 30, addresses: ['203.0.113.0/24', '2001:db8::/32'] }
    expect((await keyOf('limited'))?.limits).toEqual(limits)
    const list = (await (await visitor.get('/account/keys')).text()).replaceAll(/\s+/g, ' ')
    expect(list).toContain('limits: only svc-router/frontier · 30 per minute · from 2 networks')
  })

  test('limits are changed and removed on their own page, and the change is logged without addresses', async () => {
    const { stored, key } = await service.addNamedKey('changed')
    const path = `/account/keys/${stored.id}/limits`
    const saved = await visitor.post(path, { profiles: frontier, per_minute: '2', addresses: '127.0.0.1' })
    expect(saved.headers.get('location')).toBe('/account/keys?done=key-limited')
    const page = await (await visitor.get(path)).text()
    expect(page).toMatch(/value="svc-router\/frontier"\s+checked/)
    expect(page).not.toMatch(/value="svc-router\/fusion"\s+checked/)
    expect(page).toContain('value="2"')
    expect(page).toMatch(/>\n127\.0\.0\.1<\/textarea/)
    const bearer = { authorization: `Bearer ${key.reveal()}` }
    await expect
      .poll(async () => (await service.chat({}, bearer)).headers.get('x-ratelimit-limit'), { timeout: 3000 })
      .toBe('2')
    await visitor.post(path, untouched)
    expect((await keyOf('changed'))?.limits).toEqual(none)
    const entries = await service.store.listAudit({ accountId: service.account.id, limit: 2 })
    expect(entries.map(({ actor, event }) => [actor.kind, event])).toEqual([
      ['session', expect.objectContaining({ type: 'key.limited', profiles: 0, perMinute: 0, networks: 0 })],
      ['session', expect.objectContaining({ type: 'key.limited', profiles: 1, perMinute: 2, networks: 1 })],
    ])
  })

  test.each([
    ['no profile', { ...untouched, profiles: [] }, 'profiles', 'Select at least one profile'],
    ['one that is not there', { ...untouched, profiles: ['svc-router/x'] }, 'profiles', 'Select at least one profile'],
    ['no number', { ...untouched, per_minute: 'many' }, 'per_minute', 'a whole number'],
    ['nothing a minute', { ...untouched, per_minute: '0' }, 'per_minute', 'a whole number'],
    ['more than the plan', { ...untouched, per_minute: '601' }, 'per_minute', 'a whole number'],
    ['no address', { ...untouched, addresses: '10.0.0.1\nhome' }, 'addresses', '“home” is not an IPv4'],
    ['markup', { ...untouched, addresses: '<b>' }, 'addresses', '“&lt;b&gt;” is not an IPv4'],
    [
      'too many',
      { ...untouched, addresses: Array.from({ length: maxNetworks + 1 }, (_, at) => `10.0.0.${at}`).join('\n') },
      'addresses',
      `A key can have at most ${maxNetworks}`,
    ],
  ])('%s is reported next to its field, the input remains, and nothing changes', async (_, fields, name, problem) => {
    const { stored } = await service.addNamedKey('as it was')
    const before = (await service.store.listKeys(service.account.id, 100)).length
    for (const path of ['/account/keys', `/account/keys/${stored.id}/limits`]) {
      const response = await visitor.post(path, { name: 'as it was', ...fields })
      const text = (await response.text()).replaceAll(/\s+/g, ' ')
      expect(response.status).toBe(422)
      const [, said = ''] = text.split(`id="${name}-wrong">`)
      expect(said.split('</span>')[0]).toContain(problem)
      if (fields.per_minute !== '') expect(text).toContain(`value="${fields.per_minute}"`)
    }
    expect((await keyOf('as it was'))?.limits).toEqual(none)
    expect(await service.store.listKeys(service.account.id, 100)).toHaveLength(before)
  })

  test("the page shows the reader's own address, including through the operator's proxy", async () => {
    const page = await (await visitor.get('/account/keys', { 'x-forwarded-for': '6.6.6.6, 203.0.113.9' })).text()
    expect(page.replaceAll(/\s+/g, ' ')).toContain('Your current address is <code>203.0.113.9</code>')
    const strange = await (await visitor.get('/account/keys', { 'x-forwarded-for': 'unknown' })).text()
    expect(strange).not.toContain('Your current address')
  })

  test("a revoked key has no limits page, and neither has another account's key", async () => {
    const { stored } = await service.addNamedKey('gone')
    await service.revoke(stored.id)
    const other = await service.addAccount('other', 'max')
    for (const id of [stored.id, other.stored.id, 'key_none']) {
      expect((await visitor.get(`/account/keys/${id}/limits`)).status).toBe(404)
      expect((await visitor.post(`/account/keys/${id}/limits`, untouched)).status).toBe(404)
    }
  })

  test("the account's download contains the limits, including addresses", async () => {
    await service.addLimitedKey({ addresses: ['198.51.100.0/24'], perMinute: 9 })
    const data = (await (await visitor.get('/account/data/download')).json()) as { keys: StoredKey[] }
    expect(data.keys[0]?.limits).toEqual({ profiles: null, perMinute: 9, addresses: ['198.51.100.0/24'] })
  })
})
