import { createHash } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { mintKey } from '../../src/domain/keys.ts'
import { systemRandom } from '../../src/runtime/random.ts'
import { SkippingClock } from '../../src/simulation/skipping-clock.ts'
import type { Service } from '../service.ts'
import { startWeb, type Visitor } from './browser-less.ts'
import { ScanningDouble } from './fake-scanning.ts'

const minuteMs = 60_000
let double: ScanningDouble
let service: Service
let visitor: Visitor
const clock = new SkippingClock()
beforeAll(async () => {
  double = await ScanningDouble.start()
  const settings = { leaked_keys: { github: { keys_url: double.keysUrl } } }
  ;({ service, visitor } = await startWeb({ settings, clock }))
  await service.addEmail('owner@example.com')
})
afterAll(async () => {
  await service.stop()
  await double.stop()
})
beforeEach(() => {
  double.status = 200
})

const digest = (text: string): string => createHash('sha256').update(text).digest('hex')
const match = (token: string, more: object = {}) => ({
  token,
  type: 'svc_router_api_key',
  url: 'https://github.com/octo/example/blob/1234/.env',
  source: 'content',
  ...more,
})
const report = (matches: unknown, change: Parameters<ScanningDouble['report']>[2] = {}): Promise<Response> =>
  double.report(service.config.appUrl, matches, change)
const newKey = async (name = 'laptop'): Promise<{ text: string; id: string }> => {
  const { key, stored } = await service.addNamedKey(name)
  return { text: key.reveal(), id: stored.id }
}
const callWith = async (key: string): Promise<number> =>
  (await service.chat({}, { authorization: `Bearer ${key}` })).status
const outbox = async (): Promise<string> => (await visitor.get('/dev/outbox')).text()

