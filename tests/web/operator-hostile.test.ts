import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createAdminToken } from '../../src/accounts/admin/admin-tokens.ts'
import { requestUpgrade } from '../../src/accounts/billing/upgrade-requests.ts'
import { setBudget } from '../../src/accounts/budgets.ts'
import { requestManagedAccess } from '../../src/accounts/managed-access/managed-access.ts'
import { createOperator } from '../../src/accounts/operators/operators.ts'
import { openIncident } from '../../src/accounts/status/incidents.ts'
import { fileTicket } from '../../src/accounts/support/support.ts'
import { openSqlite } from '../../src/storage/sqlite/open-sqlite.ts'
import { routes } from '../../src/web/routes.ts'
import type { Service } from '../service.ts'
import { startWeb, type Visitor } from './browser-less.ts'
import { signedOutOfConsole, changeable, enterAs, linkToken, operatorsDeps, upgradesDeps } from './operator.ts'

/** Creating a token answers with the token, other actions with a redirect. */
const tokensPath = '/operator/admin-tokens'

let service: Service
let admin: Visitor
beforeAll(async () => {
  ;({ service } = await startWeb({
    facts: { beta: { managed: true, credential_env: 'BETA_KEY' } },
    env: { BETA_KEY: 'made-up-credential' },
  }))
  ;({ visitor: admin } = await enterAs(service, 'admin', 'ada@example.com'))
})
afterAll(() => service.stop())

const accountsDeps = () => ({ ...service.accountsDeps, store: service.store })
const read = async (path: string): Promise<string> => (await admin.get(path)).text()

async function ticketOf(text: string, email = 'asker@example.com'): Promise<string> {
  const supportDeps = { ...accountsDeps(), mailTo: undefined, sendMail: undefined }
  const filed = await fileTicket(supportDeps, { accountId: null, email, requestId: '', text })
  if (!('id' in filed)) throw new Error(`refused: ${JSON.stringify(filed)}`)
  return filed.id
}

/** One of each object that the console can change, in its state before the change. */
async function someOfEach(): Promise<
  readonly (readonly [path: string, fields: Record<string, string>, event: string])[]
> {
  const { account, stored } = await service.addAccount(`each-${Math.random()}`, 'free')
  const { account: other } = await service.addAccount(`other-${Math.random()}`, 'free')
  const upgrades = upgradesDeps(service)
  const [yes, no] = [await requestUpgrade(upgrades, account.id, 'pro'), await requestUpgrade(upgrades, other.id, 'pro')]
  const [in1, in2] = [
    await requestManagedAccess(accountsDeps(), account.id),
    await requestManagedAccess(accountsDeps(), other.id),
  ]
  const incident = await openIncident(accountsDeps(), { title: 'Slow', impact: 'minor', text: 'We look.' })
  const ticket = await ticketOf('Every request fails.')
  const helper = await createOperator(operatorsDeps(service), `h${Math.random()}@example.com`, 'viewer')
  const minted = await createAdminToken(accountsDeps(), { name: 'deploy', scope: 'read', days: 1 })
  const limited = {
    scope: 'account',
    subject: '',
    unit: 'tokens',
    window: 'day',
    rolling: false,
    limit: 1_000,
  } as const
  const budget = await setBudget(accountsDeps(), other.id, limited, 'operator', [])
  const of = `/operator/accounts/${account.id}`
  return [
    [`${of}/budgets`, { scope: 'account', unit: 'tokens', window: 'day', amount: '1000' }, 'budget.set'],
    [`/operator/accounts/${other.id}/budgets/${budget.id}/remove`, {}, 'budget.removed'],
    [`${of}/plan`, { plan: 'max' }, 'account.plan_changed'],
    [`${of}/suspend`, {}, 'account.suspended'],
    [`${of}/resume`, {}, 'account.resumed'],
    [`${of}/keys/${stored.id}/revoke`, {}, 'key.revoked'],
    [`/operator/accounts/${other.id}/keys/revoke-all`, {}, 'key.revoked'],
    [`/operator/requests/${yes.id}/approve`, {}, 'upgrade.approved'],
    [`/operator/requests/${no.id}/reject`, {}, 'upgrade.rejected'],
    [`/operator/managed-access/${in1.id}/approve`, {}, 'managed.approved'],
    [`/operator/managed-access/${in2.id}/reject`, {}, 'managed.rejected'],
    ['/operator/managed-access/on', {}, 'managed.switched_on'],
    ['/operator/managed-access/resale/beta', { note: 'CONTRACT-17' }, 'managed.resale_recorded'],
    ['/operator/managed-access/resale/beta/revoke', {}, 'managed.resale_revoked'],
    ['/operator/managed-access/off', {}, 'managed.switched_off'],
    ['/operator/backends/alpha/drain', { reason: 'cost' }, 'backend.drained'],
    ['/operator/backends/alpha/undrain', {}, 'backend.undrained'],
    ['/operator/backends/alpha/quarantine', { reason: 'credential' }, 'backend.quarantined'],
    ['/operator/backends/alpha/release', {}, 'backend.released'],
    ['/operator/incidents', { title: 'Down', impact: 'major', text: 'It is down.' }, 'incident.opened'],
    [`/operator/incidents/${incident.id}`, { state: 'monitoring', text: 'Better.' }, 'incident.updated'],
    [`/operator/incidents/${incident.id}`, { state: 'resolved', text: 'Over.' }, 'incident.resolved'],
    [`/operator/tickets/${ticket}/close`, {}, 'ticket.closed'],
    [`/operator/tickets/${ticket}/reopen`, {}, 'ticket.reopened'],
    ['/operator/operators', { email: `n${Math.random()}@example.com`, role: 'viewer' }, 'operator.created'],
    [`/operator/operators/${helper.id}/role`, { role: 'support' }, 'operator.role_changed'],
    [`/operator/operators/${helper.id}/remove`, {}, 'operator.removed'],
    [tokensPath, { name: 'deploy', scope: 'write', days: '1' }, 'admin_token.created'],
    [`${tokensPath}/${minted.token.id}/revoke`, {}, 'admin_token.revoked'],
  ]
}

