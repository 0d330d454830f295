import { readdirSync, readFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { linksFor } from '../../src/domain/links.ts'
import { errorOf, expectRefusal } from '../refusals.ts'
import { Service } from '../service.ts'
import { Wire, type Answer } from '../wire.ts'

const fixtures = new URL('../fixtures/client-requests/', import.meta.url)

/** The User-Agent of every recorded client. */
const recorded = [
  ...new Set(
    readdirSync(fixtures).flatMap((name) => {
      const { headers } = JSON.parse(readFileSync(new URL(name, fixtures), 'utf8')) as {
        headers?: Record<string, string>
      }
      return headers?.['user-agent'] ?? []
    }),
  ),
]

let service: Service

beforeAll(async () => {
  service = await Service.start({ formats: ['openai-chat'] })
})
afterAll(() => service.stop())

describe('a client that identifies itself passes the edge gate (contract 2.29)', () => {
  test('the recordings cover many clients', () => {
    expect(recorded.length).toBeGreaterThanOrEqual(8)
  })

  test.each([
    ...recorded,
    'curl/8.14.1',
    'node',
    'Bun/1.4.0',
    'OpenAI/Python 2.1.0',
    'Anthropic/JS 1.11.0',
    'Anthropic/Python 0.75.0',
    'claude-cli/2.1.329 (external, sdk-cli)',
    'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0 Safari/537.36',
    'my-app/1.0 (me@example.com)',
    'my-app/1.0 python-requests/2.32.0',
    // The HTTP libraries of the major languages, as they name themselves (contract 2.29).
    'Wget/1.24.5',
    'HTTPie/3.2.4',
    'python-requests/2.32.0',
    'Python-urllib/3.13',
    'python-httpx/0.28.1',
    'Python/3.13 aiohttp/3.11.10',
    'Go-http-client/1.1',
    'Go-http-client/2.0',
    'reqwest/0.12.9',
    'hyper/1.5',
    'ureq/2.12.1',
    'Java-http-client/21.0.1',
    'Java/21.0.1',
    'okhttp/4.12.0',
    'Apache-HttpClient/5.4.1 (Java/21.0.1)',
    'Mozilla/5.0 (Windows NT; Windows NT 10.0; en-US) WindowsPowerShell/5.1',
    'Mozilla/5.0 (Linux; Debian 12; en-US) PowerShell/7.4.6',
    'Ruby',
    'Faraday v2.12.2',
    'GuzzleHttp/7',
    'PHP/8.4',
    'node-fetch/1.0 (+https://github.com/bitinn/node-fetch)',
    'undici',
    'axios/1.7.2',
    'got (https://github.com/sindresorhus/got)',
    'Deno/2.1.4',
    'Dart/3.6 (dart:io)',
    'MyApp/1 CFNetwork/1568 Darwin/24.1.0',
    'libwww-perl/6.77',
    'lwp-request/6.77',
    'HTTP-Tiny/0.088',
    'RestSharp/112.1.0.0',
    'ktor-client',
    'cpp-httplib/0.18',
  ])('%s', async (userAgent) => {
    expect((await get('/v1/models', userAgent)).status).toBe(200)
  })
})

describe('a client that does not identify itself gets an error that says what to send', () => {
  test.each([
    ['no User-Agent', undefined],
    ['an empty User-Agent', ''],
    ['a blank User-Agent', '   '],
    ['a dash as User-Agent', '-'],
    ['digits as User-Agent', '1.0'],
    ['null as User-Agent', 'null'],
    ['Unknown as User-Agent', 'Unknown'],
    ['a scanner', 'sqlmap/1.8 (https://sqlmap.org)'],
    ['a browser name alone', 'Mozilla/5.0'],
  ])('%s gets 403 with code 1010', async (_name, userAgent) => {
    for (const path of ['/v1/models', '/v1/chat/completions', '/v1/nothing', '/pricing', '/model-catalog']) {
      const answer = await get(path, userAgent)
      const { docsUrl } = linksFor(service.config.appUrl)
      expectRefusal(
        answer,
        {
          status: 403,
          type: 'edge_error',
          code: '1010',
          param: 'user-agent',
          source: 'edge',
          retryable: false,
          link: `${docsUrl}/errors/1010`,
          usage: false,
          model: path.startsWith('/v1/'),
        },
        linksFor(service.config.appUrl),
      )
      expect(errorOf(answer).message).toContain('Send a descriptive User-Agent')
    }
  })

  test('the log gives the reason without the value, with a bounded number of lines', async () => {
    const blocked = (): string[] =>
      service.events.flatMap((event) => (event.event === 'edge_blocked' ? [event.reason] : []))
    expect([...new Set(blocked())].toSorted()).toEqual(['bare_browser', 'missing', 'placeholder', 'scanner'])
    expect(JSON.stringify(service.events)).not.toContain('sqlmap')
    const before = blocked().length
    for (let sent = 0; sent < 50; sent += 1) await get('/v1/models', undefined)
    // At most six per minute, and a minute may end in between.
    expect(blocked().length - before).toBeLessThanOrEqual(12)
  })

  test.each(['/health', '/ready'])('%s accepts every probe', async (path) => {
    expect((await get(path, undefined)).status).toBe(200)
    expect((await get(path, 'Go-http-client/1.1')).status).toBe(200)
  })

  test('without the gate every client passes', async () => {
    const open = await Service.start({ formats: ['openai-chat'], settings: { edge_gate: { enabled: false } } })
    try {
      expect((await get('/v1/models', undefined, open)).status).toBe(200)
    } finally {
      await open.stop()
    }
  })
})

describe('upgrades', () => {
  const upgrade = (path: string, lines: string): string =>
    `GET ${path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${service.key}\r\nconnection: Upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: MDEyMzQ1Njc4OWFiY2RlZg==\r\n${lines}\r\n`

  test('a WebSocket opens without a User-Agent', async () => {
    const wire = await Wire.open(service.origin)
    await wire.write(upgrade('/v1/responses', ''))
    await expect.poll(() => wire.bytes).toMatch(/^HTTP\/1\.1 101 [\s\S]*\r\n\r\n$/)
    wire.destroy()
  })

  test.each([
    ['/v1/chat/completions', 426, 'upgrade_required'],
    ['/pricing', 426, 'upgrade_required'],
    ['/v1/elsewhere', 404, 'not_found'],
    ['/elsewhere', 404, 'not_found'],
  ])('a WebSocket to %s is rejected with %i and JSON, even without a User-Agent', async (path, status, code) => {
    const wire = await Wire.open(service.origin)
    await wire.write(upgrade(path, ''))
    const answer = await wire.answer()
    expect(answer.status).toBe(status)
    expect(errorOf(answer)).toMatchObject({ code, source: 'client', retryable: false })
    expect(answer.headers.get('connection')).toBe('close')
    await wire.ended()
    wire.destroy()
  })

  test("a scanner's WebSocket is rejected like its other requests", async () => {
    const wire = await Wire.open(service.origin)
    await wire.write(upgrade('/v1/responses', 'user-agent: sqlmap/1.8\r\n'))
    const answer = await wire.answer()
    expect(answer.status).toBe(403)
    expect(errorOf(answer)).toMatchObject({ code: '1010', source: 'edge' })
    wire.destroy()
  })

  test('a client that only offers HTTP/2 is answered in HTTP/1.1', async () => {
    const wire = await Wire.open(service.origin)
    await wire.write(
      `GET /pricing HTTP/1.1\r\nhost: x\r\nuser-agent: curl/8.14.1\r\nconnection: Upgrade, HTTP2-Settings\r\nupgrade: h2c\r\nhttp2-settings: AAMAAABk\r\n\r\n`,
    )
    expect((await wire.answer()).status).toBe(200)
    wire.destroy()
  })

  test('a client that resets during a rejection affects no one else', async () => {
    for (let attempt = 0; attempt < 50; attempt++) {
      const wire = await Wire.open(service.origin)
      await wire.write(`GET /v1/responses HTTP/1.1\r\nhost: x\r\nconnection: Upgrade\r\nupgrade: websocket\r\n\r\n`)
      wire.reset()
    }
    expect((await get('/health', undefined)).status).toBe(200)
  })
})

/** Sends a GET as bytes, because libraries would add a User-Agent. */
async function get(path: string, userAgent: string | undefined, of = service): Promise<Answer> {
  const wire = await Wire.open(of.origin)
  const line = userAgent === undefined ? '' : `user-agent: ${userAgent}\r\n`
  await wire.write(`GET ${path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${of.key}\r\n${line}\r\n`)
  const answer = await wire.answer()
  wire.destroy()
  return answer
}
