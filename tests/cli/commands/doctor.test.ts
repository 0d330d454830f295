import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { createKey } from '../../../src/accounts/keys.ts'
import { announceRunning } from '../../../src/cli/process/running-file.ts'
import { heldNote, openNotes } from '../../../src/domain/backend-status-text.ts'
import { noLimits } from '../../../src/domain/key-limits.ts'
import { mintKey } from '../../../src/domain/keys.ts'
import { linksFor } from '../../../src/domain/links.ts'
import { systemRandom } from '../../../src/runtime/random.ts'
import { Service } from '../../service.ts'
import { freeHost, serveHttp, serveProxy, serveSilence, serveTls, type Meddling } from '../broken-servers.ts'
import { Harness } from '../harness.ts'

const withinMs = 3_000
const plans = {
  max: { name: 'Max', requests_per_minute: 600, requests_per_month: 100_000, premium: true },
  free: { name: 'Free', requests_per_minute: 20, requests_per_month: 500 },
  slow: { name: 'Slow', requests_per_minute: 1, requests_per_month: 100 },
  small: { name: 'Small', requests_per_minute: 100, requests_per_month: 1 },
}

let service: Service
beforeAll(async () => {
  service = await Service.start({
    formats: ['openai-chat'],
    settings: { plans, default_plan: 'free', profiles: { 'team/empty': { description: 'Nothing yet' } } },
  })
})
afterAll(() => service.stop())

let cli: Harness
beforeEach(() => {
  cli = new Harness()
  cli.env['SVC_ROUTER_API_KEY'] = service.key
})
afterEach(() => cli.remove())

interface Report {
  readonly ok: boolean
  readonly findings: readonly { readonly code: string; readonly what: string; readonly fix: string }[]
  readonly first_byte_ms?: number
}

/** Runs the doctor. Expects that it takes at most 3 s, and that its text and its JSON agree. */
async function examine(url: string | undefined, ...args: readonly string[]): Promise<Report> {
  const line = ['doctor', ...(url === undefined ? [] : ['--url', url]), ...args]
  const beganMs = performance.now()
  const { code, out, err } = await cli.say(...line, '--json')
  expect(performance.now() - beganMs).toBeLessThan(withinMs)
  expect(err).toBe('')
  const report = JSON.parse(out) as Report
  expect(code).toBe(report.findings.length === 0 ? 0 : 1)
  expect(report.ok).toBe(code === 0)
  const key = cli.env['SVC_ROUTER_API_KEY']
  if (key !== undefined && key !== '') expect(out).not.toContain(key)
  return report
}

/** The only finding, or all of them. */
async function found(url: string | undefined, ...args: readonly string[]): Promise<Report['findings']> {
  return (await examine(url, ...args)).findings
}

/** Records the service under test in the data folder as the local one. */
function makeOwn(): void {
  mkdirSync(cli.dataDir, { recursive: true })
  announceRunning(cli.dataDir, { baseUrl: service.baseUrl, appUrl: 'http://127.0.0.1:4343' })
}

async function through(meddling: Meddling, ...args: readonly string[]): Promise<Report['findings']> {
  await using proxy = await serveProxy(service.origin, meddling)
  // Await here, because the proxy stops at the end of this function.
  return await found(`http://${proxy.host}/v1`, ...args)
}

function without(header: string): NonNullable<Meddling['requestHeaders']> {
  return (headers) => Object.fromEntries(Object.entries(headers).filter(([name]) => name !== header))
}

