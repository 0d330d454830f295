import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { linksFor, type Links } from '../../src/domain/links.ts'
import { isLongRun } from '../long-run.ts'
import { Service } from '../service.ts'
import { documentedBlocks } from './docs.ts'
import { weatherIn } from './openai-clients.ts'
import { pythonWithOpenai } from './python.ts'
import { plans } from './refusal-plans.ts'

const script = join(import.meta.dirname, 'python', 'openai_client.py')
const limitMs = 120_000
const model = 'svc-router/frontier'
const vectors = 'svc-router/embeddings'
const says = 'This is a simulated answer from alpha.'
const python = pythonWithOpenai("the clients of Python's openai")

type Result = Readonly<Record<string, unknown>>
type Results = Readonly<Record<string, Result>>

const formats = ['openai-chat', 'openai-responses'] as const
let services: Service[] = []
/** What the script found with each service. */
let found: readonly Results[] = []

// Importing the package takes a second of CPU time, so one run of the script uses the services of both formats.
beforeAll(async () => {
  if (python === undefined) return
  services = await Promise.all(formats.map(startFor))
  found = await runScript(await Promise.all(services.map(givenFor)))
}, limitMs)
afterAll(() => Promise.all(services.map((service) => service.stop())))

describe.skipIf(python === undefined).each(formats)("Python's openai package with a backend of format %s", (format) => {
  let service: Service
  let links: Links
  let results: Results
  beforeAll(() => {
    const place = formats.indexOf(format)
    service = services[place]!
    results = found[place]!
    links = linksFor(service.config.appUrl)
  })

  test.each(['chat', 'responses'])('%s: a text arrives non-streaming and streamed', (api) => {
    const tokens = expect.any(Number) as number
    expect(results[`${api}_text`]).toMatchObject({ text: expect.stringContaining(says) as string, model, tokens })
    const stream = results[`${api}_stream`]!
    expect(stream).toMatchObject({
      text: results[`${api}_text`]!['text'],
      finish: api === 'chat' ? 'stop' : 'response.completed',
      requests: 1,
    })
    expect(stream['pieces']).toBeGreaterThan(5)
  })

  test.each(['chat', 'responses'])('%s: a tool loop of two steps with two calls ends with an answer', (api) => {
    expect(results[`${api}_tools`]).toMatchObject({ calls: 2, requests: 2 })
    expect(results[`${api}_tools`]!['text']).toContain(weatherIn('Oslo'))
    expect(results[`${api}_tools`]!['text']).toContain(weatherIn('Lima'))
  })

  test.each(['chat', 'responses'])('%s: an object matches the schema', (api) => {
    const parsed = { city: 'simulated by alpha', degrees: expect.any(Number) as number }
    expect(results[`${api}_structured`]).toEqual({ parsed, requests: 1 })
  })

  test.each(['chat', 'responses'])('%s: an image is read', (api) => {
    expect(results[`${api}_image`]!['text']).toContain('I received 1 image')
  })

  describe.each(['alias', 'tool', 'header'])('fusion by the %s', (way) => {
    test.each(['chat_whole', 'chat_streamed', 'responses_whole', 'responses_streamed'])('%s', (how) => {
      const { text, items, fusion, requests } = results[`${way}_${how}`]!
      // The alias has one model think alone and writes no item; the tool appears as a call of a remote server.
      expect(text).toContain(way === 'alias' ? says : 'The tool answered')
      expect(fusion).toMatchObject({ ran: true })
      expect(requests).toBe(1)
      if (how.startsWith('responses')) expect(items).toEqual(way === 'alias' ? ['message'] : ['mcp_call', 'message'])
    })
  })

  // Which backend answers makes no difference to them.
  test.runIf(format === 'openai-chat' || isLongRun)('the programs in docs/clients.md run unchanged', async () => {
    const [chat] = documentedBlocks('OpenAI SDK for Python', 'python')
    const [embed] = documentedBlocks('Embeddings', 'python')
    const env = { ...process.env, SVC_ROUTER_BASE_URL: service.baseUrl, SVC_ROUTER_API_KEY: service.key }
    const { stdout } = await promisify(execFile)(python!, ['-c', `${chat}${embed}`], { env, timeout: limitMs })
    expect(stdout).toContain(says)
    expect(stdout).toContain('2 vectors of length 8')
  })

  test('embeddings and model lists work', () => {
    expect(results['embeddings']).toMatchObject({ size: 16, same: true, requests: 1 })
    expect(results['embeddings']!['length']).toBeCloseTo(1)
    expect(results['models']).toEqual({ ids: [model, 'svc-router/fusion', vectors], one: model, requests: 2 })
  })

  test.each(['refused_401', 'refused_401_stream'])('%s: a mistyped key is rejected at once', (name) => {
    expectRefusal(name, { class: 'AuthenticationError', status: 401, code: 'key_malformed' }, links.accountUrl)
  })

  test('an exhausted month is rejected at once, with the upgrade link', () => {
    expectRefusal('refused_402', { status: 402, code: 'insufficient_quota' }, links.upgradeUrl)
  })

  test('the fusion tool on a free plan is rejected at once, with the upgrade link', () => {
    const expected = { class: 'PermissionDeniedError', status: 403, code: 'plan_required' }
    expectRefusal('refused_403', expected, links.upgradeUrl)
  })

  test('an exhausted minute is rejected with the time to wait', () => {
    const expected = { class: 'RateLimitError', status: 429, code: 'rate_limit_exceeded' }
    expectRefusal('refused_429', expected, '')
    expect(results['refused_429']!['message']).toMatch(/on the Slow plan\. Please try again in \d+s\.$/)
  })

  test('after an exhausted minute, the SDK waits as long as the error says, twice', () => {
    const { requests, slept, message } = results['refused_429_waiting']!
    expect(requests).toBe(3)
    const seconds = Number(/try again in (\d+)s/.exec(String(message))?.[1])
    expect(slept).toHaveLength(2)
    for (const pause of slept as number[]) expect(Math.abs(pause - seconds)).toBeLessThanOrEqual(1)
  })

  /** Asserts one request, our sentence with its link at the end, and the request ID. */
  function expectRefusal(name: string, expected: Result, link: string): void {
    const result = results[name]!
    expect(result).toMatchObject({ ...expected, requests: 1, slept: [] })
    const message = String(result['message'])
    expect(message.endsWith(link)).toBe(true)
    expect(result['said']).toContain(message)
    expect(result['request_id']).toMatch(/^req_/)
  }
})

