import { readFileSync } from 'node:fs'
import { request, type IncomingMessage } from 'node:http'
import { gzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openSession } from '../../src/accounts/identity/sessions.ts'
import { routes } from '../../src/web/routes.ts'
import type { Service } from '../service.ts'
import { startWeb, Visitor } from './browser-less.ts'

let service: Service
let visitor: Visitor
beforeAll(async () => {
  ;({ service, visitor } = await startWeb())
  visitor.cookie = await signInCookie()
})
afterAll(() => service.stop())

async function signInCookie(accountId = service.account.id): Promise<string> {
  const { store, accountsDeps } = service
  const { token } = await openSession({ ...accountsDeps, store }, accountId, { method: 'link', agent: 'Tests' })
  return `svc_session=${token.reveal()}`
}

/** Sends a request with headers that `fetch` does not allow. */
function ask(path: string, headers: Record<string, string>, method = 'GET'): Promise<number> {
  return new Promise((resolve, reject) => {
    request(`${service.config.appUrl}${path}`, { method, headers }, (response) => {
      response.resume()
      resolve(response.statusCode ?? 0)
    })
      .on('error', reject)
      .end()
  })
}

describe('every response', () => {
  test.each(['/', '/account', '/nothing-here', '/assets/none.css'])(
    '%s allows nothing inline and nothing from other origins, and has a request ID',
    async (path) => {
      const { headers } = await visitor.get(path)
      const policy = headers.get('content-security-policy') ?? ''
      expect(policy).toContain("default-src 'none'")
      expect(policy).not.toContain('unsafe')
      expect(policy).toContain("frame-ancestors 'none'")
      expect(headers.get('x-request-id')).toMatch(/^req_/)
      expect(headers.get('x-content-type-options')).toBe('nosniff')
      expect(headers.get('cache-control')).toBe('no-store')
    },
  )

  test('a missing page is a 404 that links onward and does not echo the path', async () => {
    const response = await visitor.get('/canary-in-the-path?canary=1')
    const text = await response.text()
    expect(response.status).toBe(404)
    expect(text).toContain('Page not found')
    expect(text).not.toContain('canary')
  })

  test('a page that needs a session redirects to sign-in and back, and sets no cookie', async () => {
    const response = await new Visitor(service.config.appUrl).get('/account')
    expect([response.status, response.headers.get('location'), response.headers.getSetCookie()]).toEqual([
      303,
      '/sign-in?next=%2Faccount',
      [],
    ])
  })

  test('a wrong method gets a 405 that lists the allowed ones, and a missing path a 404, for any visitor and body', async () => {
    expect((await visitor.post('/account')).headers.get('allow')).toBe('GET, HEAD')
    for (const method of ['POST', 'PUT', 'DELETE', 'OPTIONS', 'PATCH']) {
      expect([method, await ask('/account', {}, method)]).toEqual([method, 405])
      expect([method, await ask('/nothing-here', { cookie: visitor.cookie }, method)]).toEqual([method, 404])
    }
    const signIn = await fetch(`${service.config.appUrl}/sign-in`, { method: 'DELETE' })
    expect([signIn.status, signIn.headers.get('allow')]).toEqual([405, 'GET, HEAD, POST'])
  })

  test('an invalid request gets an error page with the same security headers', async () => {
    const { port } = new URL(service.config.appUrl)
    const { statusCode, headers } = await new Promise<IncomingMessage>((resolve, reject) =>
      request({ port, host: '127.0.0.1', path: '*' }, (response) => resolve(response.resume()))
        .on('error', reject)
        .end(),
    )
    expect([statusCode, headers['x-content-type-options'], headers['cache-control']]).toEqual([
      400,
      'nosniff',
      'no-store',
    ])
    expect(headers['content-security-policy']).toContain("default-src 'none'")
  })
})

