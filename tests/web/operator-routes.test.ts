import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createAdminToken } from '../../src/accounts/admin/admin-tokens.ts'
import { requestUpgrade } from '../../src/accounts/billing/upgrade-requests.ts'
import { openSession } from '../../src/accounts/identity/sessions.ts'
import { requestManagedAccess } from '../../src/accounts/managed-access/managed-access.ts'
import { openIncident } from '../../src/accounts/status/incidents.ts'
import { fileTicket } from '../../src/accounts/support/support.ts'
import { hasRole, operatorRoles, type OperatorRole } from '../../src/domain/operators.ts'
import { SkippingClock } from '../../src/simulation/skipping-clock.ts'
import type { OperatorRoute } from '../../src/web/http/route.ts'
import { routes } from '../../src/web/routes.ts'
import type { Service } from '../service.ts'
import { budgetOf, nanoPerUsd, setTestBudget } from '../test-budgets.ts'
import { startWeb, Visitor } from './browser-less.ts'
import { changeable, enterAs, upgradesDeps } from './operator.ts'

/** The meaning of the parameters of console routes. The test fails if a new one is missing here. */
type Named =
  | 'accountId'
  | 'keyId'
  | 'budgetId'
  | 'requestId'
  | 'operatorId'
  | 'proofId'
  | 'backendId'
  | 'provider'
  | 'managedId'
  | 'incidentId'
  | 'ticketId'
  | 'tokenId'

const clock = new SkippingClock()
let service: Service
let ids: Readonly<Record<Named, string>>
let account: Visitor
let nobody: Visitor
const operators = {} as Record<OperatorRole, Visitor>

beforeAll(async () => {
  ;({ service } = await startWeb({ clock }))
  nobody = new Visitor(service.config.appUrl)
  account = new Visitor(service.config.appUrl)
  const { token } = await openSession({ ...service.accountsDeps, store: service.store }, service.account.id, {
    method: 'link',
    agent: 'Tests',
  })
  account.cookie = `svc_session=${token.reveal()}`
  for (const role of operatorRoles) operators[role] = (await enterAs(service, role)).visitor
  const { operator: other, visitor } = await enterAs(service, 'viewer', 'other@example.com')
  const asked = await visitor.post('/operator/confirm')
  const request = await requestUpgrade(upgradesDeps(service), service.account.id, 'pro')
  const [key] = await service.store.listKeys(service.account.id, 1)
  const deps = { ...service.accountsDeps, store: service.store }
  const managed = await requestManagedAccess(deps, service.account.id)
  const incident = await openIncident(deps, { title: 'Slow', impact: 'minor', text: 'We look into it.' })
  const form = { accountId: null, email: 'asker@example.com', requestId: '', text: 'Every request fails.' }
  const ticket = await fileTicket({ ...deps, mailTo: undefined, sendMail: undefined }, form)
  const tokenDeps = { ...service.accountsDeps, store: service.store }
  const minted = await createAdminToken(tokenDeps, { name: 'deploy', scope: 'read', days: 1 })
  await setTestBudget(service, { limit: nanoPerUsd })
  const { budget } = await budgetOf(service)
  ids = {
    accountId: service.account.id,
    keyId: key!.id,
    budgetId: budget.id,
    tokenId: minted.token.id,
    requestId: request.id,
    operatorId: other.id,
    backendId: 'alpha',
    provider: 'beta',
    managedId: managed.id,
    incidentId: incident.id,
    ticketId: 'id' in ticket ? ticket.id : '',
    proofId: asked.headers.get('location')!.split('?')[0]!.split('/').at(-1)!,
  }
})
afterAll(() => service.stop())

const rows = routes.filter((route): route is OperatorRoute => route.access === 'operator')
const cases = rows.map((route) => [`${route.method} ${route.path}`, route] as const)

function pathOf({ path }: OperatorRoute): string {
  return path.replaceAll(/:(\w+)/g, (_, name: string) => {
    expect(Object.keys(ids), 'a parameter whose owner is known').toContain(name)
    return ids[name as Named]
  })
}

const call = (visitor: Visitor, route: OperatorRoute): Promise<Response> =>
  route.method === 'GET' ? visitor.get(pathOf(route)) : visitor.post(pathOf(route), { code: '000000' })

/** All data that the console can change, and the length of the audit log. */
async function everything(): Promise<string> {
  return `${await changeable(service)} ${(await service.store.auditHead()).sequence}`
}