async function renameHead(from: string, to: string): Promise<void> {
  const db = await openSqlite(service.config.dataDir)
  await db.schema.alterTable(from).renameTo(to).execute()
  await db.destroy()
}

test('the page shows whether managed access works at this moment, not the result of an earlier check', async () => {
  const lead = (): Promise<string> => read('/operator/managed-access')
  await admin.post('/operator/managed-access/resale/beta', { note: 'CONTRACT-18' })
  await admin.post('/operator/managed-access/on')
  await expect.poll(lead, { timeout: 3_000 }).toContain('Managed access is on for beta.')
  await renameHead('audit_head', 'audit_head_away')
  const gone = performance.now()
  await expect.poll(lead, { timeout: 3_000, interval: 20 }).toContain('Managed access is off: no account uses')
  const tookMs = performance.now() - gone
  await renameHead('audit_head_away', 'audit_head')
  // One second, plus the time that a busy machine needs for a page.
  expect(tookMs).toBeLessThan(1_500)
  await admin.post('/operator/managed-access/resale/beta/revoke')
  await admin.post('/operator/managed-access/off')
})

describe('every console action', () => {
  test('every changing route is covered here', async () => {
    const tried = new Set(
      (await someOfEach()).map(([path]) => path.replaceAll(/(acc|bud|key|upg|mar|inc|tic|opr|adt)_\w+/g, ':')),
    )
    const known = routes.filter(({ method, access }) => method === 'POST' && access === 'operator')
    const apart = /sign-out|confirm|\/accounts$|\/audit\//
    for (const { path } of known.filter((route) => !apart.test(route.path))) {
      const shape = path.replace(':backendId', 'alpha').replace(':provider', 'beta').replaceAll(/:\w+/g, ':')
      expect([...tried], path).toContain(shape)
    }
  })

  test('every action appends exactly one audit event, with its operator', async () => {
    for (const [path, fields, type] of await someOfEach()) {
      const before = (await service.store.auditHead()).sequence
      const response = await admin.post(path, fields)
      expect(response.status, `${path} ${await response.text()}`).toBe(path === tokensPath ? 200 : 303)
      const events = await service.store.listAudit({ limit: 9, fromSequence: before + 1 })
      // The managed access gate appends its own events, as the service.
      const own = events.filter(({ actor }) => actor.kind !== 'system')
      expect(own.map(({ event, actor }) => [event.type, actor.kind])).toEqual([[type, 'operator']])
    }
  })

  test('no action takes effect if its audit event cannot be stored', async () => {
    const each = await someOfEach()
    const csrf = await admin.csrf()
    const before = await changeable(service)
    await renameHead('audit_head', 'audit_head_away')
    const made: string[] = []
    // An impossible action, such as resuming an active account, is rejected before any write.
    for (const [path, fields] of each) if ((await admin.post(path, { ...fields, csrf })).status === 303) made.push(path)
    const after = await changeable(service)
    await renameHead('audit_head_away', 'audit_head')
    expect(after).toBe(before)
    expect(made).toEqual([`/operator/accounts/${each[0]![0].split('/')[3]}/resume`])
  })
})

