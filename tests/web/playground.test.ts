import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { beforeEach, describe, expect, test, vi } from 'vitest'
import { suspendAccount } from '../../src/accounts/accounts.ts'
import type { RequestRecord } from '../../src/domain/requests.ts'
import { Service } from '../service.ts'
import { shareService } from '../shared-service.ts'
import { recordOf } from '../spec/fused-answers.ts'
import { signedInTo, Visitor } from './browser-less.ts'

/** The time limit from the disconnect of a browser until the provider's call is closed (contract 9.10). */
const closedWithinMs = 100
const maxPageBytes = 30_000
const maxStyleBytes = 10_000
const maxScriptBytes = 25_000

interface Refused {
  readonly error: Readonly<Record<string, string>>
}

const share = shareService()
let service: Service
let visitor: Visitor
beforeEach(async () => {
  service = await share()
  visitor = await signedInTo(service)
})

const body = (extra: object = {}): object => ({
  model: 'svc-router/frontier',
  messages: [{ role: 'user', content: 'Say hello.' }],
  ...extra,
})

/** Sends a request like the script of the page. */
async function ask(
  given: object | string,
  headers: Record<string, string> = {},
  {
    by = visitor,
    of = service,
    signal,
  }: { readonly by?: Visitor; readonly of?: Service; readonly signal?: AbortSignal } = {},
): Promise<Response> {
  return fetch(`${of.config.appUrl}/playground/chat`, {
    method: 'POST',
    headers: {
      cookie: by.cookie,
      'sec-fetch-site': 'same-origin',
      'content-type': 'application/json',
      'user-agent': 'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36',
      'x-csrf-token': by.cookie === '' ? '' : await by.csrf(),
      ...headers,
    },
    body: typeof given === 'string' ? given : JSON.stringify(given),
    ...(signal && { signal }),
  })
}

const asked = (): number => service.providers.reduce((sum, provider) => sum + provider.counts().requests, 0)
const usedBy = (accountId: string): Promise<number> =>
  service.store.usedUnits(accountId, new Date().toISOString().slice(0, 7))
const recordBehind = ({ headers }: Response): Promise<RequestRecord> => recordOf(service, headers.get('x-request-id'))

describe('a playground request', () => {
  test('a request belongs to the account: it fails over, has signals, is charged once, recorded, and listed', async () => {
    service.providers[0]!.script([{ do: 'status', status: 503 }])
    const response = await ask(body({ stream: true }))
    const text = await response.text()
    expect([response.status, text.includes('[DONE]')]).toEqual([200, true])
    const header = (name: string): string | null => response.headers.get(name)
    expect(header('content-type')).toContain('text/event-stream')
    expect([header('x-svc-router-upstream'), header('x-svc-router-retry-count')]).toEqual(['beta', '1'])
    expect([header('x-quota-used'), header('x-ratelimit-remaining')]).toEqual(['1', '599'])
    expect([header('x-content-type-options'), header('cache-control')]).toEqual(['nosniff', 'no-store'])
    const record = await recordBehind(response)
    expect(record).toMatchObject({ accountId: service.account.id, keyId: 'playground', charged: 1, stream: true })
    expect(record.attempts.map(({ backend, outcome }) => [backend, outcome])).toEqual([
      ['alpha', 'server_error'],
      ['beta', 'answered'],
    ])
    const listed = await (await visitor.get('/activity?key=playground')).text()
    expect(listed).toContain(record.id)
    expect(await (await visitor.get(`/activity/${record.id}`)).text()).toContain('Playground')
  })

  test("a request uses the same minute and month as the account's keys", async () => {
    await (await service.chat()).text()
    const response = await ask(body())
    await response.text()
    expect([response.headers.get('x-quota-used'), response.headers.get('x-ratelimit-remaining')]).toEqual(['2', '598'])
  })

  test('a request without streaming gets one whole answer', async () => {
    const response = await ask(body())
    expect(await response.json()).toMatchObject({ object: 'chat.completion', model: 'svc-router/frontier' })
  })

  test("providers receive neither the browser's cookie nor its token", async () => {
    await (await ask(body())).text()
    const [sent] = service.providers[0]!.captured()
    expect(JSON.stringify(sent)).not.toContain('svc_session')
    expect(JSON.stringify(sent)).not.toContain(await visitor.csrf())
  })

  test('a request leaves no text on disk', async () => {
    const canary = 'canary-said-in-the-playground'
    const response = await ask(body({ messages: [{ role: 'user', content: canary }], store: true }))
    expect(await response.text()).toContain(canary)
    await recordBehind(response)
    const files = readdirSync(service.folder, { recursive: true, encoding: 'utf8' }).map((file) =>
      join(service.folder, file),
    )
    for (const file of files.filter((path) => statSync(path).isFile()))
      expect(readFileSync(file, 'latin1'), file).not.toContain(canary)
    expect(JSON.stringify(service.events)).not.toContain(canary)
  })
})

