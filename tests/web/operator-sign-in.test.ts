import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createSignInLink } from '../../src/accounts/identity/proofs.ts'
import { changeOperatorRole, createOperator, removeOperator } from '../../src/accounts/operators/operators.ts'
import type { Operator } from '../../src/domain/operators.ts'
import { SkippingClock } from '../../src/simulation/skipping-clock.ts'
import type { Service } from '../service.ts'
import { startWeb, Visitor } from './browser-less.ts'
import { signedOutOfConsole, enterAs, linkToken, operatorsDeps } from './operator.ts'

const hourMs = 3_600_000
const minuteMs = 60_000
const clock = new SkippingClock()
let service: Service
let admin: Operator
beforeAll(async () => {
  ;({ service } = await startWeb({ clock }))
})
afterAll(() => service.stop())

/** The last email in the outbox. */
async function lastLetter(): Promise<{ code: string; token: string | undefined; text: string }> {
  const text = await (await new Visitor(service.config.appUrl).get('/dev/outbox')).text()
  const letter = text.slice(text.indexOf('Your code to'))
  return {
    code: /^\s+(\d{6})$/m.exec(letter)?.[1] ?? '',
    token: /token=([\w-]{43})/.exec(letter.slice(0, letter.indexOf('works once')))?.[1],
    text: letter,
  }
}

async function askForCode(visitor: Visitor, email: string): Promise<string> {
  const response = await visitor.post('/operator/sign-in', { email })
  expect(response.status).toBe(303)
  const path = response.headers.get('location') ?? ''
  expect(path).toMatch(/^\/operator\/sign-in\/code\/prf_/)
  return path.split('?')[0]!
}

const seesConsole = async (visitor: Visitor): Promise<boolean> => (await visitor.get('/operator')).status === 200

describe('signing in', () => {
  test('before the first operator exists, the page says how to create one', async () => {
    const text = await (await signedOutOfConsole(service).get('/operator/sign-in')).text()
    expect(text).toContain('operators create you@example.com --role admin')
    admin = await createOperator(operatorsDeps(service), 'ada@example.com', 'admin')
  })

  test('a code signs an operator in to a session with its own cookie', async () => {
    const visitor = signedOutOfConsole(service)
    const path = await askForCode(visitor, 'Ada@example.com')
    const response = await visitor.post(path, { code: (await lastLetter()).code })
    expect([response.status, response.headers.get('location')]).toEqual([303, '/operator?done=operator-in'])
    const [cookie = ''] = response.headers.getSetCookie()
    expect(cookie).toMatch(/^svc_operator=[\w-]{43}; Path=\/; Max-Age=43200; HttpOnly; SameSite=Lax$/)
    expect(await (await visitor.get('/operator')).text()).toContain('ada@example.com')
  })

  test('a link signs in once, and viewing it does not use it up', async () => {
    const visitor = signedOutOfConsole(service)
    await askForCode(visitor, 'ada@example.com')
    const { token = '' } = await lastLetter()
    for (let look = 0; look < 3; look++)
      expect((await visitor.get(`/operator/sign-in/link?token=${token}`)).status).toBe(200)
    expect((await visitor.post('/operator/sign-in/link', { token })).status).toBe(303)
    expect(await seesConsole(visitor)).toBe(true)
    expect((await signedOutOfConsole(service).post('/operator/sign-in/link', { token })).status).toBe(410)
  })

  test("the page is the same for known and unknown addresses; only the address's owner learns which it is", async () => {
    const pages = await Promise.all(
      ['ada@example.com', 'art@example.com'].map(async (email) => {
        const visitor = signedOutOfConsole(service)
        const path = await askForCode(visitor, email)
        return (await (await visitor.get(path)).text()).replaceAll(/prf_\w+/g, '')
      }),
    )
    expect(pages[0]).toBe(pages[1])
    const visitor = signedOutOfConsole(service)
    const path = await askForCode(visitor, 'nobody@example.com')
    const response = await visitor.post(path, { code: (await lastLetter()).code })
    expect([response.status, response.headers.getSetCookie()]).toEqual([403, []])
    expect(await response.text()).toContain('does not belong to an operator')
  })

  test('signing in returns to the requested page if it is in the console', async () => {
    const end = async (next: string): Promise<string | null> => {
      const visitor = signedOutOfConsole(service)
      const asked = await visitor.post('/operator/sign-in/link', { token: await linkToken(service, admin.id), next })
      return asked.headers.get('location')
    }
    expect(await end('/operator/operators?x=1')).toBe('/operator/operators?x=1&done=operator-in')
    for (const elsewhere of ['//example.com', '/account', '/operatorx', 'https://example.com/operator'])
      expect(await end(elsewhere)).toBe('/operator?done=operator-in')
  })
})

