import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createAdminToken } from '../../../src/accounts/admin/admin-tokens.ts'
import { createOperator, changeOperatorRole, removeOperator } from '../../../src/accounts/operators/operators.ts'
import { adminOperations, type AdminOperation } from '../../../src/api-docs/admin-operations.ts'
import type { AdminScope } from '../../../src/domain/admin-tokens.ts'
import type { Actor } from '../../../src/domain/audit.ts'
import { Service } from '../../service.ts'

let service: Service
let write: string
let read: string
beforeAll(async () => {
  service = await Service.start({ settings: { admin_api: { enabled: true } } })
  write = await mint('write')
  read = await mint('read')
})
afterAll(() => service.stop())

async function mint(scope: AdminScope, actor: Actor = { kind: 'cli' }): Promise<string> {
  const deps = { ...service.accountsDeps, store: service.store, actor }
  const { secret } = await createAdminToken(deps, { name: `${scope} token`, scope, days: 1 })
  return secret.reveal()
}

interface Answer {
  readonly status: number
  readonly headers: Headers
  // The tests look into bodies of many shapes.
  // oxlint-disable-next-line typescript/no-explicit-any
  readonly body: any
}

async function ask(method: string, path: string, body?: unknown, token: string | undefined = write): Promise<Answer> {
  const response = await fetch(`${service.config.appUrl}/admin/v1${path}`, {
    method,
    headers: {
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    },
    ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  })
  return { status: response.status, headers: response.headers, body: await response.json() }
}

/** Sends the headers of a request, and never its body. */
async function startBody(path: string, token: string): Promise<Socket> {
  const { hostname, port, host } = new URL(service.config.appUrl)
  const socket = connect(Number(port), hostname)
  socket.on('error', () => {})
  await once(socket, 'connect')
  socket.write(
    `POST /admin/v1${path} HTTP/1.1\r\nhost: ${host}\r\nauthorization: Bearer ${token}\r\n` +
      'content-type: application/json\r\ncontent-length: 100\r\n\r\n{',
  )
  return socket
}

async function lastEvent(): Promise<{ actor: Actor; event: { type: string } } | undefined> {
  const [entry] = await service.store.listAudit({ limit: 1 })
  return entry
}

