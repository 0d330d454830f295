import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { mintKey } from '../../src/domain/keys.ts'
import type { RefusedCount } from '../../src/domain/refused-requests.ts'
import { systemRandom } from '../../src/runtime/random.ts'
import type { Service } from '../service.ts'
import { SocketClient } from '../socket-client.ts'
import { signedInTo, startWeb, type Visitor } from './browser-less.ts'

const main = join(import.meta.dirname, '../../src/main.ts')
let service: Service
let visitor: Visitor
/** The request IDs of the last rejections, by error. */
const ids: Record<string, string> = {}

const idOf = (response: Response): string => response.headers.get('x-request-id')!
const withKey = (key: string): Record<string, string> => ({ authorization: `Bearer ${key}` })
const refusedOf = (accountId: string): Promise<readonly RefusedCount[]> =>
  service.store.sumRefused({ accountId, fromMs: 0, untilMs: Date.now(), limit: 100 })
const countsOf = async (accountId: string): Promise<Record<string, number>> =>
  Object.fromEntries((await refusedOf(accountId)).map(({ code, requests }) => [code, requests]))

beforeAll(async () => {
  ;({ service } = await startWeb())
  visitor = await signedInTo(service)
  const revoked = await service.addNamedKey('the old one')
  await service.revoke(revoked.stored.id)
  const limited = await service.addLimitedKey({ addresses: ['203.0.113.0/24'] })
  for (let count = 0; count < 3; count++)
    ids['key_revoked'] = idOf(await service.chat({}, withKey(revoked.key.reveal())))
  for (let count = 0; count < 2; count++) ids['model_not_found'] = idOf(await service.chat({ model: 'no-such-model' }))
  ids['invalid_json'] = idOf(await service.post('/chat/completions', '{'))
  ids['key_address_not_allowed'] = idOf(await service.chat({}, withKey(limited.key.reveal())))
  const socket = await SocketClient.open(service)
  socket.create({ model: 'no-such-model-either' })
  await vi.waitFor(() => expect(socket.waiting.length).toBe(1))
  socket.socket.terminate()
})
afterAll(() => service.stop())

test('rejections are counted by error, over HTTP and WebSockets, for every state of a key', async () => {
  await vi.waitFor(
    async () =>
      expect(await countsOf(service.account.id)).toEqual({
        key_revoked: 3,
        model_not_found: 3,
        invalid_json: 1,
        key_address_not_allowed: 1,
      }),
    { timeout: 5000 },
  )
  const [last] = (await refusedOf(service.account.id)).filter(({ code }) => code === 'key_revoked')
  const [key] = (await service.store.listKeys(service.account.id, 9)).filter(({ name }) => name === 'the old one')
  expect(last).toMatchObject({ lastRequestId: ids['key_revoked'], lastKeyId: key!.id })
})

test('admitted requests have a record and are not counted, and an unknown key counts for no account', async () => {
  const { account, key } = await service.addAccount('another', 'max')
  for (const provider of service.providers)
    provider.script(Array.from({ length: 5 }, () => ({ do: 'status', status: 503 }) as const))
  expect((await service.chat({}, withKey(key))).status).toBe(503)
  for (const provider of service.providers) provider.script([])
  expect((await service.chat({}, withKey(mintKey(systemRandom()).reveal()))).status).toBe(401)
  expect((await service.post('/chat/completions', {}, { authorization: '' })).status).toBe(401)
  expect((await service.chat({}, withKey(key))).status).toBe(200)
  expect((await service.post('/nothing', {}, withKey(key))).status).toBe(404)
  await vi.waitFor(async () => expect(await countsOf(account.id)).toEqual({ not_found: 1 }), { timeout: 5000 })
})

test('a suspended account learns why its requests are rejected', async () => {
  const { account, key } = await service.addAccount('suspended', 'max')
  await service.suspend(account.id)
  await vi.waitFor(async () => expect((await service.chat({}, withKey(key))).status).toBe(401), { timeout: 5000 })
  await vi.waitFor(async () => expect(await countsOf(account.id)).toMatchObject({ key_inactive: 1 }), { timeout: 5000 })
})

test('Activity shows rejections with the last request and the fix, and none under a filter that excludes them', async () => {
  const text = await (await visitor.get('/activity')).text()
  expect(text).toMatch(/8\s+requests were rejected\s+in the last 7 days/)
  for (const [code, id] of Object.entries(ids)) {
    expect(text).toContain(`href="/docs/errors/${code}"`)
    if (code !== 'model_not_found') expect(text).toContain(id)
  }
  expect(text).toContain('Someone with access to the account, or an operator, revoked or rotated this key')
  expect(text).toContain('the old one')
  const today = new Date().toISOString().slice(0, 10)
  expect(await (await visitor.get(`/activity?day=${today}`)).text()).toMatch(/requests? (was|were) rejected/)
  for (const filter of ['day=2020-01-01', 'outcome=answered', 'profile=svc-router/frontier', 'key=playground'])
    expect(await (await visitor.get(`/activity?${filter}`)).text()).not.toMatch(/requests? (was|were)\s+rejected/)
})

test('the command line shows the same counts', async () => {
  const run = async (...more: string[]): Promise<{ stdout: string; stderr: string }> =>
    promisify(execFile)(
      process.execPath,
      [
        main,
        'requests',
        '--account',
        'tester',
        ...more,
        '--config',
        join(service.folder, 'svc-router.yaml'),
        '--data',
        service.config.dataDir,
      ],
      { timeout: 30_000 },
    )
  expect(JSON.parse((await run('--refused', '--json')).stdout)).toEqual(await refusedOf(service.account.id))
  const { stdout, stderr } = await run('--refused')
  expect(stdout).toMatch(new RegExp(`^key_revoked +3 +\\S+Z +${ids['key_revoked']} +key_\\w+ +acc_\\w+$`, 'm'))
  expect(stderr).toContain('/docs/errors/')
  expect((await run()).stderr).toContain('Rejected in the last 7 days: 8.')
}, 60_000)