describe('separation from accounts', () => {
  test('codes and links of one kind do not work for the other, in either direction', async () => {
    await service.addEmail('ada@example.com')
    const visitor = new Visitor(service.config.appUrl)
    const door = signedOutOfConsole(service)
    await clock.skip(11 * minuteMs)
    const path = await askForCode(door, 'ada@example.com')
    const operators = await lastLetter()
    const proofId = path.split('/').at(-1)!
    expect((await visitor.get(`/sign-in/code/${proofId}`)).status).toBe(410)
    expect((await visitor.post(`/sign-in/code/${proofId}`, { code: operators.code })).status).toBe(410)
    expect((await visitor.get(`/sign-in/link?token=${operators.token}`)).status).toBe(410)
    expect((await visitor.post('/sign-in/link', { token: operators.token! })).status).toBe(410)
    // It still works for its own kind of session.
    expect((await door.post(path, { code: operators.code })).status).toBe(303)

    await clock.skip(11 * minuteMs)
    const asked = await visitor.post('/sign-in', { email: 'ada@example.com' })
    const accounts = await lastLetter()
    const accountsProof = asked.headers.get('location')!.split('/').at(-1)!
    const other = signedOutOfConsole(service)
    expect((await other.get(`/operator/sign-in/code/${accountsProof}`)).status).toBe(410)
    expect((await other.post(`/operator/sign-in/code/${accountsProof}`, { code: accounts.code })).status).toBe(410)
    expect((await other.post('/operator/sign-in/link', { token: accounts.token! })).status).toBe(410)
    expect((await visitor.post(`/sign-in/code/${accountsProof}`, { code: accounts.code })).status).toBe(303)
  })

  test('a browser may be signed in to both, and signing out of one leaves the other as it is', async () => {
    const { visitor } = await enterAs(service, 'viewer', 'both@example.com')
    const operatorsCookie = visitor.cookie
    const account = new Visitor(service.config.appUrl)
    const link = await createSignInLink(
      { ...service.accountsDeps, store: service.store },
      service.account.id,
      service.config.appUrl,
    )
    await account.post('/sign-in/link', { token: link.reveal().split('token=')[1]! })
    const accountsCookie = account.cookie
    const both = { cookie: `${accountsCookie}; ${operatorsCookie}` }
    const reader = new Visitor(service.config.appUrl)
    expect((await reader.get('/operator', both)).status).toBe(200)
    expect((await reader.get('/account', both)).status).toBe(200)
    expect((await visitor.post('/operator/sign-out')).status).toBe(303)
    expect((await reader.get('/operator', both)).status).toBe(303)
    expect((await reader.get('/account', both)).status).toBe(200)
  })

  test('a token of one kind in the cookie of the other opens nothing', async () => {
    const { visitor } = await enterAs(service, 'admin', 'swapped@example.com')
    const token = visitor.cookie.split('=')[1]!
    const reader = new Visitor(service.config.appUrl)
    expect((await reader.get('/account', { cookie: `svc_session=${token}` })).status).toBe(303)
    const link = await createSignInLink(
      { ...service.accountsDeps, store: service.store },
      service.account.id,
      service.config.appUrl,
    )
    const account = new Visitor(service.config.appUrl)
    await account.post('/sign-in/link', { token: link.reveal().split('token=')[1]! })
    const stolen = { cookie: `svc_operator=${account.cookie.split('=')[1]}` }
    expect((await reader.get('/operator', stolen)).headers.get('location')).toBe('/operator/sign-in?next=%2Foperator')
  })
})