test('the API rejects a reported key within 2 s, its owner learns where it was found, and GitHub gets its label', async () => {
  const { text, id } = await newKey()
  expect(await callWith(text)).toBe(200)
  const startedAt = performance.now()
  const response = await report([match(text)])
  while ((await callWith(text)) !== 401) expect(performance.now() - startedAt).toBeLessThan(2000)
  expect(performance.now() - startedAt).toBeLessThan(2000)
  expect([response.status, await response.json()]).toEqual([
    200,
    [{ token_hash: digest(text), token_type: 'svc_router_api_key', label: 'true_positive' }],
  ])
  const letters = await outbox()
  expect(letters).toContain('owner@example.com')
  expect(letters).toContain('https://github.com/octo/example/blob/1234/.env')
  expect(letters).not.toContain(text)
  const [entry] = await service.store.listAudit({ limit: 1 })
  expect(entry).toMatchObject({
    actor: { kind: 'system' },
    event: { type: 'key.revoked', keyId: id, reason: 'leaked' },
  })
  expect(service.events).toContainEqual({ event: 'leak_report', reported: 1, revoked: 1 })
  expect(JSON.stringify(service.events)).not.toContain(text)
  expect(double.fetches).toHaveLength(1)
  expect(double.fetches[0]).toMatchObject({
    agent: expect.stringMatching(/^svc-router\//) as string,
    authorization: undefined,
  })
})

test('a repeated report gets the same answer, and changes and sends nothing more', async () => {
  const { text } = await newKey('replayed')
  const first = await (await report([match(text)])).json()
  const [entry] = await service.store.listAudit({ limit: 1 })
  const letters = (await outbox()).split('replayed').length
  const again = await report([match(text)])
  expect([again.status, await again.json()]).toEqual([200, first])
  expect((await service.store.listAudit({ limit: 1 }))[0]).toEqual(entry)
  expect((await outbox()).split('replayed')).toHaveLength(letters)
})

test("a report without GitHub's signature over its exact bytes is rejected, and revokes no key", async () => {
  const { text } = await newKey()
  const matches = [match(text)]
  const stranger = await ScanningDouble.start()
  const forged = [
    report(matches, { body: `${JSON.stringify(matches)} ` }),
    report([], { body: JSON.stringify(matches) }),
    report(matches, { signature: 'bm9uZQ==' }),
    report(matches, { signature: '' }),
    report(matches, { keyId: '' }),
    report(matches, { headers: { 'content-type': 'application/json' } }),
    stranger.report(service.config.appUrl, matches),
    stranger.report(service.config.appUrl, matches, { keyId: 'made-up' }),
  ]
  for (const response of await Promise.all(forged))
    expect([response.status, await response.json()]).toEqual([403, { outcome: 'refused' }])
  await stranger.stop()
  expect(await callWith(text)).toBe(200)
})

test('keys that GitHub changed are fetched again, and a flood of unknown key IDs causes no fetches', async () => {
  const before = double.fetches.length
  for (let count = 0; count < 40; count++) expect((await report([], { keyId: `made-up-${count}` })).status).toBe(403)
  expect(double.fetches.length).toBeLessThanOrEqual(before + 1)
  await clock.skip(3 * minuteMs)
  double.rotate('second')
  const { text } = await newKey()
  expect((await report([match(text)])).status).toBe(200)
  expect(double.fetches.length).toBeLessThanOrEqual(before + 2)
})

test('if the keys cannot be fetched, the report must be repeated and changes nothing until then', async () => {
  const { text, id } = await newKey()
  await clock.skip(3 * minuteMs)
  double.rotate('third')
  double.status = 403
  const refused = await report([match(text)])
  expect([refused.status, await refused.json()]).toEqual([503, { outcome: 'try again' }])
  const waitMs = Number(refused.headers.get('retry-after')) * 1000
  expect(waitMs).toBeGreaterThan(0)
  expect((await service.store.findKey(id))?.state).toBe('active')
  expect(service.events).toContainEqual({ event: 'scanning_keys_failing', reason: 'server_error' })
  double.status = 200
  await clock.skip(waitMs)
  expect((await report([match(text)])).status).toBe(200)
  expect((await service.store.findKey(id))?.state).toBe('revoked')
})

test('hundreds of our own and foreign tokens are each labeled, and one email lists what was revoked', async () => {
  const { account } = await service.addAccount('many', 'free')
  const address = { address: 'many@example.com', accountId: account.id, createdAtMs: 1 }
  await service.store.addEmail(address, 5, {
    atMs: 1,
    actor: { kind: 'cli' },
    event: { type: 'email.added', accountId: account.id },
  })
  const ours = await Promise.all(Array.from({ length: 20 }, () => service.addKey(account.id)))
  const strangers = Array.from({ length: 200 }, () => mintKey(systemRandom()).reveal())
  const others = Array.from({ length: 200 }, (_, index) => `ghp_${index}MadeUpTokenOfAnotherVendor`)
  // GitHub finds the same token in many places, and the first version of its messages had no source.
  const matches = [
    ...ours.map((token) => match(token)),
    ...strangers.map((token) => match(token, { url: '' })),
    ...others.map((token) => ({ token, type: 'another', url: 'https://github.com/x' })),
    ...ours.map((token) => match(token, { source: 'commit' })),
  ]
  const startedAt = performance.now()
  const response = await report(matches)
  const labels = (await response.json()) as { token_hash: string; label: string }[]
  expect(performance.now() - startedAt).toBeLessThan(5000)
  expect(labels.map(({ token_hash }) => token_hash)).toEqual(matches.map(({ token }) => digest(token)))
  const isOurs = new Set(ours)
  expect(labels.map(({ label }) => label === 'true_positive')).toEqual(matches.map(({ token }) => isOurs.has(token)))
  const keys = await service.store.listKeys(account.id, 100)
  expect(keys.filter(({ state }) => state !== 'revoked').map(({ name }) => name)).toEqual(['test'])
  expect(await outbox()).toContain('20 of your svc-router keys were found in public and have been revoked')
})

test('a signed message that is not a list is rejected, one that is too large is not read, and no reply is a page', async () => {
  expect((await report({ token: 'x' })).status).toBe(400)
  expect((await report([7, null, { token: 7 }])).status).toBe(200)
  expect((await report([match('x'.repeat(1024 * 1024))])).status).toBe(413)
  expect((await visitor.get('/leaked-keys/github')).status).toBe(405)
})
