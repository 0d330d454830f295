import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { requestManagedAccess } from '../../src/accounts/managed-access/managed-access.ts'
import { openIncident, updateIncident } from '../../src/accounts/status/incidents.ts'
import { fileTicket } from '../../src/accounts/support/support.ts'
import { SkippingClock } from '../../src/simulation/skipping-clock.ts'
import type { Service } from '../service.ts'
import { startWeb, type Visitor } from './browser-less.ts'
import { enterAs } from './operator.ts'

const clock = new SkippingClock()
let service: Service
let admin: Visitor
let support: Visitor
let viewer: Visitor
let operatorId: string
beforeAll(async () => {
  ;({ service } = await startWeb({
    clock,
    settings: {
      profiles: { small: { backends: ['gamma'], description: 'A small one.' } },
    },
  }))
  const entered = await enterAs(service, 'admin')
  admin = entered.visitor
  operatorId = entered.operator.id
  support = (await enterAs(service, 'support')).visitor
  viewer = (await enterAs(service, 'viewer')).visitor
})
afterAll(() => service.stop())

const read = async (path: string, visitor = admin): Promise<string> => {
  const response = await visitor.get(path)
  const text = await response.text()
  expect(response.status, text).toBe(200)
  return text.replaceAll(/\s+/g, ' ')
}
const events = async (): Promise<readonly string[]> => {
  const listed = await service.store.listAudit({ limit: 100 })
  return listed
    .filter(({ actor }) => actor.kind === 'operator' && actor.operatorId === operatorId)
    .map(({ event }) => event.type)
}
const answeredBy = async (): Promise<string | null> => {
  const response = await service.chat()
  await response.text()
  return response.headers.get('x-svc-router-upstream')
}

describe('backends', () => {
  test('each backend is listed with its state and results', async () => {
    expect(await answeredBy()).toBe('alpha')
    const text = await read('/operator/backends')
    for (const name of ['alpha', 'beta', 'gamma']) expect(text).toContain(`href="/operator/backends/${name}"`)
    expect(text).toMatch(/alpha<\/strong><\/a> <span class="tag good">in use<.*100% of 1 answered, [\d,]+ ms/)
    expect(text).toMatch(/beta.*no requests/)
  })

  test('an admin drains and restores a backend, and the service follows within a second', async () => {
    const drained = await admin.post('/operator/backends/alpha/drain', { reason: 'maintenance' })
    expect([drained.status, drained.headers.get('location')]).toEqual([
      303,
      '/operator/backends/alpha?done=backend-drained',
    ])
    const text = await read('/operator/backends/alpha?done=backend-drained')
    expect(text).toContain('<span class="tag warn">drained</span>')
    expect(text).toMatch(/Drained<\/dt>.*by admin@example.com: maintenance/)
    await expect.poll(answeredBy, { timeout: 1_000 }).toBe('beta')
    expect(await read('/status')).toContain('under maintenance')
    expect((await admin.post('/operator/backends/alpha/drain', { reason: 'asked' })).status).toBe(422)
    expect((await admin.post('/operator/backends/alpha/quarantine', { reason: 'asked' })).status).toBe(303)
    expect(await read('/operator/backends/alpha')).toContain('The backend stays quarantined.')
    expect((await admin.post('/operator/backends/alpha/undrain')).status).toBe(303)
    expect(await read('/operator/backends/alpha?done=backend-undrained')).toContain(
      'Unless the backend is also quarantined',
    )
    expect((await admin.post('/operator/backends/alpha/release')).status).toBe(303)
    // Immediately, although this server may not have noticed the change yet.
    expect(await read('/operator/backends/alpha')).toContain('<span class="tag good">in use</span>')
    await expect.poll(answeredBy, { timeout: 1_000 }).toBe('alpha')
    expect((await events()).filter((type) => type.startsWith('backend'))).toEqual([
      'backend.released',
      'backend.undrained',
      'backend.quarantined',
      'backend.drained',
    ])
  })

  test('a backend that rejected its credential is reported and released', async () => {
    service.providers[0]!.script([{ do: 'status', status: 401 }])
    expect(await answeredBy()).toBe('beta')
    const text = await read('/operator/backends/alpha')
    expect(text).toContain('<span class="tag bad">skipped</span>')
    expect(text).toContain('its provider rejected the credential')
    expect(text).toMatch(/<code>rejected_credentials<\/code>/)
    expect((await admin.post('/operator/backends/alpha/release')).status).toBe(303)
    await expect.poll(answeredBy, { timeout: 1_000 }).toBe('alpha')
  })

  test('only admins with a fresh proof control backends, and an unknown backend is not found', async () => {
    for (const visitor of [viewer, support]) {
      expect((await visitor.post('/operator/backends/beta/drain', { reason: 'asked' })).status).toBe(403)
      expect((await visitor.get('/operator/backends/beta')).status).toBe(200)
    }
    expect((await admin.get('/operator/backends/omega')).status).toBe(404)
    expect((await admin.post('/operator/backends/omega/drain', { reason: 'asked' })).status).toBe(404)
    expect((await admin.post('/operator/backends/beta/drain', { reason: 'because' })).status).toBe(422)
    await clock.skip(11 * 60_000)
    const late = await admin.post('/operator/backends/beta/drain', { reason: 'asked' })
    expect(late.headers.get('location')).toMatch(/^\/operator\/confirm\?next=/)
    expect(await service.store.listBackendControls()).toEqual([expect.objectContaining({ kind: 'released' })])
    admin = (await enterAs(service, 'admin', 'again@example.com')).visitor
    operatorId = (await service.store.operators.findOperatorByEmail('again@example.com'))!.id
  })
})