describe('without problems', () => {
  test('one line says so with the remaining quota, and the exit code is 0', async () => {
    const { code, out, err } = await cli.say('doctor', '--url', service.baseUrl)
    expect([code, err]).toEqual([0, ''])
    expect(out).toMatch(
      /^✓ no problems found: http:\/\/127\.0\.0\.1:\d+\/v1 answered in \d+ ms, \d+ of 600 requests left this minute, \d+ of 100000 requests left this month, 1 backend of svc-router\/frontier without a recent failure, not called now \(--ask sends one request\)$/,
    )
  })

  test('doctor finds the service that uses the data folder, and its first key', async () => {
    makeOwn()
    cli.env = {}
    writeFileSync(join(cli.dataDir, 'first-key'), `${service.key}\n`)
    expect(await examine(undefined)).toMatchObject({ ok: true, base_url: service.baseUrl })
  })

  test('doctor uses the URL in SVC_ROUTER_BASE_URL and a key in another variable', async () => {
    cli.env = { SVC_ROUTER_BASE_URL: `${service.baseUrl}/`, MY_KEY: service.key }
    expect(await examine(undefined, '--key-variable', 'MY_KEY')).toMatchObject({ ok: true, base_url: service.baseUrl })
  })

  test('doctor sends nothing to a provider and uses no quota', async () => {
    const before = service.providers[0]!.counts().requests
    const { key } = await service.addAccount('looker', 'slow')
    cli.env['SVC_ROUTER_API_KEY'] = key
    expect(await found(service.baseUrl)).toEqual([])
    expect(await found(service.baseUrl)).toEqual([])
    expect(service.providers[0]!.counts().requests).toBe(before)
  })

  test('with --ask, doctor sends and times one real request', async () => {
    const before = service.providers[0]!.counts().requests
    expect((await examine(service.baseUrl, '--ask')).first_byte_ms).toBeGreaterThanOrEqual(0)
    expect(service.providers[0]!.counts().requests).toBe(before + 1)
    expect((await cli.say('doctor', '--url', service.baseUrl, '--ask')).out).toMatch(
      /alpha started to answer after \d+ ms$/,
    )
  })
})

describe('the key', () => {
  test('if the key is not set, doctor says where to get one and how to set it', async () => {
    cli.env = {}
    const { accountSetupUrl } = linksFor(service.config.appUrl)
    expect(await found(service.baseUrl)).toEqual([
      {
        code: 'key_missing',
        what: 'SVC_ROUTER_API_KEY is not set',
        fix: `get one at ${accountSetupUrl}, then: export SVC_ROUTER_API_KEY=…`,
        blocks: true,
      },
    ])
  })

  test('if the key of a local service is not set and there is no first key, doctor prints the command that creates one', async () => {
    makeOwn()
    cli.env = {}
    expect(await found(undefined)).toMatchObject([
      { code: 'key_missing', fix: `export SVC_ROUTER_API_KEY=$(npx svc-router keys create --data ${cli.dataDir})` },
    ])
  })

  test.each([
    ['sk-ant-made-up-0000000000', 'this looks like a key for Anthropic'],
    ['"sk_svc_quoted"', 'quotes or brackets'],
    ['$SVC_ROUTER_API_KEY', 'the name of a variable'],
    ['sk_svc_tooshort', 'its checksum is wrong'],
  ])('doctor reports a malformed key without sending it: %s', async (key, sentence) => {
    cli.env['SVC_ROUTER_API_KEY'] = key
    const seen: unknown[] = []
    const findings = await through({
      requestHeaders: (headers) => {
        seen.push(headers.authorization)
        return headers
      },
    })
    expect(findings).toMatchObject([{ code: 'key_malformed', what: expect.stringContaining(sentence) as string }])
    expect(new Set(seen)).toEqual(new Set([undefined]))
  })

  test('doctor reports a line break after the key', async () => {
    cli.env['SVC_ROUTER_API_KEY'] = `${service.key}\n`
    expect(await found(service.baseUrl)).toMatchObject([
      { code: 'key_malformed', what: expect.stringContaining('spaces or line breaks') as string },
    ])
  })

  test('doctor reports a revoked key', async () => {
    const { stored, key } = await service.addAccount('revoker', 'free')
    await service.revoke(stored.id)
    cli.env['SVC_ROUTER_API_KEY'] = key
    const { accountUrl } = linksFor(service.config.appUrl)
    expect(await found(service.baseUrl)).toMatchObject([
      { code: 'key_revoked', fix: `create a new one at ${accountUrl}, then: export SVC_ROUTER_API_KEY=…` },
    ])
    makeOwn()
    expect(await found(undefined)).toMatchObject([
      { code: 'key_revoked', fix: expect.stringContaining('npx svc-router keys create') as string },
    ])
  })

  test('doctor reports an unknown key that is well-formed', async () => {
    cli.env['SVC_ROUTER_API_KEY'] = mintKey(systemRandom()).reveal()
    makeOwn()
    expect(await found(undefined)).toMatchObject([
      { code: 'key_inactive', fix: expect.stringContaining('npx svc-router keys list') as string },
    ])
  })

  test("a key instead of a variable's name, or as an argument, is rejected without repeating it", async () => {
    for (const args of [
      ['--key-variable', service.key],
      ['--key', service.key],
    ]) {
      const { code, out, err } = await cli.say('doctor', '--url', service.baseUrl, ...args)
      expect([code, out]).toEqual([2, ''])
      expect(err).toContain('--key-variable')
      expect(err).not.toContain(service.key)
    }
  })
})