/** Asks again until the running service follows, for at most a second. */
async function within1s(check: () => Promise<boolean>): Promise<boolean> {
  const end = Date.now() + 1_000
  while (Date.now() < end) {
    if (await check()) return true
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  return false
}

const chat = async (key: string, model: string): Promise<number> => {
  const response = await fetch(`${service.baseUrl}/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json', 'user-agent': 'test/1' },
    body: JSON.stringify({ model, messages: [{ role: 'user', content: 'Hello' }] }),
  })
  await response.text()
  return response.status
}

test('without a token, with an account key, and with a forged or revoked token, every operation is refused', async () => {
  for (const { method, path } of Object.values<AdminOperation>(adminOperations)) {
    const at = path.replace('/admin/v1', '').replace('{id}', 'x')
    const withKey = await ask(method, at, undefined, service.key)
    expect([withKey.status, withKey.body.error.code]).toEqual([401, 'account_key'])
  }
  expect((await ask('GET', '/state', undefined, '')).body.error.code).toBe('token_missing')
  const forged = await ask('GET', '', undefined, `sk_svc_admin_${'a'.repeat(43)}`)
  expect([forged.status, forged.headers.get('www-authenticate')]).toEqual([401, 'Bearer'])
})

test('a token of the admin API is no API key', async () => {
  expect(await chat(write, 'svc-router/frontier')).toBe(401)
})

test('a token that may read cannot change anything', async () => {
  const { sequence } = await service.store.auditHead()
  for (const { method, path, scope } of Object.values<AdminOperation>(adminOperations)) {
    const at = path.replace('/admin/v1', '').replace('{id}', 'nothing')
    const { status, body } = await ask(method, at, method === 'GET' || method === 'DELETE' ? undefined : {}, read)
    if (scope === 'write') expect([path, status, body.error.code]).toEqual([path, 403, 'scope_missing'])
    else expect([path, status]).not.toEqual([path, 403])
  }
  expect((await service.store.auditHead()).sequence).toBe(sequence)
})

test("an operator's token loses writing with the role, and everything with the operator", async () => {
  const deps = { ...service.accountsDeps, store: service.store.operators }
  const admin = await createOperator(deps, 'first@example.com', 'admin')
  const second = await createOperator(deps, 'second@example.com', 'admin')
  const token = await mint('write', { kind: 'operator', operatorId: second.id })
  expect((await ask('GET', '', undefined, token)).body).toMatchObject({ scope: 'write' })
  await changeOperatorRole(deps, second.id, 'support')
  expect((await ask('POST', '/accounts', { name: 'no' }, token)).status).toBe(403)
  await removeOperator(deps, second.id)
  expect((await ask('GET', '', undefined, token)).status).toBe(401)
  expect(admin.role).toBe('admin')
})

test('accounts and keys are created, changed, and deleted; a key is shown once and works', async () => {
  const created = await ask('POST', '/accounts', { name: 'acme & co', plan: 'pro' })
  expect(created.body).toMatchObject({ object: 'account', name: 'acme & co', plan: 'pro', suspended: false })
  const { id } = created.body
  expect(await lastEvent()).toMatchObject({
    actor: { kind: 'token' },
    event: { type: 'account.created', accountId: id },
  })
  expect((await ask('POST', '/accounts', { name: 'acme & co' })).body.error.code).toBe('account_name_taken')
  const { body: key } = await ask('POST', `/accounts/${id}/keys`, { name: 'ci', requests_per_minute: 5 })
  expect(key.key).toMatch(/^sk_svc_\w{38}$/)
  expect(await chat(key.key, 'svc-router/frontier')).toBe(200)
  const listed = await ask('GET', `/accounts/${id}/keys`)
  expect(listed.body.data).toMatchObject([
    { id: key.id, name: 'ci', state: 'active', limits: { requests_per_minute: 5 } },
  ])
  expect(JSON.stringify(listed.body)).not.toContain(key.key)
  expect(
    (await ask('PATCH', `/keys/${key.id}`, { requests_per_minute: null, addresses: ['203.0.113.0/24'] })).body.limits,
  ).toEqual({
    addresses: ['203.0.113.0/24'],
  })
  expect(await within1s(async () => (await chat(key.key, 'svc-router/frontier')) === 403)).toBe(true)
  expect((await ask('PATCH', `/accounts/${id}`, { plan: 'max', suspended: true })).body).toMatchObject({
    plan: 'max',
    suspended: true,
  })
  expect((await ask('DELETE', `/keys/${key.id}`)).body.state).toBe('revoked')
  expect((await ask('DELETE', `/accounts/${id}?name=other`)).body.error.code).toBe('account_name_mismatch')
  expect((await ask('DELETE', `/accounts/${id}?name=${encodeURIComponent('acme & co')}`)).body.deleted).toBe(true)
  expect((await ask('GET', `/accounts/${id}`)).status).toBe(404)
})

test('a plan, a backend, and a profile that a file declares serve within a second, without a restart', async () => {
  const file = {
    version: 1,
    plans: { team: { name: 'Team', requests_per_minute: 60, requests_per_month: 500 } },
    backends: { extra: { provider: 'alpha', model: 'another' } },
    profiles: { 'my/fast': { backends: ['extra'] } },
    accounts: { builders: { plan: 'team', keys: { ci: { profiles: ['my/fast'] } } } },
  }
  const { body: plan } = await ask('POST', '/plan', { file }, read)
  expect(plan.changes.map(({ path }: { path: string[] }) => path.join('.'))).toEqual([
    'plans.team',
    'backends.extra',
    'profiles.my/fast',
    'accounts.builders',
    'accounts.builders.keys.ci',
  ])
  const { body: applied } = await ask('POST', '/apply', { file, plan: plan.plan })
  expect(applied.keys).toMatchObject([{ account: 'builders', name: 'ci' }])
  const [{ key }] = applied.keys
  expect(await within1s(async () => (await chat(key, 'my/fast')) === 200)).toBe(true)
  expect(JSON.parse(service.providers[0]!.captured().at(-1)!.body)).toMatchObject({ model: 'another' })
  const again = await ask('POST', '/apply', { file })
  expect(again.body).toMatchObject({ changes: [], keys: [] })
  const { body: state } = await ask('GET', '/state', undefined, read)
  const { body: adopting } = await ask('POST', '/plan', { file: state.file, prune: true }, read)
  for (const change of adopting.changes) expect(change).toMatchObject({ fields: [], source: 'configuration' })
  expect(adopting.changes).toContainEqual(expect.objectContaining({ action: 'create', path: ['plans', 'free'] }))

  expect((await ask('POST', '/backends/extra/drain', { reason: 'maintenance' })).status).toBe(200)
  expect(await within1s(async () => (await chat(key, 'my/fast')) === 503)).toBe(true)
  const { body: drifted } = await ask('POST', '/plan', { file }, read)
  expect(drifted.undeclared).toContainEqual({ path: ['backends', 'extra', 'use'], managed: false, value: 'drained' })
  expect((await ask('GET', '/backends/extra', undefined, read)).body).toMatchObject({
    use: 'drained',
    source: 'declared',
  })
  expect((await ask('POST', '/backends/extra/undrain')).status).toBe(200)
  expect(await within1s(async () => (await chat(key, 'my/fast')) === 200)).toBe(true)
})

test('pruning needs the approved plan, and an outdated one changes nothing', async () => {
  const file = { version: 1, plans: { old: { name: 'Old', requests_per_minute: 1, requests_per_month: 1 } } }
  await ask('POST', '/apply', { file })
  const empty = { version: 1, plans: { team: { name: 'Team', requests_per_minute: 60, requests_per_month: 500 } } }
  expect((await ask('POST', '/apply', { file: empty, prune: true })).body.error.code).toBe('plan_required')
  const { body: plan } = await ask('POST', '/plan', { file: empty, prune: true })
  await ask('PUT', '/plans/other', { name: 'Other', requests_per_minute: 1, requests_per_month: 1 })
  const kept = await ask('POST', '/apply', { file: empty, prune: true, plan: 'a'.repeat(16) })
  expect([kept.status, kept.body.error.code]).toEqual([409, 'plan_outdated'])
  // What was changed one by one belongs to no file, so the plan is the same.
  expect((await ask('POST', '/apply', { file: empty, prune: true, plan: plan.plan })).status).toBe(200)
  expect((await ask('GET', '/plans/other')).body).toMatchObject({ managed: false, source: 'declared' })
  expect((await ask('DELETE', '/plans/other')).body.deleted).toBe(true)
  expect((await ask('DELETE', '/plans/free')).status).toBe(404)
})

test('a plan with accounts cannot be deleted, and says why', async () => {
  await ask('PUT', '/plans/busy', { name: 'Busy', requests_per_minute: 1, requests_per_month: 1 })
  // Even before this process has noticed the plan.
  expect((await ask('POST', '/accounts', { name: 'on busy', plan: 'busy' })).body).toMatchObject({ plan: 'busy' })
  const { status, body } = await ask('DELETE', '/plans/busy')
  expect([status, body.error.problems]).toEqual([
    422,
    [{ path: 'plans.busy', message: '1 account is on this plan', fix: 'move them to another plan first' }],
  ])
})

/** A hostile file, and the path that the refusal must name. */
const hostile: readonly [what: string, file: string | object, path: string | undefined][] = [
  ['an unknown section', { version: 1, operators: {} }, 'operators'],
  [
    'an unknown field',
    { version: 1, plans: { a: { name: 'A', requests_per_minute: 1, requests_per_month: 1, price: 1 } } },
    'plans.a.price',
  ],
  ['another version', { version: 2 }, 'version'],
  ['a duplicate name', '{"file":{"version":1,"accounts":{"a":{"plan":"free"},"a":{"plan":"max"}}}}', 'file.accounts.a'],
  [
    'a secret',
    { version: 1, profiles: { 'my/p': { description: 'sk-proj-abc123def456ghi789' } } },
    'profiles.my/p.description',
  ],
  [
    'a credential instead of its variable',
    { version: 1, backends: { b: { provider: 'openai', model: 'm', credential_env: 'hunter2' } } },
    'backends.b.credential_env',
  ],
  [
    "the service's own secret",
    { version: 1, backends: { b: { provider: 'openai', model: 'm', credential_env: 'SVC_ROUTER_PEPPER' } } },
    'backends.b.credential_env',
  ],
  [
    'another server for a credential',
    { version: 1, providers: { evil: { preset: 'custom', base_url: 'https://evil.example' } } },
    'providers',
  ],
  [
    'an unset variable',
    {
      version: 1,
      backends: { b: { provider: 'openai', model: 'm', credential_env: 'NOT_SET_HERE', account: 'tester' } },
    },
    'backends.b.credential_env',
  ],
  ['an unknown plan', { version: 1, accounts: { x: { plan: 'none' } } }, 'accounts.x.plan'],
  [
    'a rate above the plan',
    { version: 1, accounts: { x: { plan: 'free', keys: { k: { requests_per_minute: 21 } } } } },
    'accounts.x.keys.k.requests_per_minute',
  ],
  [
    'an unknown profile',
    { version: 1, accounts: { x: { plan: 'free', keys: { k: { profiles: ['no/such'] } } } } },
    'accounts.x.keys.k.profiles',
  ],
  [
    'no address',
    { version: 1, accounts: { x: { plan: 'free', keys: { k: { addresses: ['here'] } } } } },
    'accounts.x.keys.k.addresses',
  ],
  [
    'a name with a control character',
    { version: 1, accounts: { 'a\u001b[2J': { plan: 'free' } } },
    'accounts.a\u001b[2J',
  ],
  [
    'a name from the prototype',
    '{"file":{"version":1,"accounts":{"__proto__":{"plan":"none"}}}}',
    'accounts.__proto__',
  ],
  ['deep nesting', `{"file":${'['.repeat(100_000)}${']'.repeat(100_000)}}`, undefined],
  ['no JSON', '{"file":', undefined],
  ['a list', '[]', undefined],
]

test.each(hostile)('%s is refused with its path, at once, and changes nothing', async (_, file, path) => {
  const { sequence } = await service.store.auditHead()
  const began = performance.now()
  const { status, body } = await ask('POST', '/apply', typeof file === 'string' ? file : { file })
  expect(performance.now() - began).toBeLessThan(1_000)
  expect([400, 422]).toContain(status)
  if (path !== undefined) expect(body.error.problems.map((problem: { path: string }) => problem.path)).toContain(path)
  expect(JSON.stringify(body)).not.toContain('abc123def456')
  expect((await service.store.auditHead()).sequence).toBe(sequence)
})

test('of many unknown fields, the first are named', async () => {
  const unknown = Object.fromEntries(Array.from({ length: 20_000 }, (_, index) => [`f${index}`, 1]))
  expect((await ask('POST', '/accounts', { ...unknown, name: 'x' })).body.error.problems).toHaveLength(20)
})

test('a token that sends bodies slowly does not keep others out', async () => {
  const socket = await Promise.all(Array.from({ length: 8 }, () => startBody('/plan', read)))
  try {
    await delay(100)
    expect((await ask('GET', '/plans', undefined, read)).status).toBe(429)
    expect((await ask('GET', '/plans', undefined, write)).status).toBe(200)
  } finally {
    for (const each of socket) each.destroy()
  }
  await expect.poll(async () => (await ask('GET', '/plans', undefined, read)).status).toBe(200)
})

test('pages of accounts end, also if the last account of a page is deleted meanwhile', async () => {
  const { body } = await ask('GET', '/accounts?after=acc_deleted', undefined, read)
  expect(body.error.problems).toMatchObject([{ path: 'after' }])
})

test('an ID that no database could look up is unknown', async () => {
  for (const id of ['a%00', '%1b[2J', '%']) expect((await ask('GET', `/accounts/${id}`)).status).toBe(404)
})

test('a body that is too large, of another type, or with unknown fields is refused', async () => {
  expect((await ask('POST', '/apply', `{"file":"${'x'.repeat(1024 * 1024)}"}`)).status).toBe(413)
  const form = await fetch(`${service.config.appUrl}/admin/v1/accounts`, {
    method: 'POST',
    headers: { authorization: `Bearer ${write}`, 'content-type': 'application/x-www-form-urlencoded' },
    body: 'name=x',
  })
  expect(form.status).toBe(415)
  expect((await ask('POST', '/accounts', { name: 'x', planet: 'free' })).body.error.problems).toMatchObject([
    { path: 'planet' },
  ])
  expect((await ask('POST', '/accounts', {})).body.error.problems).toMatchObject([{ path: 'name' }])
  expect((await ask('PUT', '/accounts')).status).toBe(405)
  expect((await ask('GET', '/nothing')).status).toBe(404)
})

test('the OpenAPI document lists every operation', async () => {
  const { body } = await ask('GET', '/openapi.json', undefined, read)
  const listed = Object.entries<object>(body.paths).flatMap(([path, item]) =>
    Object.keys(item).map((method) => `${method.toUpperCase()} ${path}`),
  )
  const known = Object.values<AdminOperation>(adminOperations).map(({ method, path }) => `${method} ${path}`)
  expect(listed.toSorted()).toEqual(known.toSorted())
})

test('refused requests of a token count, too', async () => {
  const token = await mint('read')
  let status = 404
  // The limit is 600 in a fixed minute, which may end in between.
  for (let count = 0; count < 1_202 && status === 404; count++) ({ status } = await ask('GET', '/no', undefined, token))
  expect(status).toBe(429)
})

test('an address that keeps guessing is refused, and a working token still works', async () => {
  let status = 401
  // The limit is 60 in a fixed span, which may end in between.
  for (let count = 0; count < 121 && status === 401; count++)
    ({ status } = await ask('GET', '', undefined, `sk_svc_admin_${'b'.repeat(43)}`))
  expect(status).toBe(429)
  expect((await ask('GET', '')).status).toBe(200)
})

test('without the setting there is no admin API', async () => {
  const other = await Service.start()
  try {
    expect((await fetch(`${other.config.appUrl}/admin/v1`)).status).toBe(404)
  } finally {
    await other.stop()
  }
})

test('budgets are set, listed with their state, given another limit, and removed, as the operator’s', async () => {
  const { account, stored } = await service.addAccount('spender', 'max')
  const path = `/accounts/${account.id}/budgets`
  const set = await ask('POST', path, { usd: 0.1, window: 'day' })
  expect(set.body).toMatchObject({
    object: 'budget',
    scope: 'account',
    unit: 'usd',
    window: 'day',
    rolling: false,
    set_by: 'operator',
    limit: 0.1,
    spent: 0,
    held: 0,
    left: 0.1,
  })
  expect(await lastEvent()).toMatchObject({
    actor: { kind: 'token' },
    event: { type: 'budget.set', amount: 100_000_000 },
  })
  expect((await ask('POST', path, { usd: 5, window: 'day' })).body).toMatchObject({ id: set.body.id, limit: 5 })
  const ofKey = await ask('POST', path, { tokens: 5_000, window: 'week', key: stored.id })
  expect(ofKey.body).toMatchObject({ scope: 'key', key: stored.id, unit: 'tokens', rolling: true, limit: 5_000 })
  expect((await ask('GET', path)).body.data).toHaveLength(2)
  expect((await ask('DELETE', `${path}?budget=${set.body.id}`)).body).toMatchObject({ deleted: true })
  expect((await ask('DELETE', `${path}?budget=${set.body.id}`)).status).toBe(404)
  expect((await ask('GET', path)).body.data).toHaveLength(1)
  expect((await ask('POST', path, { usd: 1, tokens: 1 })).status).toBe(400)
  expect((await ask('POST', path, { usd: 0 })).status).toBe(422)
  expect(await ask('POST', path, { usd: 0.010_000_000_1 })).toMatchObject({
    status: 400,
    body: { error: { problems: [{ path: 'usd', message: 'it must be an amount such as 20 or 0.50' }] } },
  })
  expect((await ask('POST', path, { usd: 1, profile: 'no/such' })).status).toBe(422)
  expect((await ask('GET', '/accounts/acc_none/budgets')).status).toBe(404)
})