describe('profiles', () => {
  test('each profile is listed with its backends in order', async () => {
    expect(await read('/operator/profiles')).toMatch(/svc-router\/frontier.*alpha.*beta.*gamma.*svc-router\/fusion/)
  })

  test('a dry run predicts where a request goes, and the request goes there', async () => {
    const ask = (more = ''): Promise<string> =>
      read(`/operator/dry-run?profile=svc-router/frontier&format=openai-chat&tokens=500&plan=max${more}`)
    expect(await ask()).toContain('It would go to alpha')
    expect(await answeredBy()).toBe('alpha')
    await admin.post('/operator/backends/alpha/drain', { reason: 'cost' })
    await expect.poll(answeredBy, { timeout: 1_000 }).toBe('beta')
    const text = await ask(`&account=${service.account.name}&images=on`)
    expect(text).toContain('It would go to beta')
    expect(text).toMatch(/Skipped.*alpha<\/a>: drained by an operator/)
    await admin.post('/operator/backends/alpha/undrain')
    await service.connectOwn('sk-made-up-credential-of-a-dry-run')
    await expect
      .poll(() => ask(`&account=${service.account.id}`), { timeout: 1_000 })
      .toMatch(/It would go to ups_.*the account’s own/)
    expect(await answeredBy()).toMatch(/^ups_/)
    expect(await ask()).toContain('It would go to alpha')
  })

  test('a dry run names the panel of a fusion, and the rejection if the plan does not allow the profile', async () => {
    const fusion = '/operator/dry-run?profile=svc-router/fusion&format=openai-responses&tokens=500'
    expect(await read(`${fusion}&plan=max`)).toMatch(/Several models would answer.*Judge and writer/)
    expect(await read(`${fusion}&plan=free`)).toMatch(/rejected without being sent.*plan_required/)
  })

  test.each([
    ['account=nobody-of-that-name&format=openai-chat&tokens=5', 'No account has this ID or name'],
    ['format=morse&tokens=5', 'Choose a client format'],
    ['format=openai-chat&tokens=lots', 'a whole number'],
    ['format=openai-chat&tokens=1000001', 'a whole number'],
    ['format=openai-chat&tokens=5&plan=platinum', 'This plan is not configured'],
  ])('an invalid dry run says what is wrong: %s', async (query, sentence) => {
    const response = await viewer.get(`/operator/dry-run?profile=svc-router/frontier&${query}`)
    expect(response.status).toBe(422)
    expect(await response.text()).toContain(sentence)
  })
})

describe('managed access', () => {
  const accountsDeps = () => ({ ...service.accountsDeps, store: service.store })

  test('an admin approves a request and ends it later', async () => {
    const { account } = await service.addAccount('asking', 'max')
    const { id } = await requestManagedAccess(accountsDeps(), account.id)
    expect(await read('/operator')).toMatch(/Managed access <span class="tag warn">1 waiting/)
    expect(await read('/operator/managed-access')).toMatch(new RegExp(`Waiting for review.*${account.id}.*Approve`))
    expect((await support.post(`/operator/managed-access/${id}/approve`)).status).toBe(403)
    const approved = await admin.post(`/operator/managed-access/${id}/approve`)
    expect(approved.headers.get('location')).toBe('/operator/managed-access?done=managed-approved')
    expect(await service.store.hasManagedAccess(account.id)).toBe(true)
    expect((await admin.post(`/operator/managed-access/${id}/approve`)).status).toBe(422)
    expect((await admin.post(`/operator/managed-access/${id}/reject`)).status).toBe(303)
    expect(await service.store.hasManagedAccess(account.id)).toBe(false)
    expect((await admin.post('/operator/managed-access/mar_none/approve')).status).toBe(404)
    expect((await events()).slice(0, 2)).toEqual(['managed.rejected', 'managed.approved'])
  })

  test('changes of the switch and the agreements each append an audit event', async () => {
    expect(await read('/operator/managed-access')).toContain('No configured backend is managed')
    expect((await admin.post('/operator/managed-access/on')).status).toBe(303)
    expect((await admin.post('/operator/managed-access/on')).status).toBe(422)
    expect((await admin.post('/operator/managed-access/resale/alpha', { note: 'not a note id' })).status).toBe(422)
    expect((await admin.post('/operator/managed-access/resale/omega', { note: 'CONTRACT-1' })).status).toBe(404)
    expect((await admin.post('/operator/managed-access/resale/alpha', { note: 'CONTRACT-1' })).status).toBe(303)
    const text = await read('/operator/managed-access')
    expect(text).toMatch(/The switch <span class="tag good">on/)
    expect(text).toMatch(/<code>CONTRACT-1<\/code>, by again@example.com on/)
    expect((await admin.post('/operator/managed-access/resale/alpha/revoke')).status).toBe(303)
    expect((await admin.post('/operator/managed-access/resale/alpha/revoke')).status).toBe(422)
    expect((await admin.post('/operator/managed-access/off')).status).toBe(303)
    expect((await events()).slice(0, 4)).toEqual([
      'managed.switched_off',
      'managed.resale_revoked',
      'managed.resale_recorded',
      'managed.switched_on',
    ])
  })
})