describe('the URL', () => {
  test.each([
    ['without /v1', (origin: string) => origin],
    ['with another path', (origin: string) => `${origin}/api`],
    ['of one endpoint', (origin: string) => `${origin}/v1/chat/completions`],
  ])('doctor suggests the right URL: %s', async (_, urlOf) => {
    expect(await found(urlOf(service.origin))).toMatchObject([
      { code: 'url_path', fix: `use --url ${service.baseUrl}`, blocks: true },
    ])
  })

  test('doctor reports https for an http service', async () => {
    expect(await found(service.baseUrl.replace('http:', 'https:'))).toMatchObject([
      { code: 'url_scheme', fix: `use --url ${service.baseUrl}` },
    ])
  })

  test('doctor reports http for an https service', async () => {
    await using server = await serveTls((_, response) => void response.end())
    expect(await found(`http://${server.host}/v1`)).toMatchObject([
      { code: 'url_scheme', fix: `use --url https://${server.host}/v1` },
    ])
  })

  test('doctor reports an untrusted certificate', async () => {
    await using server = await serveTls((_, response) => void response.end())
    expect(await found(`https://${server.host}/v1`)).toMatchObject([{ code: 'certificate' }])
  })

  test('doctor reports a redirect', async () => {
    await using server = await serveHttp((request, response) => {
      response.writeHead(301, { location: `https://router.example.com${request.url}` }).end()
    })
    expect(await found(`http://${server.host}/v1`)).toMatchObject([
      { code: 'url_redirect', fix: 'use that address: --url https://router.example.com/v1' },
    ])
  })

  test('if nothing listens on this machine, doctor says how to start the service', async () => {
    const host = await freeHost()
    expect(await found(`http://${host}/v1`)).toMatchObject([{ code: 'refused', what: `nothing listens on ${host}` }])
    mkdirSync(cli.dataDir, { recursive: true })
    announceRunning(cli.dataDir, { baseUrl: `http://${host}/v1`, appUrl: `http://${host}` })
    expect(await found(undefined)).toMatchObject([
      { code: 'refused', fix: `npx svc-router start --data ${cli.dataDir}` },
    ])
  })

  test('doctor reports an unknown host', async () => {
    const [finding] = await found('http://nowhere.invalid/v1')
    // Without any name server, the report says that instead.
    expect(['unresolved', 'timeout']).toContain(finding!.code)
  })

  test('doctor reports another program at the URL', async () => {
    await using server = await serveHttp((_, response) => {
      response.writeHead(200, { 'content-type': 'text/html; charset=utf-8' }).end('<html>Hello</html>')
    })
    expect(await found(`http://${server.host}/v1`)).toMatchObject([
      { code: 'not_svc_router', what: expect.stringContaining('status 200, text/html') as string },
    ])
  })

  test('doctor reports a server that accepts connections and never answers', async () => {
    await using server = await serveSilence()
    const findings = await found(`http://${server.host}/v1`)
    expect(findings).toMatchObject([
      { code: 'timeout', fix: expect.stringContaining(`http://${server.host}/health`) as string },
    ])
  })

  test('doctor reports a server that never completes its answer', async () => {
    await using server = await serveHttp((_, response) => void response.writeHead(200).write('{'))
    expect(await found(`http://${server.host}/v1`)).toMatchObject([{ code: 'timeout' }])
  })

  test('an invalid URL is a usage error', async () => {
    for (const url of ['router', 'ftp://router.example.com', 'http://me:secret@router.example.com/v1']) {
      const { code, err } = await cli.say('doctor', '--url', url)
      expect(code).toBe(2)
      expect(err).toContain('--url https://HOST/v1')
      expect(err).not.toContain('secret')
    }
  })
})