const hostile = [
  '<script>alert(1)</script>',
  '"><img src=x onerror=alert(1)>',
  '\u202Egnp.exe\u2066\u0000\u0007',
  '[click](javascript:alert(1)) **b** `c`',
  "'; drop table accounts; --",
  '__proto__',
  'x'.repeat(10_000),
  '99999999999999999999',
  '-1',
  '1e9',
  '%',
  '\uD800',
]

describe('hostile text', () => {
  test('hostile text in an address harms no page', async () => {
    const names = [
      'before',
      'account',
      'event',
      'next',
      'done',
      'open',
      'closed',
      'running',
      'keys',
      'from',
      'requested',
    ]
    const more = ['over', 'profile', 'format', 'plan', 'tokens', 'stream', 'token', 'approved']
    for (const { method, path, access } of routes) {
      if (method !== 'GET' || (access !== 'operator' && access !== 'console_sign_in')) continue
      for (const text of hostile) {
        const query = new URLSearchParams([...names, ...more].map((name) => [name, text.slice(0, 600)]))
        const filled = path
          .replace(':accountId', service.account.id)
          .replace(':backendId', 'alpha')
          .replaceAll(/:\w+/g, encodeURIComponent(text.slice(0, 200).toWellFormed()))
        const response = await admin.get(`${filled}?${query.toString()}`)
        const body = await response.text()
        expect(response.status, `${path} ${text.slice(0, 20)}`).toBeLessThan(500)
        expect(body, path).not.toMatch(/<script>alert|<img src=x|href="javascript:/)
      }
    }
  }, 60_000)

  test('incident text is shown literally to operators and the public', async () => {
    for (const text of hostile.slice(0, 5))
      expect(
        (await admin.post('/operator/incidents', { title: text.slice(0, 100), impact: 'minor', text })).status,
      ).toBe(303)
    expect(
      (await admin.post('/operator/incidents', { title: 'x', impact: 'minor', text: 'x'.repeat(10_000) })).status,
    ).toBe(422)
    for (const path of ['/operator/incidents', '/status']) {
      const page = await read(path)
      expect(page).not.toMatch(/<script>alert|<img src=x|href="javascript:/)
    }
    for (const path of ['/status.json', '/api/v2/summary.json'])
      expect(JSON.stringify(await (await admin.get(path)).json())).toContain('<script>alert(1)</script>')
  })

  test('ticket text is escaped, and its address links to nothing else', async () => {
    const id = await ticketOf(`${hostile[0]}\n${hostile[1]}\n${hostile[2]}`, 'all%40x.example?cc=evil@y.example')
    for (const path of [`/operator/tickets/${id}`, '/operator/tickets'])
      expect(await read(path)).not.toMatch(/<script>alert|<img src=x/)
    expect(await read(`/operator/tickets/${id}`)).toContain('href="mailto:all%2540x.example%3Fcc%3Devil%40y.example"')
  })

  test('a hostile return path leads nowhere else', async () => {
    const { operator } = await enterAs(service, 'viewer', 'next@example.com')
    for (const next of [
      '//evil.example',
      '/\\evil.example',
      'https://evil.example',
      '/operator/..//evil.example',
      '/account',
      '/operatorx',
      '/operator\n/x',
      'javascript:alert(1)',
      '/operator/%2e%2e//evil.example',
    ]) {
      const visitor = signedOutOfConsole(service)
      const answer = await visitor.post('/operator/sign-in/link', {
        token: await linkToken(service, operator.id),
        next,
      })
      const to = new URL(answer.headers.get('location')!, service.config.appUrl)
      expect([to.origin, to.pathname.startsWith('/operator')], next).toEqual([service.config.appUrl, true])
    }
  })
})

test('an account that requests managed access repeatedly does not push others off the list', async () => {
  const { account } = await service.addAccount('served long ago', 'free')
  const { id } = await requestManagedAccess(accountsDeps(), account.id)
  await admin.post(`/operator/managed-access/${id}/approve`)
  const db = await openSqlite(service.config.dataDir)
  const over = { account_id: account.id, state: 'withdrawn', created_at_ms: Date.now() + 1_000, decided_at_ms: 1 }
  const rows = Array.from({ length: 1_001 }, (_, n) => ({ ...over, id: `mar_${n}` }))
  await db.insertInto('managed_requests').values(rows).execute()
  await db.destroy()
  expect(await read('/operator/managed-access?approved=0')).toContain(id)
})