describe('sessions', () => {
  test('a planted token is never adopted: signing in creates a new one and ends the previous session', async () => {
    const { visitor, operator } = await enterAs(service, 'viewer', 'fixed@example.com')
    const before = visitor.cookie
    await visitor.post('/operator/sign-in/link', { token: await linkToken(service, operator.id) })
    expect(visitor.cookie).not.toBe(before)
    expect((await signedOutOfConsole(service).get('/operator', { cookie: before })).status).toBe(303)
    const planted = signedOutOfConsole(service)
    planted.cookie = `svc_operator=${'A'.repeat(43)}`
    await planted.post('/operator/sign-in/link', { token: await linkToken(service, operator.id) })
    expect(planted.cookie).not.toContain('A'.repeat(43))
  })

  test('a session ends half an hour after its last use and twelve hours after signing in', async () => {
    const { visitor, operator } = await enterAs(service, 'viewer', 'idle@example.com')
    await clock.skip(29 * minuteMs)
    expect(await seesConsole(visitor)).toBe(true)
    await clock.skip(31 * minuteMs)
    expect(await seesConsole(visitor)).toBe(false)
    await visitor.post('/operator/sign-in/link', { token: await linkToken(service, operator.id) })
    for (let half = 0; half < 25; half++) {
      await clock.skip(29 * minuteMs)
      if (half * 29 * minuteMs < 11 * hourMs) expect(await seesConsole(visitor)).toBe(true)
    }
    expect(await seesConsole(visitor)).toBe(false)
  })

  test('a changed role applies to the next request, and a removed operator is signed out', async () => {
    const { visitor, operator } = await enterAs(service, 'viewer', 'changing@example.com')
    const asked = (): Promise<Response> =>
      visitor.post('/operator/operators', { email: 'x@example.com', role: 'nobody' })
    expect((await asked()).status).toBe(403)
    await changeOperatorRole(operatorsDeps(service), operator.id, 'admin')
    expect((await asked()).status).toBe(422)
    await removeOperator(operatorsDeps(service), operator.id)
    expect(await seesConsole(visitor)).toBe(false)
    const path = await askForCode(visitor, 'changing@example.com')
    expect((await visitor.post(path, { code: (await lastLetter()).code })).status).toBe(403)
  })

  test("a form without the session's token, or from another site, changes nothing", async () => {
    const { visitor } = await enterAs(service, 'admin', 'forged@example.com')
    const add = { email: 'forged-too@example.com', role: 'admin' }
    expect((await visitor.post('/operator/operators', { ...add, csrf: 'x' })).status).toBe(403)
    expect((await visitor.post('/operator/operators', add, { 'sec-fetch-site': 'cross-site' })).status).toBe(403)
    expect(await service.store.operators.findOperatorByEmail(add.email)).toBeUndefined()
    expect((await visitor.post('/operator/operators', add)).status).toBe(303)
  })
})

