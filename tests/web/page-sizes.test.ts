import { gzipSync } from 'node:zlib'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openSession } from '../../src/accounts/identity/sessions.ts'
import { maxEmailsPerAccount } from '../../src/accounts/identity/sign-in.ts'
import { maxKeysPerAccount } from '../../src/accounts/keys.ts'
import { maxUpstreamsPerAccount } from '../../src/accounts/upstreams.ts'
import { errorCatalog } from '../../src/domain/errors.ts'
import { routes } from '../../src/web/routes.ts'
import type { Service } from '../service.ts'
import { startWeb, Visitor } from './browser-less.ts'
import { fillAccount } from './fill-account.ts'
import { maxPageBytes } from './max-page-bytes.ts'

const maxStyleBytes = 10 * 1024
const maxScriptBytes = 12 * 1024
const sessions = 50
const revokedKeys = 60
const requests = 100

let service: Service
let visitor: Visitor
let stranger: Visitor
beforeAll(async () => {
  ;({ service, visitor: stranger } = await startWeb())
  await fillAccount(service)
  visitor = new Visitor(service.config.appUrl)
  const { store, accountsDeps, account } = service
  for (let count = 0; count < sessions; count++) {
    const { token } = await openSession({ ...accountsDeps, store }, account.id, {
      method: 'link',
      agent: `Browser ${count}`,
    })
    visitor.cookie = `svc_session=${token.reveal()}`
  }
  for (let count = 0; count < maxEmailsPerAccount; count++)
    await service.addEmail(`somebody.with.a.long.name.${count}@department.example.com`)
  for (let count = 1; count < maxUpstreamsPerAccount; count++)
    await service.connectOwn(`sk-made-up-credential-${count}`)
  for (let count = 0; count < revokedKeys; count++) {
    const { stored } = await service.addNamedKey(`an old one that is gone, number ${count}`)
    await service.revoke(stored.id)
  }
  for (let left = maxKeysPerAccount - 3; left > 0; left--)
    await service.addNamedKey(`billing worker of the house, ${left}`)
  for (let count = 0; count < requests; count++) await service.chat()
}, 60_000)
afterAll(() => service.stop())

/** Every URL without an ID: those of the route table, and all documentation pages. */
async function addresses(): Promise<string[]> {
  const plain = routes.filter(({ method, path }) => method === 'GET' && !path.includes(':')).map(({ path }) => path)
  const listed = await (await stranger.get('/llms.txt')).text()
  const docs = Array.from(listed.matchAll(/\((\S+)\.md\)/g), ([, url]) => new URL(url!, service.config.appUrl).pathname)
  const errors = Object.keys(errorCatalog).map((code) => `/docs/errors/${code}`)
  const [request] = await service.store.listRequests({ accountId: service.account.id, limit: 1 })
  return [...new Set([...plain, ...docs, ...errors, '/models/svc-router/frontier', `/activity/${request!.id}`])]
}

test('with an account at its limits every page is at most 30 KB compressed and, except for two lists, uncompressed', async () => {
  const paths = await addresses()
  expect(paths).toContain('/docs/clients')
  const pages: { readonly path: string; readonly raw: number; readonly zipped: number }[] = []
  for (const who of [stranger, visitor])
    for (const path of paths) {
      const response = await who.get(path)
      const bytes = Buffer.from(await response.arrayBuffer())
      if (response.status === 200 && (response.headers.get('content-type') ?? '').startsWith('text/html'))
        pages.push({ path, raw: bytes.byteLength, zipped: gzipSync(bytes).byteLength })
    }
  expect(pages.length).toBeGreaterThan(100)
  expect(pages.filter(({ zipped }) => zipped > maxPageBytes('/'))).toEqual([])
  // A hundred keys with their forms, and fifty sessions.
  const large = pages.filter(({ path, raw }) => raw > maxPageBytes(path)).map(({ path }) => path)
  expect(large.filter((path) => !['/account/keys', '/account'].includes(path))).toEqual([])
}, 60_000)

test('the style is at most 10 KB and the script 12 KB, compressed as they are sent', async () => {
  const page = await (await stranger.get('/')).text()
  const sizes: Record<string, number> = {}
  for (const [, url, extension] of page.matchAll(/(?:href|src)="(\/assets\/[^"]+\.(css|js))"/g)) {
    const response = await stranger.get(url!, { 'accept-encoding': 'gzip' })
    expect(response.headers.get('content-encoding')).toBe('gzip')
    // `fetch` has decompressed them.
    sizes[extension!] = gzipSync(await response.arrayBuffer(), { level: 9 }).byteLength
  }
  expect(sizes['css']).toBeLessThanOrEqual(maxStyleBytes)
  expect(sizes['js']).toBeLessThanOrEqual(maxScriptBytes)
})
