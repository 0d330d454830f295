import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { verifyExport } from '../../src/accounts/audit/audit-export.ts'
import { requestUpgrade } from '../../src/accounts/billing/upgrade-requests.ts'
import { readCheckpoint } from '../../src/domain/checkpoint.ts'
import type { Operator } from '../../src/domain/operators.ts'
import { openSqlite } from '../../src/storage/sqlite/open-sqlite.ts'
import { routes } from '../../src/web/routes.ts'
import type { Service } from '../service.ts'
import { startWeb, type Visitor } from './browser-less.ts'
import { enterAs, upgradesDeps } from './operator.ts'

let service: Service
let visitor: Visitor
let operator: Operator
beforeAll(async () => {
  ;({ service } = await startWeb())
  ;({ operator, visitor } = await enterAs(service, 'admin', 'ada@example.com'))
})
afterAll(() => service.stop())

const textOf = async (path: string): Promise<string> => (await visitor.get(path)).text()
const lastEvents = async (count: number): Promise<unknown[]> =>
  (await service.store.listAudit({ limit: count })).map(({ event, actor }) => [event.type, actor])
const by = (): unknown => ({ kind: 'operator', operatorId: operator.id })

async function post(path: string, fields: Record<string, string> = {}): Promise<string | null> {
  const response = await visitor.post(path, fields)
  expect(response.status, await response.clone().text()).toBe(303)
  return response.headers.get('location')
}

describe('accounts', () => {
  test('accounts are listed newest first, fifty a page', async () => {
    for (let n = 0; n < 60; n++) {
      // Accounts of the same millisecond are listed in any order; the first page ends here.
      if (n === 10 || n === 59) await delay(2)
      await service.addAccount(`many-${n}`, 'free')
    }
    const first = await textOf('/operator/accounts')
    expect(first).toContain('many-59')
    expect(first).not.toContain('many-9<')
    const next = /rel="next" href="([^"]+)"/.exec(first)?.[1] ?? ''
    const second = await textOf(next)
    expect(second).toContain('many-9<')
    expect(second).toContain('tester')
    expect(second).not.toContain('rel="next"')
  })

  test('an account is found by its ID, its address, or part of its name', async () => {
    await service.addEmail('owner@example.com')
    const { id } = service.account
    expect(await post('/operator/accounts', { sought: id })).toBe(`/operator/accounts/${id}`)
    expect(await post('/operator/accounts', { sought: ' Owner@Example.com' })).toBe(`/operator/accounts/${id}`)
    const named = async (sought: string): Promise<string> =>
      (await visitor.post('/operator/accounts', { sought })).text()
    expect(await named('ESTE')).toContain(`/operator/accounts/${id}`)
    for (const sought of ['%', '_____', "x' or '1'='1", 'nobody@example.com', 'acc_nothing', '\\'])
      expect(await named(sought), sought).toContain('No accounts match')
  })

  test("an account's page shows its plan, its enforced usage, and its keys without secrets", async () => {
    await service.chat()
    const text = await textOf(`/operator/accounts/${service.account.id}`)
    expect(text).toContain('Plan: Max')
    expect(text).toMatch(/<strong>1<\/strong> of [\d,]+ requests this month/)
    expect(text).toContain(`${service.key.slice(0, 11)}…${service.key.slice(-4)}`)
    expect(text).not.toContain(service.key)
    expect(text).toContain('owner@example.com')
  })

  test('many keys are paginated, and no console page is larger than 30 KB', async () => {
    const { account } = await service.addAccount('many keys', 'max')
    for (let n = 0; n < 44; n++) await service.addKey(account.id)
    const seen: string[] = []
    for (let path = `/operator/accounts/${account.id}`; path !== '';) {
      const text = await textOf(path)
      expect(Buffer.byteLength(text)).toBeLessThan(30_000)
      seen.push(...Array.from(text.matchAll(/keys\/(key_\w+)\/revoke/g), ([, id]) => id!))
      path = /rel="next" href="([^"]+)"/.exec(text)?.[1] ?? ''
    }
    const keys = await service.store.listKeys(account.id, 100)
    expect(seen).toEqual(keys.map(({ id }) => id))
    for (const path of ['/operator', '/operator/accounts', '/operator/audit', '/operator/operators'])
      expect(Buffer.byteLength(await textOf(path)), path).toBeLessThan(30_000)
  })

  test('an operator changes a plan, suspends, and resumes an account, and the API follows', async () => {
    const { account, key } = await service.addAccount('changing', 'max')
    const path = `/operator/accounts/${account.id}`
    const ask = async (): Promise<number> => (await service.chat({}, { authorization: `Bearer ${key}` })).status
    expect(await post(`${path}/plan`, { plan: 'free' })).toBe(`${path}?done=plan-changed`)
    expect((await service.store.findAccount(account.id))?.planId).toBe('free')
    await post(`${path}/suspend`)
    await post(`${path}/suspend`)
    await expect.poll(ask, { timeout: 2000 }).toBe(401)
    expect(await textOf(path)).toContain('This account is suspended')
    await post(`${path}/resume`)
    await expect.poll(ask, { timeout: 2000 }).toBe(200)
    expect(await lastEvents(3)).toEqual([
      ['account.resumed', by()],
      ['account.suspended', by()],
      ['account.plan_changed', by()],
    ])
  })

  test('an unknown plan changes nothing', async () => {
    const response = await visitor.post(`/operator/accounts/${service.account.id}/plan`, { plan: 'none' })
    expect(response.status).toBe(403)
    expect((await service.store.findAccount(service.account.id))?.planId).toBe('max')
  })

  test('an operator revokes one key or all keys', async () => {
    const { account, stored } = await service.addAccount('leaking', 'max')
    await service.addKey(account.id)
    await service.addKey(account.id)
    const path = `/operator/accounts/${account.id}`
    await post(`${path}/keys/${stored.id}/revoke`)
    const statesOf = async (): Promise<string[]> =>
      (await service.store.listKeys(account.id, 9)).map(({ state }) => state).toSorted()
    expect(await statesOf()).toEqual(['active', 'active', 'revoked'])
    await post(`${path}/keys/revoke-all`)
    expect(await statesOf()).toEqual(['revoked', 'revoked', 'revoked'])
    expect(await lastEvents(3)).toEqual(Array.from({ length: 3 }, () => ['key.revoked', by()]))
  })
})

