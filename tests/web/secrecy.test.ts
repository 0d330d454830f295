import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { routes } from '../../src/web/routes.ts'
import type { Service } from '../service.ts'
import { startWeb, Visitor } from './browser-less.ts'

const email = 'canary.person@example.com'
const credential = 'sk-canary-credential-000011112222'
let service: Service
let visitor: Visitor
const pages: string[] = []

beforeAll(async () => {
  ;({ service, visitor } = await startWeb())
})
afterAll(() => service.stop())

async function see(response: Response): Promise<string> {
  const text = await response.text()
  pages.push(`${response.url} ${JSON.stringify([...response.headers])} ${text}`)
  return text
}

test('codes, links, tokens, keys, credentials and addresses are in no log, no error and no page but their own', async () => {
  const asked = await visitor.post('/account/setup', { email })
  const at = asked.headers.get('location')!
  const letter = await (await visitor.get('/dev/outbox')).text()
  const code = /^\s+(\d{6})$/m.exec(letter)![1]!
  const link = /link\?token=([\w-]{43})/.exec(letter)![1]!
  await see(await visitor.post(at, { code: code === '123456' ? '123457' : '123456' }))
  const first = await (await visitor.post(at, { code })).text()
  const key = /sk_svc_[0-9A-Za-z]{38}/.exec(first)![0]
  const token = visitor.cookie.split('=')[1]!
  await see(await visitor.post('/account/upstreams', { provider: 'openai', model: '', credential }))
  await visitor.post('/account/upstreams', { provider: 'openai', model: 'gpt-5.1', credential })
  const second = new Visitor(service.config.appUrl)
  await see(await second.post('/sign-in/link', { token: link }))

  // Every page, and every form sent with nothing and with nonsense.
  for (const { method, path, access } of routes) {
    if (path.startsWith('/dev/') || path === '/sign-out' || path.endsWith('end-all') || path.endsWith('revoke-all'))
      continue
    const there = path.replaceAll(/:\w+/g, 'canary-id')
    if (method === 'GET') await see(await visitor.get(`${there}?token=${link}&next=canary`))
    else if (access === 'account') await see(await visitor.post(there, { email: 'x', model: 'x', credential, code }))
    else await see(await second.post(there, { email: 'x', token: link, code }))
  }
  const secrets = { code, link, key, token, credential }
  for (const [name, secret] of Object.entries(secrets)) {
    for (const page of pages) expect(bodyWithoutOwnForm(page), `${name} on ${page.slice(0, 80)}`).not.toContain(secret)
    expect(JSON.stringify(service.events), `${name} in the log`).not.toContain(secret)
  }
  expect(JSON.stringify(service.events)).not.toContain('canary')
  const database = readFileSync(`${service.config.dataDir}/svc-router.db`)
  const journal = readFileSync(`${service.config.dataDir}/svc-router.db-wal`)
  for (const secret of [link, key, token, credential])
    expect(Buffer.concat([database, journal]).includes(secret)).toBe(false)
  expect(pages.length).toBeGreaterThan(20)
})

/** The page that a link leads to carries its token in its own form: that is what it is for. */
function bodyWithoutOwnForm(page: string): string {
  return page.replaceAll(/^\S+ /g, '').replaceAll(/<input type="hidden" name="token" value="[^"]*"/g, '')
}