describe('a proxy in front', () => {
  test('that removes the key is reported', async () => {
    const findings = await through({ requestHeaders: without('authorization') })
    expect(findings).toMatchObject([{ code: 'header_stripped' }])
    expect(findings[0]!.fix).toContain('proxy_set_header Authorization')
  })

  test('that changes the key is reported', async () => {
    expect(
      await through({ requestHeaders: (headers) => ({ ...headers, authorization: 'Basic bWFkZTp1cA==' }) }),
    ).toMatchObject([{ code: 'header_stripped' }])
  })

  test('that removes the User-Agent is reported', async () => {
    expect(await through({ requestHeaders: without('user-agent') })).toMatchObject([
      { code: 'user_agent', what: expect.stringContaining('a proxy removes') as string },
    ])
  })

  test('that buffers streams is reported', async () => {
    const findings = await through({ buffers: true })
    expect(findings).toMatchObject([{ code: 'buffering', blocks: false }])
    expect(findings[0]!.fix).toContain('proxy_buffering off')
  })

  test('that blocks only the API is reported', async () => {
    expect(await through({ refuses: (path) => (path.startsWith('/v1/') ? 403 : undefined) })).toMatchObject([
      { code: 'proxy_blocks', what: expect.stringContaining('answers 403 for /v1') as string },
    ])
  })

  test('that cannot reach the service is reported', async () => {
    expect(await through({ refuses: () => 502 })).toMatchObject([
      { code: 'proxy_unreached', what: expect.stringContaining('answers 502') as string },
    ])
  })

  test('that answers with its own status is reported', async () => {
    const said = { data: [{ owned_by: 'svc-router' }] }
    expect(await through({ says: (path) => (path === '/v1/models' ? said : undefined) })).toMatchObject([
      { code: 'unexpected', what: expect.stringContaining('answers 503') as string },
    ])
  })

  test('that removes only the signal headers is not a problem', async () => {
    const responseHeaders = without('x-quota-limit')
    await using proxy = await serveProxy(service.origin, { responseHeaders })
    const { code, out } = await cli.say('doctor', '--url', `http://${proxy.host}/v1`)
    expect([code, out.includes('undefined')]).toEqual([0, false])
  })

  test('in front of a service that is not ready is reported as such', async () => {
    const said = { ready: false, reasons: ['draining\u001B[2J'] }
    expect(await through({ says: (path) => (path === '/ready' ? said : undefined) })).toMatchObject([
      { code: 'not_ready', what: 'the service is not ready for requests: draining?[2J' },
    ])
  })
})

test('doctor reports a User-Agent that the edge gate rejects', async () => {
  expect(await found(service.baseUrl, '--user-agent', 'unknown')).toMatchObject([
    { code: 'user_agent', what: expect.stringContaining('"unknown"') as string },
  ])
  expect(await found(service.baseUrl, '--user-agent', 'my-app/1.0')).toEqual([])
})