describe('upgrade requests', () => {
  const ask = async (name: string): Promise<{ id: string; accountId: string }> => {
    const { account } = await service.addAccount(name, 'free')
    return requestUpgrade(upgradesDeps(service), account.id, 'pro')
  }
  const planOf = async (accountId: string): Promise<string | undefined> =>
    (await service.store.findAccount(accountId))?.planId

  test('approving a request changes the plan, and rejecting it changes nothing', async () => {
    const [wanted, other] = [await ask('wanting'), await ask('hoping')]
    expect(await textOf('/operator')).toContain('2 waiting')
    const text = await textOf('/operator/requests')
    expect(text).toContain('wanting')
    expect(text).toContain('hoping')
    expect(await post(`/operator/requests/${wanted.id}/approve`)).toBe('/operator/requests?done=upgrade-approved')
    expect(await post(`/operator/requests/${other.id}/reject`)).toBe('/operator/requests?done=upgrade-rejected')
    expect([await planOf(wanted.accountId), await planOf(other.accountId)]).toEqual(['pro', 'free'])
    expect(await lastEvents(2)).toEqual([
      ['upgrade.rejected', by()],
      ['upgrade.approved', by()],
    ])
  })

  test('a request decided in the meantime is reported as decided', async () => {
    const { id, accountId } = await ask('hesitating')
    await post(`/operator/requests/${id}/reject`)
    const response = await visitor.post(`/operator/requests/${id}/approve`)
    expect([
      response.status,
      (await response.text()).includes('has been decided or withdrawn in the meantime'),
    ]).toEqual([422, true])
    expect(await planOf(accountId)).toBe('free')
  })
})