describe('incidents', () => {
  test('support opens, updates, and resolves incidents, and everyone sees them at once', async () => {
    const told = await support.post('/operator/incidents', {
      title: 'Slow <b>answers</b>',
      impact: 'major',
      text: 'We look into it.',
    })
    expect(told.headers.get('location')).toBe('/operator/incidents?done=incident-opened')
    const [incident] = await service.store.listIncidents(0, 1)
    const id = incident!.id
    expect(await read('/status')).toContain('Slow &lt;b&gt;answers')
    const update = { state: 'resolved', text: 'Mended.' }
    expect((await viewer.post(`/operator/incidents/${id}`, update)).status).toBe(403)
    expect((await support.post(`/operator/incidents/${id}`, update)).status).toBe(303)
    expect(await read('/status')).toMatch(/Past incidents.*Mended\./)
    expect(await read('/operator/incidents', viewer)).toMatch(/Resolved.*Slow/)
    expect((await support.post('/operator/incidents/inc_none', update)).status).toBe(404)
    const wrong = await support.post('/operator/incidents', { title: ' ', impact: 'minor', text: 'Kept for you.' })
    expect([wrong.status, (await wrong.text()).includes('Kept for you.')]).toEqual([422, true])
  })
})

describe('growing lists', () => {
  test('long lists are paginated, so that no page is larger than 30 KB', async () => {
    const accountsDeps = { ...service.accountsDeps, store: service.store }
    const supportDeps = { ...accountsDeps, mailTo: undefined, sendMail: undefined }
    for (let count = 0; count < 70; count++) {
      const text = `Ticket ${count} ${'about very much '.repeat(200)}`
      await fileTicket(supportDeps, { accountId: null, email: `asker-${count}@example.com`, requestId: '', text })
      const { account } = await service.addAccount(`one of many ${count}`, 'max')
      await requestManagedAccess(accountsDeps, account.id)
      if (count < 12) {
        const told = await openIncident(accountsDeps, { title: 'Slow', impact: 'none', text: 'x'.repeat(2_000) })
        for (let more = 0; more < 5; more++)
          await updateIncident(accountsDeps, told.id, 'monitoring', 'x'.repeat(2_000))
        if (count % 2 === 0) await updateIncident(accountsDeps, told.id, 'resolved', 'x'.repeat(2_000))
      }
    }
    for (const path of ['/operator/tickets', '/operator/managed-access', '/operator/incidents', '/operator']) {
      const response = await admin.get(path)
      expect((await response.text()).length, path).toBeLessThan(30_000)
    }
    expect(await read('/operator/tickets')).toContain('href="/operator/tickets?open=30"')
    expect(await read('/operator/tickets?open=60')).toMatch(/61 to 7\d of 7\d/)
    expect(await read('/operator/managed-access?requested=60')).toMatch(/61 to 7\d of 7\d/)
    expect(await read('/operator/incidents?running=3')).toContain('4 earlier updates on the status page')
  })
})

describe('tickets', () => {
  test('support lists, reads, closes, and reopens tickets', async () => {
    const form = {
      accountId: null,
      email: 'asker@example.com',
      requestId: '',
      text: 'Every request <fails>.\nSince noon.',
    }
    const supportDeps = { ...service.accountsDeps, store: service.store, mailTo: undefined, sendMail: undefined }
    const filed = await fileTicket(supportDeps, form)
    if (!('id' in filed)) throw new Error('the ticket was refused')
    const path = `/operator/tickets/${filed.id}`
    expect(await read('/operator/tickets', viewer)).toMatch(/Open<\/h2>.*Every request &lt;fails&gt;\./)
    expect(await read(path, viewer)).toMatch(/Every request &lt;fails&gt;\.<br \/>Since noon\..*asker@example\.com/)
    expect((await viewer.post(`${path}/close`)).status).toBe(403)
    expect((await support.post(`${path}/close`)).headers.get('location')).toBe(`${path}?done=ticket-closed`)
    expect((await support.post(`${path}/close`)).status).toBe(422)
    expect(await read('/operator/tickets')).toMatch(/Closed<\/h2>.*Every request/)
    expect((await support.post(`${path}/reopen`)).status).toBe(303)
    expect((await support.post('/operator/tickets/tic_none/close')).status).toBe(404)
    expect((await support.get('/operator/tickets/tic_none')).status).toBe(404)
  })
})