describe('the clock', () => {
  test.each([
    ['ahead', -300_000, '5 min ahead of'],
    ['behind', 600_900, '10 min behind'],
  ])("doctor reports a clock %s of the service's by more than half a minute", async (_, byMs, sentence) => {
    const date = new Date(Date.now() + byMs).toUTCString()
    const findings = await through({ responseHeaders: (headers) => ({ ...headers, date }) })
    expect(findings).toMatchObject([
      { code: 'clock', what: expect.stringContaining(sentence) as string, blocks: false },
    ])
  })

  test('doctor ignores a difference of a few seconds', async () => {
    const date = new Date(Date.now() - 10_000).toUTCString()
    expect(await through({ responseHeaders: (headers) => ({ ...headers, date }) })).toEqual([])
  })
})

describe('the account', () => {
  test('doctor reports a premium profile on a plan without it', async () => {
    cli.env['SVC_ROUTER_API_KEY'] = (await service.addAccount('freeloader', 'free')).key
    const { upgradeUrl } = linksFor(service.config.appUrl)
    expect(await found(service.baseUrl, '--model', 'svc-router/fusion')).toMatchObject([
      {
        code: 'plan',
        what: 'svc-router/fusion requires a premium plan, and this account is on the Free plan',
        fix: expect.stringContaining(upgradeUrl) as string,
      },
    ])
  })

  test('doctor reports an unknown profile', async () => {
    expect(await found(service.baseUrl, '--model', 'svc-router/frontir')).toMatchObject([
      { code: 'model', fix: 'use --model svc-router/frontier' },
    ])
  })

  test('doctor reports a reached rate limit', async () => {
    const { key } = await service.addAccount('hasty', 'slow')
    cli.env['SVC_ROUTER_API_KEY'] = key
    await (await service.chat({}, { authorization: `Bearer ${key}` })).text()
    const [finding, ...rest] = await found(service.baseUrl)
    expect([finding!.code, rest]).toEqual(['minute', []])
    expect(Number(/^sleep (\d+)$/.exec(finding!.fix)?.[1])).toBeGreaterThan(50)
  })

  test('doctor reports an exhausted monthly quota', async () => {
    const { key } = await service.addAccount('spent', 'small')
    cli.env['SVC_ROUTER_API_KEY'] = key
    await (await service.chat({}, { authorization: `Bearer ${key}` })).text()
    expect(await found(service.baseUrl)).toMatchObject([
      { code: 'quota', what: expect.stringMatching(/quota of 1 is used up; it resets on \d{4}-\d\d-01 UTC/) as string },
    ])
  })

  test('doctor reports a profile without a provider', async () => {
    makeOwn()
    expect(await found(undefined, '--model', 'team/empty')).toMatchObject([
      {
        code: 'no_provider',
        what: 'no provider can serve team/empty for this account',
        fix: 'add a backend to the profile in the configuration, or use --model svc-router/frontier',
      },
    ])
  })

  test('doctor does not advise to connect a provider if the operator chose the backends of fusion', async () => {
    const settings = { plans, default_plan: 'max', profiles: { 'svc-router/fusion': { backends: [] } } }
    await using other = {
      service: await Service.start({ settings }),
      [Symbol.asyncDispose]: () => other.service.stop(),
    }
    cli.env['SVC_ROUTER_API_KEY'] = other.service.key
    expect(await found(other.service.baseUrl, '--model', 'svc-router/fusion')).toMatchObject([
      { code: 'no_provider', fix: 'ask the operator to add a backend, or use --model svc-router/frontier' },
    ])
  })

  test('doctor reports a profile that the key may not use', async () => {
    const limits = { ...noLimits, profiles: ['svc-router/frontier'] }
    const { key } = await createKey(service.accountsDeps, service.account.id, 'limited', limits)
    cli.env['SVC_ROUTER_API_KEY'] = key.reveal()
    expect(await found(service.baseUrl, '--model', 'team/empty')).toMatchObject([
      { code: 'model', what: 'the key may not use team/empty', fix: 'use --model svc-router/frontier' },
    ])
  })
})