describe('who may send requests', () => {
  test.each([
    ['without the session’s token', { 'x-csrf-token': '' }],
    ['with another token', { 'x-csrf-token': 'x' }],
    ['from another site', { 'sec-fetch-site': 'cross-site' }],
    ['from a sibling of our host', { 'sec-fetch-site': 'same-site' }],
  ])('a request is rejected: %s', async (_, headers) => {
    expect((await ask(body(), headers)).status).toBe(403)
    expect(asked()).toBe(0)
  })

  test('a request with the token of another session is rejected', async () => {
    const other = await signedInTo(service)
    expect((await ask(body(), { 'x-csrf-token': await other.csrf() })).status).toBe(403)
    expect(asked()).toBe(0)
  })

  test('a request after signing out is rejected', async () => {
    expect((await ask(body(), {}, { by: new Visitor(service.config.appUrl) })).status).toBe(401)
    const token = await visitor.csrf()
    const { cookie } = visitor
    await visitor.post('/sign-out')
    visitor.cookie = cookie
    expect((await ask(body(), { 'x-csrf-token': token })).status).toBe(401)
    expect(asked()).toBe(0)
  })

  test('a session sends requests only for its own account, whatever the body or headers name', async () => {
    const { account: other, key } = await service.addAccount('other', 'max')
    const response = await ask(body({ user: other.id, account: other.id }), {
      authorization: `Bearer ${key}`,
      'x-api-key': key,
    })
    await response.text()
    expect((await recordBehind(response)).accountId).toBe(service.account.id)
    expect([await usedBy(service.account.id), await usedBy(other.id)]).toEqual([1, 0])
    const intruder = await signedInTo(service, other.id)
    const id = response.headers.get('x-request-id')!
    expect((await intruder.get(`/playground/trail/${id}`)).status).toBe(404)
    expect((await visitor.get(`/playground/trail/${id}`)).status).toBe(200)
  })

  test('a suspended account cannot send requests', async () => {
    await suspendAccount(service.accountsDeps, service.account.id)
    const response = await ask(body())
    expect([response.status, ((await response.json()) as Refused).error['code']]).toEqual([401, 'key_inactive'])
    expect(asked()).toBe(0)
  })

  test("the account's current plan applies: fusion is rejected with a link to other plans, and no backend is asked", async () => {
    const { account } = await service.addAccount('free', 'free')
    const free = await signedInTo(service, account.id)
    const attached = { tools: [{ type: 'svc-router:fusion' }] }
    for (const extra of [{ model: 'svc-router/fusion' }, attached]) {
      const response = await ask(body(extra), {}, { by: free })
      const { error } = (await response.json()) as Refused
      expect([response.status, error['code']]).toEqual([403, 'plan_required'])
      expect(error['upgradeUrl']).toBe(`${service.config.appUrl}/billing/upgrade`)
      expect(response.headers.get('x-quota-used')).toBe('0')
    }
    expect(asked()).toBe(0)
    await service.putOnPlan(account.id, 'pro')
    const allowed = await ask(body({ model: 'svc-router/fusion' }), {}, { by: free })
    await allowed.text()
    expect([allowed.status, await usedBy(account.id)]).toEqual([200, 1])
  })

  test('only POST is accepted, and only for chat', async () => {
    expect((await visitor.get('/playground/chat')).status).toBe(405)
    for (const path of ['/playground/v1/models', '/playground/responses', '/v1/chat/completions'])
      expect((await visitor.post(path)).status).toBe(404)
  })
})

