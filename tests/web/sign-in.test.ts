import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { createSignInLink } from '../../src/accounts/identity/proofs.ts'
import { sessionIdleMs, sessionLifeMs } from '../../src/accounts/identity/sessions.ts'
import { SkippingClock } from '../../src/simulation/skipping-clock.ts'
import type { Service } from '../service.ts'
import { Visitor, startWeb } from './browser-less.ts'

let service: Service
let visitor: Visitor
let clock: SkippingClock
beforeEach(async () => {
  clock = new SkippingClock()
  ;({ service, visitor } = await startWeb({ clock }))
})
afterEach(() => service.stop())

const address = 'Somebody@Example.com'
const location = (response: Response): string => response.headers.get('location') ?? ''

/** Requests a code and reads it from the outbox. */
async function askForCode(
  who: Visitor,
  path: string,
  email = address,
): Promise<{ at: string; code: string; link: string }> {
  const response = await who.post(path, { email })
  expect(response.status).toBe(303)
  return { at: location(response), ...(await lastLetter(who)) }
}

async function lastLetter(who: Visitor): Promise<{ code: string; link: string }> {
  const text = await (await who.get('/dev/outbox')).text()
  const [, code = ''] = /^\s+(\d{6})$/m.exec(text) ?? []
  const [, link = ''] = /href="[^"]+(\/sign-in\/link\?token=[\w-]+)"/.exec(text) ?? []
  return { code, link }
}

const wrong = (code: string): string => (code === '000000' ? '000001' : '000000')
const tokenOf = (link: string): string => link.split('=')[1] ?? ''

async function setUp(who = visitor, email = address): Promise<string> {
  const { at, code } = await askForCode(who, '/account/setup', email)
  const page = await (await who.post(at, { code })).text()
  return /sk_svc_[0-9A-Za-z]{38}/.exec(page)?.[0] ?? ''
}

describe('signing up', () => {
  test('email, code, and key take three steps, and the key works at once', async () => {
    const key = await setUp()
    const answer = await service.chat({}, { authorization: `Bearer ${key}` })
    expect(answer.status).toBe(200)
    expect(answer.headers.get('x-quota-limit')).toBe('500')
    const page = await (await visitor.get('/account')).text()
    expect(page).toContain('Free')
    expect(page).not.toContain(key)
  })

  test('an address with an account signs in to it, in any letter case, and gets no second account', async () => {
    await setUp()
    const again = new Visitor(service.config.appUrl)
    const { at, code } = await askForCode(again, '/account/setup', 'SOMEBODY@example.com')
    expect(location(await again.post(at, { code }))).toBe('/account/keys?done=had-account')
    expect((await service.store.listAccounts(10)).length).toBe(2)
  })

  test.each([
    '',
    'x',
    'x@',
    '@example.com',
    'a b@example.com',
    'a@b@c',
    `${'x'.repeat(250)}@example.com`,
    'a@b\nBcc: c@d.example',
  ])('an invalid address is reported: %j', async (email) => {
    const response = await visitor.post('/account/setup', { email })
    expect(response.status).toBe(422)
    expect(await response.text()).toContain('Enter an email address such as')
    expect((await service.store.listAccounts(10)).length).toBe(1)
  })
})