test('every console path requires an operator, except the sign-in pages', () => {
  for (const { path, access } of routes)
    expect(access === 'operator' || access === 'console_sign_in', path).toBe(/^\/operator(\/|$)/.test(path))
})

test('changing anything about others needs more than the viewer role, and destructive actions need a fresh proof', () => {
  const free = ['/operator/sign-out', '/operator/confirm', '/operator/confirm/:proofId', '/operator/accounts']
  for (const { method, path, role, stepUp } of rows) {
    if (method === 'GET') expect([role, stepUp], path).toEqual(['viewer', false])
    else if (!free.includes(path) && !/^\/operator\/(audit|incidents|tickets)(\/|$)/.test(path))
      expect(stepUp, path).toBe(true)
  }
})

describe('visitors who are not signed in to the console', () => {
  test.each(cases)('a visitor is redirected to sign-in or gets a 404: %s', async (_, route) => {
    const before = await everything()
    const response = await call(nobody, route)
    if (route.method === 'GET') {
      const next = encodeURIComponent(pathOf(route))
      expect([response.status, response.headers.get('location')]).toEqual([303, `/operator/sign-in?next=${next}`])
    } else expect(response.status).toBe(404)
    expect(await everything()).toBe(before)
  })

  test.each(cases)('an account that opens a path with an ID gets a 404: %s', async (_, route) => {
    const before = await everything()
    const response = await call(account, route)
    const isShown = route.method === 'GET' && !route.path.includes(':')
    expect(response.status).toBe(isShown ? 303 : 404)
    const text = await response.text()
    for (const id of Object.values(ids)) expect(text).not.toContain(id)
    expect(await everything()).toBe(before)
  })
})

describe('an operator', () => {
  test('an operator is not an account: account pages redirect to the account sign-in', async () => {
    for (const route of routes) {
      if (route.access !== 'account') continue
      const at = route.path.replaceAll(/:(\w+)/g, ids.keyId)
      const response = route.method === 'GET' ? await operators.admin.get(at) : await operators.admin.post(at)
      expect([response.status, response.headers.get('location')?.split('?')[0]], at).toEqual([303, '/sign-in'])
    }
  })

  test.each(cases)(
    'an operator with too low a role is told the required one, and nothing happens: %s',
    async (_, route) => {
      const before = await everything()
      for (const role of operatorRoles.filter((each) => !hasRole(each, route.role))) {
        const response = await call(operators[role], route)
        expect(response.status, role).toBe(403)
        expect(await response.text()).toContain(`This requires the role ${route.role}`)
      }
      expect(await everything()).toBe(before)
    },
  )

  test.each(cases.filter(([, { method }]) => method === 'GET'))(
    'an operator sees what their role allows: %s',
    async (_, route) => {
      for (const role of operatorRoles) {
        const response = await call(operators[role], route)
        // A proof belongs to the session that requested it, even if other operators are signed in.
        expect(response.status, role).toBe(route.path.includes(':proofId') ? 404 : 200)
        await response.text()
      }
    },
  )

  test('an unknown ID gets a 404', async () => {
    for (const route of rows.filter(({ path }) => path.includes(':'))) {
      const at = route.path.replaceAll(/:(\w+)/g, 'nothing_like_it')
      const visitor = operators.admin
      const fields = { plan: 'pro', role: 'viewer' }
      const response = route.method === 'GET' ? await visitor.get(at) : await visitor.post(at, fields)
      expect(response.status, at).toBe(404)
    }
    const key = `/operator/accounts/${(await service.addAccount('neighbour', 'max')).account.id}/keys/${ids.keyId}/revoke`
    expect((await operators.admin.post(key)).status, 'a key of another account').toBe(404)
  })

  test.each(cases.filter(([, { stepUp }]) => stepUp))(
    'ten minutes after signing in, a destructive action asks for a fresh proof: %s',
    async (_, route) => {
      const before = await everything()
      const { visitor } = await stale(route.role)
      const during = await everything()
      const response = await call(visitor, route)
      expect([response.status, response.headers.get('location')]).toEqual([303, '/operator/confirm?next=%2Foperator'])
      expect(await everything()).toBe(during)
      expect(before).not.toBe(during)
    },
  )
})

let count = 0
/** An operator who signed in eleven minutes ago. */
async function stale(role: OperatorRole): Promise<{ visitor: Visitor }> {
  const entered = await enterAs(service, role, `stale-${count++}@example.com`)
  await clock.skip(11 * 60_000)
  return entered
}