/** The key of an account that has exhausted its plan with one request. */
async function exhaustedKey(service: Service, plan: keyof typeof plans): Promise<string> {
  const { key } = await service.addAccount(plan, plan)
  expect((await service.chat({}, { authorization: `Bearer ${key}` })).status).toBe(200)
  return key
}

function startFor(format: (typeof formats)[number]): Promise<Service> {
  return Service.start({
    formats: [format],
    settings: {
      plans,
      backends: {
        alpha: { provider: 'alpha', model: 'm' },
        vectors: { provider: 'alpha', model: 'v', embeddings: 'v' },
      },
      profiles: { [vectors]: { backends: ['vectors'] } },
    },
  })
}

async function givenFor(service: Service): Promise<Readonly<Record<string, string>>> {
  return {
    base_url: service.baseUrl,
    key: service.key,
    free: (await service.addAccount('free', 'free')).key,
    spent_month: await exhaustedKey(service, 'tiny'),
    spent_minute: await exhaustedKey(service, 'slow'),
  }
}

async function runScript(given: readonly Readonly<Record<string, string>>[]): Promise<readonly Results[]> {
  const child = spawn(python!, [script], { stdio: ['pipe', 'pipe', 'inherit'], timeout: limitMs })
  child.stdin.end(JSON.stringify({ model, embeddings: vectors, services: given }))
  const [out, [code]] = await Promise.all([text(child.stdout), once(child, 'close')])
  if (code !== 0) throw new Error(`the script ended with ${String(code)}`)
  const found = JSON.parse(out) as Results[]
  const unexpected = found.flatMap(Object.entries<Result>).filter(([, result]) => 'unexpected' in result)
  expect(unexpected).toEqual([])
  return found
}