describe('the audit log', () => {
  test('the log is listed newest first, filtered by account and event', async () => {
    const { account } = await service.addAccount('traced', 'free')
    await post(`/operator/accounts/${account.id}/suspend`)
    const all = await textOf('/operator/audit')
    expect(all.indexOf('account.suspended</strong>')).toBeGreaterThan(0)
    expect(all.indexOf('account.suspended</strong>')).toBeLessThan(all.indexOf('account.created</strong>'))
    expect(all).toContain('ada@example.com')
    const own = await textOf(`/operator/audit?account=${account.id}`)
    expect(Array.from(own.matchAll(/<strong>([\w.]+)<\/strong>/g), ([, type]) => type)).toEqual([
      'account.suspended',
      'key.created',
      'account.created',
    ])
    const kind = await textOf(`/operator/audit?account=${account.id}&event=account.created`)
    expect(kind).toContain('account.created</strong>')
    expect(kind).not.toContain('key.created</strong>')
  })

  test('the log continues page by page without a gap', async () => {
    const seen: number[] = []
    for (let path = '/operator/audit'; path !== '';) {
      const text = await textOf(path)
      seen.push(...Array.from(text.matchAll(/entry (\d+)</g), ([, number]) => Number(number)))
      path = (/rel="next" href="([^"]+)"/.exec(text)?.[1] ?? '').replaceAll('&amp;', '&')
    }
    const { sequence } = await service.store.auditHead()
    expect(seen).toEqual(Array.from({ length: sequence }, (_, index) => sequence - index))
  })

  test('the log is verified on request, and the overview shows the result', async () => {
    expect(await textOf('/operator/audit')).toContain('Not verified since the service started')
    await visitor.post('/operator/audit/checkpoint')
    expect(await post('/operator/audit/verify')).toBe('/operator/audit?done=audit-verified')
    expect(await textOf('/operator/audit')).toMatch(/<span class="tag good">intact<\/span> [\d,]+ entries/)
    expect(await textOf('/operator')).toContain('intact')
  })

  test('the log is exported with the proof of its end, and verifies elsewhere', async () => {
    const signed = await visitor.post('/operator/audit/checkpoint')
    expect(signed.headers.get('content-disposition')).toMatch(/filename="svc-router-checkpoint-\d+\.json"/)
    const checkpoint = readCheckpoint(await signed.text())!
    const log = await visitor.get('/operator/audit/log.jsonl')
    expect(log.headers.get('content-type')).toContain('application/jsonl')
    const lines = (await log.text()).trim().split('\n')
    const verdict = await verifyExport(lines, [checkpoint])
    expect(verdict).toEqual({ state: 'intact', entries: lines.length, provenTo: checkpoint.sequence })
    const cut = await verifyExport(lines.slice(0, checkpoint.sequence - 1), [checkpoint])
    expect(cut.state).toBe('broken')
  })
})

describe('traffic', () => {
  test('the page and its figures show rates, failures, times, and tokens by backend', async () => {
    service.providers[0]!.script([{ do: 'status', status: 503 }])
    const answer = await service.chat({ stream: true })
    expect(await answer.text()).toContain('[DONE]')
    await expect
      .poll(async () => ((await (await visitor.get('/operator/traffic/figures')).json()) as Figures)['of-alpha-failed'])
      .toMatch(/^[1-9][\d.]*%$/)
    const figures = (await (await visitor.get('/operator/traffic/figures')).json()) as Figures
    expect(figures).toMatchObject({ 'all-failed': '0%', 'of-beta-failed': '0%', 'of-gamma-failed': '–' })
    expect(figures['of-beta-p50']).toMatch(/^\d+ ms$/)
    expect(figures['of-gamma-p50']).toBe('–')
    const page = await textOf('/operator/traffic')
    for (const name of Object.keys(figures)) expect(page, name).toContain(`data-figure="${name}"`)
    expect(page).toContain('<a href="/operator/backends/alpha">alpha</a>')
  })
})

type Figures = Readonly<Record<string, string>>

describe('one transaction for change and audit event', () => {
  beforeEach(async () => {
    const db = await openSqlite(service.config.dataDir)
    await db.schema.alterTable('audit_head').renameTo('audit_head_away').execute()
    await db.destroy()
  })

  test('the console changes nothing if the audit event cannot be stored', async () => {
    const { id } = service.account
    const [key] = await service.store.listKeys(id, 1)
    const before = JSON.stringify([
      await service.store.listAccounts(1000),
      await service.store.listKeys(id, 10),
      await service.store.operators.listOperators(10),
    ])
    for (const [path, fields] of [
      [`/operator/accounts/${id}/plan`, { plan: 'free' }],
      [`/operator/accounts/${id}/suspend`, {}],
      [`/operator/accounts/${id}/keys/${key!.id}/revoke`, {}],
      ['/operator/operators', { email: 'unwritten@example.com', role: 'viewer' }],
    ] as const)
      expect((await visitor.post(path, fields)).status, path).toBe(500)
    const after = JSON.stringify([
      await service.store.listAccounts(1000),
      await service.store.listKeys(id, 10),
      await service.store.operators.listOperators(10),
    ])
    expect(after).toBe(before)
    const db = await openSqlite(service.config.dataDir)
    await db.schema.alterTable('audit_head_away').renameTo('audit_head').execute()
    await db.destroy()
  })
})

test('no console page shows a key, a credential, a token, or a digest', async () => {
  await service.connectOwn('sk-made-up-credential-in-the-console')
  const secrets = [service.key, 'sk-made-up-credential-in-the-console', visitor.cookie.split('=')[1]!]
  for (const { method, path, access } of routes) {
    if (method !== 'GET' || access !== 'operator' || path.includes(':proofId')) continue
    const text = await textOf(path.replace(':accountId', service.account.id))
    for (const secret of secrets) expect(text, path).not.toContain(secret)
    expect(text, path).not.toMatch(/digest|sealed/i)
  }
})