describe('the connection', () => {
  test("an invalid or too large body gets the API's error", async () => {
    for (const [given, headers, status] of [
      ['{', {}, 400],
      ['{}', { 'content-type': 'text/plain' }, 415],
      [JSON.stringify(body({ user: 'x'.repeat(5 * 1024 * 1024) })), {}, 413],
    ] as const) {
      const response = await ask(given, headers)
      const { error } = (await response.json()) as Refused
      expect([response.status, error['request_id']]).toEqual([status, response.headers.get('x-request-id')])
    }
    expect(asked()).toBe(0)
  })

  test("a browser that disconnects aborts the provider's call at once, which is recorded", async () => {
    const [provider] = service.providers
    provider!.script([{ do: 'answer', words: 1000, tokenDelayMs: 20 }])
    const leave = new AbortController()
    const response = await ask(body({ stream: true }), {}, { signal: leave.signal })
    await response.body!.getReader().read()
    const leftAtMs = Date.now()
    leave.abort()
    await vi.waitFor(() => expect(provider!.counts().aborted).toBe(1), { timeout: 2000, interval: 5 })
    expect(provider!.counts().abortedAtMs[0]! - leftAtMs).toBeLessThan(closedWithinMs)
    expect(await recordBehind(response)).toMatchObject({ errorCode: 'client_closed', charged: 1 })
  })

  test('the first words arrive while the provider still streams', async () => {
    const [provider] = service.providers
    provider!.script([{ do: 'answer', words: 40, tokenDelayMs: 25 }])
    const response = await ask(body({ stream: true }))
    const reader = response.body!.getReader()
    await reader.read()
    expect(provider!.counts().open).toBe(1)
    while (!(await reader.read()).done) continue
  })

  test('a browser that does not read pauses the provider, and receives everything afterwards', async () => {
    const [provider] = service.providers
    const bytes = 24 * 1024 * 1024
    provider!.script([{ do: 'answer', length: bytes }])
    const response = await ask(body({ stream: true }))
    await new Promise((resolve) => setTimeout(resolve, 500))
    expect(provider!.counts().open).toBe(1)
    expect((await response.text()).length).toBeGreaterThan(bytes)
  })

  test('a service that shuts down lets the answer finish', async () => {
    const stopping = await Service.start()
    try {
      const browser = await signedInTo(stopping)
      stopping.providers[0]!.script([{ do: 'answer', words: 40, tokenDelayMs: 25 }])
      const response = await ask(body({ stream: true }), {}, { by: browser, of: stopping })
      const stopped = stopping.app.stop()
      expect(await response.text()).toContain('[DONE]')
      await stopped
    } finally {
      await stopping.stop()
    }
  })

  test('a service that cannot wait any longer says so in the answer', async () => {
    const stopping = await Service.start({ settings: { drain: '1s' } })
    try {
      const browser = await signedInTo(stopping)
      stopping.providers[0]!.script([{ do: 'answer', words: 1000, tokenDelayMs: 25 }])
      const response = await ask(body({ stream: true }), {}, { by: browser, of: stopping })
      const stopped = stopping.app.stop()
      expect(await response.text()).toContain('"code":"restarting"')
      await stopped
    } finally {
      await stopping.stop()
    }
  })

  test('the connection of a playground request continues to serve the app', async () => {
    await (await ask(body())).text()
    expect((await visitor.get('/playground')).status).toBe(200)
    await (await ask(body({ stream: true }))).text()
    expect((await visitor.get('/account')).status).toBe(200)
  })
})

describe('the page', () => {
  test('the page contains no key and no secret, and without scripts shows the same request for a terminal', async () => {
    const page = await (await visitor.get('/playground')).text()
    expect(page).not.toMatch(/sk_svc_[0-9A-Za-z]{10}/)
    expect(page).not.toContain(visitor.cookie.split('=')[1])
    const [plain = ''] = /<noscript>[\s\S]+<\/noscript>/.exec(page) ?? []
    expect(plain).toContain(`${service.baseUrl}/chat/completions`)
    expect(plain).toContain('Bearer $SVC_ROUTER_API_KEY')
  })

  test('a link selects its profile, and no other part of the URL appears', async () => {
    const chosen = async (query: string): Promise<string | undefined> =>
      /<option value="([^"]+)" selected/.exec(await (await visitor.get(`/playground${query}`)).text())?.[1]
    expect(await chosen('?profile=svc-router%2Ffusion')).toBe('svc-router/fusion')
    expect(await chosen('?profile=canary')).toBe('svc-router/frontier')
    expect(await (await visitor.get('/playground?profile=canary')).text()).not.toContain('canary')
  })

  test("the menu, the profiles, and a request link to the playground, which does not know the request's text", async () => {
    const { headers } = await service.chat()
    await recordOf(service, headers.get('x-request-id'))
    expect(await (await visitor.get('/account')).text()).toContain('href="/playground"')
    for (const from of ['/models/svc-router/frontier', `/activity/${headers.get('x-request-id')!}`])
      expect(await (await visitor.get(from)).text()).toContain('href="/playground?profile=svc-router%2Ffrontier"')
  })

  test('on a plan without fusion, the page says why it is unavailable and where to change the plan', async () => {
    const { account } = await service.addAccount('free', 'free')
    const page = await (await (await signedInTo(service, account.id)).get('/playground')).text()
    expect(page).toMatch(/id="fusion"[^>]+disabled/)
    expect(page).toContain('Your plan, Free, does not include it')
    expect(page).toContain('svc-router/fusion (locked)')
  })

  test('the page is at most 30 KB, its style 10 KB, and its scripts 25 KB, compressed', async () => {
    const page = await (await visitor.get('/playground')).text()
    const zipped = async (kind: 'js' | 'css'): Promise<number> => {
      const texts: string[] = []
      const seen = new Set<string>()
      const load = async (url: string): Promise<void> => {
        if (seen.has(url)) return
        seen.add(url)
        const response = await visitor.get(url)
        expect(response.status, url).toBe(200)
        const text = await response.text()
        texts.push(text)
        for (const [, next] of text.matchAll(/from '([^']+)'/g))
          if (kind === 'js' && next!.startsWith('/')) await load(next!)
      }
      for (const [, url] of page.matchAll(new RegExp(`(?:href|src)="(/assets/[^"]+\\.${kind})"`, 'g'))) await load(url!)
      expect(texts.length, kind).toBeGreaterThan(1)
      return texts.reduce((sum, text) => sum + gzipSync(text).length, 0)
    }
    expect(gzipSync(page).length).toBeLessThan(maxPageBytes)
    expect(await zipped('css')).toBeLessThan(maxStyleBytes)
    expect(await zipped('js')).toBeLessThan(maxScriptBytes)
  })
})
