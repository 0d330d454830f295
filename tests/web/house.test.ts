import { request, type IncomingMessage } from 'node:http'
import { gzipSync } from 'node:zlib'
import { readFileSync } from 'node:fs'
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
  const { store, plane } = service
  const { token } = await openSession({ ...plane, store }, accountId, { method: 'link', agent: 'Tests' })
  return `svc_session=${token.reveal()}`
}

/** A request with headers that fetch would not send. */
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

describe('every answer', () => {
  test.each(['/', '/account', '/nothing-here', '/assets/none.css'])(
    '%s allows nothing inline and nothing from elsewhere, and has a request id',
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

  test('a page that is not there is a 404 with a way on, and says nothing of the path', async () => {
    const response = await visitor.get('/canary-in-the-path?canary=1')
    const text = await response.text()
    expect(response.status).toBe(404)
    expect(text).toContain('Page not found')
    expect(text).not.toContain('canary')
  })

  test('a page without a session leads to the sign-in and back, and sets no cookie', async () => {
    const response = await new Visitor(service.config.appUrl).get('/account')
    expect([response.status, response.headers.get('location'), response.headers.getSetCookie()]).toEqual([
      303,
      '/sign-in?next=%2Faccount',
      [],
    ])
  })

  test('the wrong method is a 405 that names the right ones, and no path has none, whoever asks and with what', async () => {
    expect((await visitor.post('/account')).headers.get('allow')).toBe('GET, HEAD')
    for (const method of ['POST', 'PUT', 'DELETE', 'OPTIONS', 'PATCH']) {
      expect([method, await ask('/account', {}, method)]).toEqual([method, 405])
      expect([method, await ask('/nothing-here', { cookie: visitor.cookie }, method)]).toEqual([method, 404])
    }
    const signIn = await fetch(`${service.config.appUrl}/sign-in`, { method: 'DELETE' })
    expect([signIn.status, signIn.headers.get('allow')]).toEqual([405, 'GET, HEAD, POST'])
  })

  test('what is no request that has a page is refused with the same care', async () => {
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
  test('are found by a name that changes with them, zipped where that is taken, and kept for ever', async () => {
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
      const again = await visitor.get(url, { 'if-none-match': response.headers.get('etag') ?? '' })
      expect(again.status).toBe(304)
    }
  })

  test('are small: 10 KB of style and 12 KB of script, zipped', () => {
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
  ])('of %s are refused and change nothing', async (_, headers) => {
    const response = await visitor.post('/sign-out', {}, headers)
    expect(response.status).toBe(403)
    expect((await visitor.get('/account')).status).toBe(200)
  })

  test('of a browser that does not say where from are taken by their origin', async () => {
    const { host } = new URL(service.config.appUrl)
    const send = (origin: string): Promise<number> =>
      ask('/sign-out', { origin, 'content-type': 'application/x-www-form-urlencoded' }, 'POST')
    expect(await send('https://evil.example')).toBe(403)
    expect(await send('null')).toBe(403)
    expect(await send(`http://${host}`)).toBe(303)
  })

  test('need the token of their own session', async () => {
    const other = new Visitor(service.config.appUrl)
    other.cookie = await signInCookie()
    for (const csrf of ['', 'x', await other.csrf()])
      expect((await visitor.post('/sign-out', { csrf })).status).toBe(403)
    expect((await other.post('/sign-out')).status).toBe(303)
  })

  test('that are too large or of another type are refused', async () => {
    expect((await visitor.post('/sign-out', { text: 'x'.repeat(70_000) })).status).toBe(413)
    expect((await visitor.post('/sign-out', {}, { 'content-type': 'application/json' })).status).toBe(415)
  })
})

describe('names', () => {
  test('of this machine lead here, any other is refused: somebody may have made it lead here', async () => {
    const { port } = new URL(service.config.appUrl)
    for (const host of [`127.0.0.1:${port}`, `localhost:${port}`, 'localhost:1', `[::1]:${port}`])
      expect(await ask('/nothing', { host })).toBe(404)
    for (const host of ['evil.example', `evil.example:${port}`, 'localhost.evil.example', 'x@localhost', 'localhost/x'])
      expect(await ask('/nothing', { host })).not.toBe(404)
  })
})

describe('the table of routes', () => {
  test('names every route once, says who may call it, and nobody but accounts reaches what is theirs', async () => {
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