describe('the provider', () => {
  let failing: Service
  beforeEach(async () => {
    failing = await Service.start({ formats: ['openai-chat'] })
    cli.env['SVC_ROUTER_API_KEY'] = failing.key
  })
  afterEach(() => failing.stop())

  test('doctor reports an open circuit breaker', async () => {
    failing.providers[0]!.script([{ do: 'status', status: 429, retryAfter: '30', repeat: true }])
    await (await failing.chat()).text()
    expect(await found(failing.baseUrl)).toMatchObject([
      {
        code: 'cooling',
        what: `the only backend of svc-router/frontier is skipped: ${openNotes.failing}, ${openNotes.slow}, ${openNotes.rate}, or it is ${heldNote}`,
      },
    ])
  })

  test('doctor reports a rejected credential', async () => {
    failing.providers[0]!.script([{ do: 'status', status: 401, repeat: true }])
    await (await failing.chat()).text()
    const what = `the only backend of svc-router/frontier is skipped: ${openNotes.credentials}`
    expect(await found(failing.baseUrl)).toMatchObject([{ code: 'credentials', what }])
  })

  test.each([
    ['refuses', { do: 'status', status: 500, repeat: true }, 'server_is_overloaded'],
    ['breaks off', { do: 'cut', afterEvents: 2, repeat: true }, 'answer_broken'],
  ] as const)('%s a real request, with --ask', async (_, step, code) => {
    failing.providers[0]!.script([step])
    expect(await found(failing.baseUrl)).toEqual([])
    const findings = await found(failing.baseUrl, '--ask')
    expect(findings).toMatchObject([{ code, fix: expect.stringMatching(/the request ID req_\w+$/) as string }])
  })

  test('doctor reports a failed provider until it answers again', async () => {
    failing.providers[0]!.script([{ do: 'status', status: 503 }])
    expect((await failing.chat()).status).toBe(503)
    expect(await found(failing.baseUrl)).toMatchObject([
      { code: 'failing', what: 'the only backend of svc-router/frontier failed its last request' },
    ])
    expect(await found(failing.baseUrl, '--ask')).toEqual([])
    expect(await found(failing.baseUrl)).toEqual([])
  })

  test('doctor reports providers that fail in part', async () => {
    await using several = { service: await Service.start(), [Symbol.asyncDispose]: () => several.service.stop() }
    cli.env['SVC_ROUTER_API_KEY'] = several.service.key
    several.service.providers[0]!.script([{ do: 'status', status: 503 }])
    expect((await several.service.chat()).status).toBe(200)
    expect(await found(several.service.baseUrl)).toMatchObject([
      { code: 'failing', what: '1 of 3 backends of svc-router/frontier failed its last request' },
    ])
  })
})

test('doctor reports all of several problems, blocking ones first', async () => {
  const date = new Date(Date.now() - 3_600_000).toUTCString()
  const meddling = { responseHeaders: (headers: object) => ({ ...headers, date }), buffers: true }
  const findings = await through(meddling, '--model', 'svc-router/frontir')
  expect(findings.map(({ code }) => code)).toEqual(['model', 'buffering', 'clock'])
  await using proxy = await serveProxy(service.origin, meddling)
  const { code, out } = await cli.say('doctor', '--url', `http://${proxy.host}/v1`)
  expect(code).toBe(1)
  expect(out.split('\n')).toHaveLength(4)
  expect(out).toMatch(/^✗ .+\n {2}= fix: .+\n✗ .+\n {2}= fix: .+$/)
})