describe('signing in', () => {
  test('signing in by code has the same five steps and answers for known and unknown addresses', async () => {
    await setUp()
    const known = new Visitor(service.config.appUrl)
    const unknown = new Visitor(service.config.appUrl)
    const seen = await Promise.all(
      [
        [known, address],
        [unknown, 'nobody@example.com'],
      ].map(async ([who, email]) => {
        const asked = await (who as Visitor).post('/sign-in', { email: email as string })
        const page = await (who as Visitor).get(location(asked))
        return [
          asked.status,
          location(asked).replace(/prf_\w+/, 'ID'),
          page.status,
          (await page.text()).replaceAll(/prf_\w+|[ns]…@example.com/g, 'ID'),
        ]
      }),
    )
    expect(seen[0]).toEqual(seen[1])
  })

  test('an unknown address, once proven, is offered an account, and has none until it accepts', async () => {
    const { at, code } = await askForCode(visitor, '/sign-in')
    const page = await (await visitor.post(at, { code })).text()
    expect(page).toContain('No account has this address yet')
    expect([visitor.cookie, (await service.store.listAccounts(10)).length]).toEqual(['', 1])
    const [, token = ''] = /name="token" value="([^"]+)"/.exec(page) ?? []
    expect(await (await visitor.post('/sign-in/link', { token })).text()).toContain('Your first key')
    expect((await service.store.listAccounts(10)).length).toBe(2)
  })

  test('someone who is signed in can create an account for another address, too', async () => {
    await setUp()
    const { at, code } = await askForCode(visitor, '/sign-in', 'second@example.com')
    const page = await (await visitor.post(at, { code })).text()
    const [, form = ''] = /<form method="post" action="\/sign-in\/link">(.*?)<\/form>/s.exec(page) ?? []
    const fields = [...form.matchAll(/name="(\w+)" value="([^"]+)"/g)].map(
      ([, name, value]) => [name!, value!] as const,
    )
    const answer = await visitor.postOnly('/sign-in/link', Object.fromEntries(fields))
    expect(await answer.text()).toContain('Your first key')
  })

  test('signing in returns to the requested page and to no other site', async () => {
    await setUp()
    await clock.skip(11 * 60_000)
    for (const [next, to] of [
      ['/account/keys', '/account/keys'],
      ['//evil.example', '/connect?done=signed-in'],
      ['/\\evil.example', '/connect?done=signed-in'],
      ['https://evil.example', '/connect?done=signed-in'],
    ]) {
      const who = new Visitor(service.config.appUrl)
      const asked = await who.post('/sign-in', { email: address, next: next! })
      const { code } = await lastLetter(who)
      const [, carried = ''] = location(asked).split('next=')
      expect(location(await who.post(location(asked), { code, next: decodeURIComponent(carried) }))).toBe(to)
      await clock.skip(11 * 60_000)
    }
  })

  test('a code works once, within ten minutes, for its own proof, and allows five wrong tries', async () => {
    await setUp()
    const first = new Visitor(service.config.appUrl)
    const { at, code } = await askForCode(first, '/sign-in')
    expect((await first.post(at, { code })).status).toBe(303)
    const thief = new Visitor(service.config.appUrl)
    expect((await thief.post(at, { code })).status).toBe(410)

    const second = await askForCode(thief, '/sign-in')
    const other = await askForCode(first, '/sign-in')
    if (second.code !== other.code) expect((await thief.post(second.at, { code: other.code })).status).toBe(422)
    await clock.skip(10 * 60_000)
    expect((await thief.post(second.at, { code: second.code })).status).toBe(410)

    const third = await askForCode(thief, '/sign-in')
    for (let tries = 0; tries < 5; tries++)
      expect((await thief.post(third.at, { code: wrong(third.code) })).status).toBe(422)
    expect((await thief.post(third.at, { code: third.code })).status).toBe(410)
    expect(thief.cookie).toBe('')
  })

  test('of a thousand simultaneous uses of one code, exactly one signs in', async () => {
    await setUp()
    const { at, code } = await askForCode(visitor, '/sign-in')
    const proofId = at.split('/').at(-1)!
    const { tryCode } = await import('../../src/accounts/identity/proofs.ts')
    const accountsDeps = { ...service.accountsDeps, store: service.store }
    const results = await Promise.all(
      Array.from({ length: 1000 }, () => tryCode(accountsDeps, 'account', proofId, code)),
    )
    expect(results.filter((result) => typeof result !== 'string').length).toBe(1)
  })

  test('a link and its code are used up by the button, never by viewing the page', async () => {
    await setUp()
    const { at, code, link } = await askForCode(visitor, '/sign-in')
    const who = new Visitor(service.config.appUrl)
    for (let look = 0; look < 3; look++) {
      const page = await who.get(link)
      expect([page.status, who.cookie]).toEqual([200, ''])
      expect(await page.text()).toContain('s…@example.com')
    }
    expect((await who.post('/sign-in/link', { token: tokenOf(link) })).status).toBe(303)
    expect(who.cookie).not.toBe('')
    const thief = new Visitor(service.config.appUrl)
    expect((await thief.post('/sign-in/link', { token: tokenOf(link) })).status).toBe(410)
    expect((await thief.get(link)).status).toBe(410)
    expect((await thief.post(at, { code })).status).toBe(410)
  })

  test('a link created where the service runs signs in to its account once', async () => {
    const accountsDeps = { ...service.accountsDeps, store: service.store }
    const link = await createSignInLink(accountsDeps, service.account.id, service.config.appUrl)
    const path = link.reveal().slice(service.config.appUrl.length)
    expect((await visitor.get(path)).status).toBe(200)
    expect(location(await visitor.post('/sign-in/link', { token: tokenOf(path) }))).toBe('/connect?done=signed-in')
    expect(await (await visitor.get('/account')).text()).toContain('tester')
    expect((await new Visitor(service.config.appUrl).post('/sign-in/link', { token: tokenOf(path) })).status).toBe(410)
  })

  test('one visitor gets three emails for an address in ten minutes, known or not, and twenty codes a day', async () => {
    const who = new Visitor(service.config.appUrl)
    let sent = 0
    for (let round = 0; round < 7; round++) {
      for (let email = 0; email < 5; email++)
        if ((await who.post('/sign-in', { email: address })).status === 303) sent += 1
      expect(sent).toBe(Math.min(20, 3 * (round + 1)))
      const refused = await who.post('/sign-in', { email: address })
      expect(refused.status).toBe(422)
      expect(await refused.text()).toContain('Use the newest email, or try again in 10 minutes.')
      await clock.skip(10 * 60_000)
    }
    // Above the limit, one link at a time is sent, without a code that could be guessed.
    expect((await who.post('/sign-in', { email: address })).status).toBe(303)
    const text = await (await who.get('/dev/outbox')).text()
    const newest = text.slice(text.indexOf('<pre'), text.indexOf('</pre'))
    expect(newest).toContain('/sign-in/link?token=')
    expect(newest).not.toMatch(/\b\d{6}\b/)
    expect((await who.post('/sign-in', { email: address })).status).toBe(422)
  })

  test('one network gets twenty emails in ten minutes', async () => {
    const statuses = []
    for (let letter = 0; letter < 21; letter++)
      statuses.push((await visitor.post('/sign-in', { email: `a${letter}@example.com` })).status)
    expect(statuses.slice(0, 20).every((status) => status === 303)).toBe(true)
    expect(statuses[20]).toBe(429)
  })
})