describe('a fresh proof', () => {
  test('a proof lasts ten minutes, and asking for a new one returns to the page that needed it', async () => {
    const { visitor, operator } = await enterAs(service, 'admin', 'fresh@example.com')
    const add = (email: string): Promise<Response> =>
      visitor.post(
        '/operator/operators',
        { email, role: 'viewer' },
        { referer: `${service.config.appUrl}/operator/operators?done=operator-added` },
      )
    await clock.skip(9 * minuteMs)
    expect((await add('one@example.com')).headers.get('location')).toBe('/operator/operators?done=operator-added')
    await clock.skip(2 * minuteMs)
    expect(await (await visitor.get('/operator/operators')).text()).toContain('Confirm your identity first')
    const led = await add('two@example.com')
    const confirm = `/operator/confirm?next=${encodeURIComponent('/operator/operators?done=operator-added')}`
    expect([led.status, led.headers.get('location')]).toEqual([303, confirm])
    expect(await service.store.operators.findOperatorByEmail('two@example.com')).toBeUndefined()
    const next = '/operator/operators?done=operator-added'
    const asked = await visitor.post('/operator/confirm', { next })
    const path = asked.headers.get('location')!
    const { code, token } = await lastLetter()
    expect(token, 'no link: it would confirm in another browser').toBeUndefined()
    const wrong = await visitor.post(path.split('?')[0]!, { code: code === '000000' ? '000001' : '000000', next })
    expect(wrong.status).toBe(422)
    const right = await visitor.post(path.split('?')[0]!, { code, next })
    expect(right.headers.get('location')).toBe('/operator/operators?done=confirmed')
    expect((await add('two@example.com')).headers.get('location')).toBe('/operator/operators?done=operator-added')
    const log = await service.store.listAudit({ limit: 3 })
    expect(log.map(({ event, actor }) => [event.type, actor])).toEqual([
      ['operator.created', { kind: 'operator', operatorId: operator.id }],
      ['operator.stepped_up', { kind: 'operator', operatorId: operator.id }],
      ['operator.created', { kind: 'operator', operatorId: operator.id }],
    ])
  })

  test('a code confirms only its own session, and works neither in another one nor for signing in', async () => {
    const { visitor, operator } = await enterAs(service, 'admin', 'bound@example.com')
    const asked = await visitor.post('/operator/confirm')
    const path = asked.headers.get('location')!.split('?')[0]!
    const { code } = await lastLetter()
    const elsewhere = signedOutOfConsole(service)
    await elsewhere.post('/operator/sign-in/link', { token: await linkToken(service, operator.id) })
    expect((await elsewhere.post(path, { code })).status).toBe(404)
    const proofId = path.split('/').at(-1)!
    expect((await signedOutOfConsole(service).post(`/operator/sign-in/code/${proofId}`, { code })).status).toBe(410)
    expect((await new Visitor(service.config.appUrl).post(`/sign-in/code/${proofId}`, { code })).status).toBe(410)
    expect((await visitor.post(path, { code })).status).toBe(303)
  })
})

test('operators cannot remove or demote themselves or the last admin', async () => {
  const { visitor, operator } = await enterAs(service, 'admin', 'self@example.com')
  for (const [step, fields] of [
    ['remove', {}],
    ['role', { role: 'viewer' }],
  ] as const) {
    const response = await visitor.post(`/operator/operators/${operator.id}/${step}`, fields)
    expect([response.status, (await response.text()).includes('You cannot change or remove yourself')]).toEqual([
      422,
      true,
    ])
  }
})

test("neither the log nor the audit events contain an operator's address, code, or token", async () => {
  const visitor = signedOutOfConsole(service)
  const path = await askForCode(visitor, 'ada@example.com')
  const { code, token = '' } = await lastLetter()
  await visitor.post(path, { code })
  const cookie = visitor.cookie.split('=')[1]!
  await visitor.post('/operator/confirm')
  const confirming = (await lastLetter()).code
  const log = JSON.stringify(service.events)
  const audit = JSON.stringify(await service.store.listAudit({ limit: 1000 }))
  for (const secret of ['ada@example.com', token, cookie]) {
    expect(secret).not.toBe('')
    expect(log).not.toContain(secret)
    expect(audit).not.toContain(secret)
  }
  for (const digits of [code, confirming]) expect(log + audit).not.toContain(`"${digits}"`)
})