describe('files', () => {
  test('files have names that change with their content, are compressed on request, and are cached permanently', async () => {
    const page = await (await visitor.get('/account')).text()
    const urls = Array.from(page.matchAll(/(?:href|src)="(\/assets\/[^"]+)"/g), ([, url]) => url!)
    expect(urls.length).toBeGreaterThanOrEqual(3)
    for (const url of urls) {
      const response = await visitor.get(url, { 'accept-encoding': 'identity' })
      expect(response.headers.get('cache-control')).toBe('public, max-age=31536000, immutable')
      const bytes = Buffer.from(await response.arrayBuffer())
      const zipped = await visitor.get(url, { 'accept-encoding': 'gzip' })
      expect(zipped.headers.get('content-encoding')).toBe('gzip')
      expect(Buffer.from(await zipped.arrayBuffer())).toEqual(bytes)
      const etag = response.headers.get('etag') ?? ''
      for (const names of [etag, `W/${etag}`]) {
        expect((await visitor.get(url, { 'if-none-match': names })).status).toBe(304)
      }
    }
  })

  test('styles are at most 10 KB and scripts 12 KB, compressed', () => {
    const zippedBytes = (name: string): number =>
      gzipSync(readFileSync(new URL(`../../src/web/assets/${name}`, import.meta.url))).length
    expect(zippedBytes('style.css')).toBeLessThan(10_000)
    expect(zippedBytes('islands.js')).toBeLessThan(12_000)
  })
})

describe('forms', () => {
  test.each([
    ['another site', { 'sec-fetch-site': 'cross-site' }],
    ['a sibling of our host', { 'sec-fetch-site': 'same-site' }],
    ['no page at all', { 'sec-fetch-site': 'none' }],
  ])('forms from %s are rejected and change nothing', async (_, headers) => {
    const response = await visitor.post('/sign-out', {}, headers)
    expect(response.status).toBe(403)
    expect((await visitor.get('/account')).status).toBe(200)
  })

  test('forms of a browser that sends no Sec-Fetch-Site are accepted by their Origin', async () => {
    const { host } = new URL(service.config.appUrl)
    const send = (origin: string): Promise<number> =>
      ask('/sign-out', { origin, 'content-type': 'application/x-www-form-urlencoded' }, 'POST')
    expect(await send('https://evil.example')).toBe(403)
    expect(await send('null')).toBe(403)
    expect(await send(`http://${host}`)).toBe(303)
  })

  test('forms need the token of their own session', async () => {
    const other = new Visitor(service.config.appUrl)
    other.cookie = await signInCookie()
    for (const csrf of ['', 'x', await other.csrf()])
      expect((await visitor.post('/sign-out', { csrf })).status).toBe(403)
    expect((await other.post('/sign-out')).status).toBe(303)
  })

  test('forms that are too large or of another content type are rejected', async () => {
    expect((await visitor.post('/sign-out', { text: 'x'.repeat(70_000) })).status).toBe(413)
    expect((await visitor.post('/sign-out', {}, { 'content-type': 'application/json' })).status).toBe(415)
  })
})

describe('host names', () => {
  test('local host names lead here, and any other is rejected because it may be DNS rebinding', async () => {
    const { port } = new URL(service.config.appUrl)
    for (const host of [`127.0.0.1:${port}`, `localhost:${port}`, 'localhost:1', `[::1]:${port}`])
      expect(await ask('/nothing', { host })).toBe(404)
    for (const host of ['evil.example', `evil.example:${port}`, 'localhost.evil.example', 'x@localhost', 'localhost/x'])
      expect(await ask('/nothing', { host })).not.toBe(404)
  })
})

describe('the route table', () => {
  test('the table lists every route once with its access, and only the owning account reaches its data', async () => {
    const names = routes.map(({ method, path }) => `${method} ${path}`)
    expect(new Set(names).size).toBe(names.length)
    const nobody = new Visitor(service.config.appUrl)
    for (const { method, path, access } of routes) {
      if (access !== 'account' && access !== 'script') continue
      const at = path.replaceAll(/:\w+/g, 'some_id')
      const response = method === 'GET' ? await nobody.get(at) : await nobody.post(at)
      if (access === 'script') {
        expect(response.status, `${method} ${path}`).toBe(401)
        continue
      }
      expect([response.status, response.headers.get('location')], `${method} ${path}`).toEqual([
        303,
        method === 'GET' ? `/sign-in?next=${encodeURIComponent(at)}` : '/sign-in',
      ])
    }
  })
})