describe('sessions', () => {
  test("signing in creates a new token and ends the browser's previous session, so that none can be planted", async () => {
    await setUp()
    const before = visitor.cookie
    const { at, code } = await askForCode(visitor, '/sign-in')
    await visitor.post(at, { code })
    expect(visitor.cookie).not.toBe(before)
    const old = new Visitor(service.config.appUrl)
    old.cookie = before
    expect((await old.get('/account')).status).toBe(303)
    const planted = new Visitor(service.config.appUrl)
    planted.cookie = `svc_session=${'A'.repeat(43)}`
    const again = await askForCode(planted, '/sign-in')
    await planted.post(again.at, { code: again.code })
    expect(planted.cookie).not.toContain('AAAA')
  })

  test('the cookie is out of reach of scripts and other sites, and only its digest is stored', async () => {
    const { at, code } = await askForCode(visitor, '/account/setup')
    const response = await visitor.post(at, { code })
    expect(response.headers.getSetCookie()).toEqual([
      expect.stringMatching(/^svc_session=[\w-]{43}; Path=\/; Max-Age=2592000; HttpOnly; SameSite=Lax$/) as string,
      expect.stringMatching(/^svc_known=[\w.-]{87}; Path=\/; Max-Age=15552000; HttpOnly; SameSite=Lax$/) as string,
    ])
    const account = (await service.store.listAccounts(10)).at(-1)!
    const kept = JSON.stringify(await service.store.listSessions(account.id))
    expect(kept).not.toContain(visitor.cookie.split('=')[1])
  })

  test('a session ends a week after its last use and a month after signing in', async () => {
    await setUp()
    await clock.skip(sessionIdleMs - 60_000)
    expect((await visitor.get('/account')).status).toBe(200)
    await clock.skip(sessionIdleMs - 60_000)
    expect((await visitor.get('/account')).status).toBe(200)
    await clock.skip(sessionIdleMs)
    expect((await visitor.get('/account')).status).toBe(303)
    await setUp()
    for (let days = 0; days < sessionLifeMs; days += sessionIdleMs / 2) {
      expect((await visitor.get('/account')).status).toBe(200)
      await clock.skip(sessionIdleMs / 2)
    }
    await clock.skip(sessionIdleMs / 2)
    expect((await visitor.get('/account')).status).toBe(303)
  })

  test('one session or all sessions can be ended', async () => {
    await setUp()
    const second = new Visitor(service.config.appUrl)
    const { at, code } = await askForCode(second, '/sign-in')
    await second.post(at, { code })
    const page = await (await visitor.get('/account')).text()
    const ids = Array.from(page.matchAll(/sessions\/(ses_\w+)\/end/g), ([, id]) => id!)
    expect(ids.length).toBe(2)
    const account = (await service.store.listAccounts(10)).at(-1)!
    const [latest] = await service.store.listSessions(account.id)
    expect(location(await visitor.post(`/account/sessions/${latest!.id}/end`))).toBe('/account?done=session-ended')
    expect((await second.get('/account')).status).toBe(303)
    second.cookie = ''
    const again = await askForCode(second, '/sign-in')
    await second.post(again.at, { code: again.code })
    expect(location(await visitor.post('/account/sessions/end-all'))).toBe('/sign-in?done=signed-out')
    expect([(await second.get('/account')).status, visitor.cookie]).toEqual([303, ''])
  })
})

describe('recovery', () => {
  test.each([
    [false, 200],
    [true, 401],
  ])('recovery gives a new key; with the old ones revoked %s', async (revoke, oldStatus) => {
    const old = await setUp()
    const who = new Visitor(service.config.appUrl)
    const { at, code } = await askForCode(who, '/account/recover')
    const page = await (await who.post(at, { code, ...(revoke && { 'revoke-old': 'on' }) })).text()
    const [key = ''] = /sk_svc_[0-9A-Za-z]{38}/.exec(page) ?? []
    expect((await service.chat({}, { authorization: `Bearer ${key}` })).status).toBe(200)
    await expect
      .poll(async () => (await service.chat({}, { authorization: `Bearer ${old}` })).status, { timeout: 3000 })
      .toBe(oldStatus)
  })

  test('recovery for an unknown address offers an account instead', async () => {
    const { at, code } = await askForCode(visitor, '/account/recover', 'nobody@example.com')
    expect(await (await visitor.post(at, { code })).text()).toContain('No account has this address yet')
  })
})
