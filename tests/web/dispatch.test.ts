import { expect, test } from 'vitest'
import type { ServiceEvent } from '../../src/domain/events.ts'
import { operatorActions } from '../../src/domain/operators.ts'
import type { PageRoute } from '../../src/web/http/route.ts'
import { createWebApp } from '../../src/web/web-app.ts'
import type { WebDeps } from '../../src/web/web-deps.ts'

const events: ServiceEvent[] = []
/** The dependencies of the dispatcher. The pages of these tests need none. */
const parts = {
  appUrl: 'https://app.example.com',
  mode: 'production',
  trustedProxies: 1,
  log: (event: ServiceEvent) => void events.push(event),
  mintRequestId: () => 'req_made_up',
} as unknown as WebDeps

const seen: string[] = []
const routes: readonly PageRoute[] = [
  {
    method: 'GET',
    path: '/broken',
    access: 'public',
    handle: () => {
      throw new TypeError('canary-in-the-message')
    },
  },
  {
    method: 'POST',
    path: '/hook',
    access: 'webhook',
    handle: ({ body, address }) => {
      seen.push(Buffer.from(body).toString('utf8'), address)
      return new Response('taken')
    },
  },
  { method: 'GET', path: '/operator', access: 'operator', ...operatorActions.see, handle: () => new Response('never') },
  {
    method: 'GET',
    path: '/pay',
    access: 'public',
    formTargets: () => ['https://checkout.example.com'],
    handle: () => new Response('pay'),
  },
]
const app = createWebApp(parts, routes)
const ask = (path: string, init: RequestInit = {}): Promise<Response> =>
  app(
    new Request(`https://app.example.com${path}`, {
      ...init,
      headers: { host: 'app.example.com', ...(init.headers as Record<string, string>) },
    }),
    { peerAddress: '10.0.0.1' },
  )

test('an internal error is shown as a page with the request ID, and its message appears nowhere', async () => {
  const response = await ask('/broken')
  const text = await response.text()
  expect([response.status, text.includes('req_made_up')]).toEqual([500, true])
  expect(events).toMatchObject([{ event: 'internal_error', requestId: 'req_made_up', name: 'TypeError' }])
  expect(text + JSON.stringify(events)).not.toContain('canary')
})

test('a webhook receives its bytes unchanged, from any site, up to one megabyte', async () => {
  const body = '{"a": 1 }\n'
  const headers = { 'sec-fetch-site': 'cross-site', 'x-forwarded-for': '6.6.6.6, 203.0.113.9' }
  expect(await (await ask('/hook', { method: 'POST', body, headers })).text()).toBe('taken')
  expect(seen).toEqual([body, '203.0.113.9'])
  expect((await ask('/hook', { method: 'POST', body: 'x'.repeat(1024 * 1024 + 1) })).status).toBe(413)
})

test('the console is visible only after an operator signs in there', async () => {
  const { status, headers } = await ask('/operator')
  expect([status, headers.get('location')]).toEqual([303, '/operator/sign-in?next=%2Foperator'])
})

test('a page may send forms to the origin that its route names, and no other page may', async () => {
  const policy = async (path: string): Promise<string> =>
    /form-action ([^;]+)/.exec((await ask(path)).headers.get('content-security-policy') ?? '')?.[1] ?? ''
  expect(await policy('/pay')).toBe("'self' https://checkout.example.com")
  expect(await policy('/broken')).toBe("'self'")
})

test("over HTTPS, browsers are told to stay on it, and only the app's own host name is answered", async () => {
  expect((await ask('/pay')).headers.get('strict-transport-security')).toContain('max-age=')
  expect((await ask('/pay', { headers: { host: 'localhost' } })).status).toBe(421)
})
