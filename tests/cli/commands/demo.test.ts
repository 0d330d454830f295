import { execFileSync } from 'node:child_process'
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import type { DemoService } from '../../../src/cli/commands/demo/demo-ports.ts'
import { Harness } from '../harness.ts'

const names = ['failover', 'ratelimit', 'quota', 'fusion', 'cache'] as const
/** How many requests the demo `quota` sends. */
const requestsOfQuota = 11
const usual = process.env['TMPDIR']
const folder = mkdtempSync(join(tmpdir(), 'svc-router-demo-test-'))
let cli: Harness

beforeAll(() => {
  process.env['TMPDIR'] = folder
})
beforeEach(() => {
  cli = new Harness()
  cli.onStop = () => {}
})
afterEach(() => {
  cli.remove()
  expect(readdirSync(folder)).toEqual([])
})
afterAll(() => {
  if (usual === undefined) delete process.env['TMPDIR']
  else process.env['TMPDIR'] = usual
  rmSync(folder, { recursive: true })
})

interface Report {
  readonly kept: boolean
  readonly checks: readonly { readonly claim: string; readonly holds: boolean }[]
  readonly seconds: number
}

/** Lets a test change the service of a demo. */
function withService(change: (service: DemoService) => Partial<DemoService>): void {
  const open = cli.openDemoService
  cli.openDemoService = async (options) => {
    const service = await open(options)
    return { ...service, ...change(service) }
  }
}

test.each(names)('demo %s shows that its promise is kept, and leaves no file behind', async (name) => {
  const { code, out } = await cli.say('demo', name, '--json')
  const { kept, checks, seconds } = JSON.parse(out) as Report
  expect(checks.filter(({ holds }) => !holds)).toEqual([])
  expect(checks.length).toBeGreaterThan(3)
  expect({ code, kept }).toEqual({ code: 0, kept: true })
  expect(seconds).toBeLessThan(10)
})

test('a demo prints its requests, the headers that matter, the charge, and that the providers are simulated', async () => {
  const { code, out } = await cli.say('demo', 'failover')
  expect(code).toBe(0)
  expect(out).toMatch(/at http:\/\/127\.0\.0\.1:\d+\/v1/)
  expect(out).toContain('Its providers (sim-alpha, sim-beta) are simulated: no real model is called.')
  expect(out.match(/^ {2}curl -i http:/gm)).toHaveLength(4)
  expect(out.match(/^ {2}X-Svc-Router-Retry-Count: 1$/gm)).toHaveLength(4)
  expect(out.match(/^ {2}X-Svc-Router-Upstream: sim-beta$/gm)).toHaveLength(3)
  expect(out).toMatch(/attempts: sim-alpha unreachable \d+ ms, then sim-beta answered \d+ ms/)
  expect(out).toMatch(/attempts: sim-alpha server_error \(503\) \d+ ms, then sim-beta answered/)
  expect(out).toMatch(/attempts: sim-alpha broken \d+ ms, then sim-beta answered/)
  expect(out.match(/charged: {2}1 of 1/g)).toHaveLength(3)
  expect(out.match(/charged: {2}0 of 1/g)).toHaveLength(1)
  expect(out).toMatch(
    /\nPromise kept: If a provider fails before content, .*\n8 checks in [\d.]+ s\. Read more: docs\/demo\.md$/,
  )
  expect(out).not.toContain('\u001b')
})

test('a broken promise is named, and the exit code is 1', async () => {
  withService(() => ({ fail: () => Promise.resolve() }))
  cli.colors = true
  const { code, out } = await cli.say('demo', 'failover')
  expect(code).toBe(1)
  expect(out).toContain('\u001b[31mBROKEN\u001b[39m  sim-beta answered after 0 failed backend')
  expect(out).toContain('\u001b[32mok\u001b[39m  1 unit was charged')
  expect(out).toContain('Promise BROKEN: If a provider fails before content')
  expect(out).toContain('not true: the client gets a 503 that says to retry in null s')
})

test('a clock that does not move breaks the promise of the rate limit', async () => {
  withService(() => ({ skip: () => Promise.resolve() }))
  const { code, out } = await cli.say('demo', 'ratelimit', '--json')
  const broken = (JSON.parse(out) as Report).checks.filter(({ holds }) => !holds)
  expect({ code, claims: broken.map(({ claim }) => claim) }).toEqual({
    code: 1,
    claims: [expect.stringMatching(/^it is rejected again, and Retry-After is the rest/), 'it is admitted'],
  })
})

test('Ctrl-C stops a demo and its service', async () => {
  let stop = (): void => {}
  let baseUrl = ''
  cli.onStop = (run) => (stop = run)
  withService((service) => {
    baseUrl = service.baseUrl
    return {
      recordOf(id) {
        stop()
        return service.recordOf(id)
      },
    }
  })
  const { code, out, err } = await cli.say('demo', 'quota')
  expect({ code, err }).toEqual({ code: 1, err: 'Stopped before the end.' })
  expect(out).not.toContain('Promise kept')
  await expect(fetch(`${baseUrl}/models`)).rejects.toThrow('fetch failed')
})

test('with --keep, the service runs until Ctrl-C, and a shell understands the printed curl command', async () => {
  let stop = (): void => {}
  cli.onStop = (run) => (stop = run)
  const kept = Promise.withResolvers<DemoService>()
  let reveals = 0
  withService((service) => {
    const { key } = service
    const reveal = (): string => {
      reveals += 1
      // After one for each request, the message reveals the key.
      if (reveals > requestsOfQuota) kept.resolve(service)
      return key.reveal()
    }
    return { key: Object.assign(Object.create(key) as typeof key, { reveal }) }
  })
  const said = cli.say('demo', 'quota', '--keep')
  const { baseUrl, key } = await kept.promise
  const headers = { authorization: `Bearer ${key.reveal()}` }
  expect((await fetch(`${baseUrl}/models`, { headers })).status).toBe(200)
  stop()
  const { code, out, err } = await said
  expect(code).toBe(0)
  expect(err).toContain(`export SVC_ROUTER_API_KEY=${key.reveal()}`)
  const [curl = ''] = /curl -i .*/.exec(out) ?? []
  const words = execFileSync('sh', ['-c', `SVC_ROUTER_API_KEY=k; curl() { printf '%s\\n' "$@"; }; ${curl}`], {
    encoding: 'utf8',
  })
  expect(words.trim().split('\n')).toEqual([
    '-i',
    `${baseUrl}/chat/completions`,
    '-H',
    'authorization: Bearer k',
    '-H',
    'content-type: application/json',
    '-d',
    '{"model":"svc-router/frontier","messages":[{"role":"user","content":"Hello!"}]}',
  ])
  await expect(fetch(`${baseUrl}/models`)).rejects.toThrow('fetch failed')
})

test('demo alone lists the demos, each in one line', async () => {
  const { code, out, err } = await cli.say('demo')
  expect(code).toBe(0)
  expect(out.split('\n').map((line) => line.split(' ')[0])).toEqual(['DEMO', ...names])
  expect(err).toBe('Run one: npx svc-router demo failover')
})

test('an unknown demo suggests the nearest name', async () => {
  const { code, err } = await cli.say('demo', 'failver')
  expect(code).toBe(2)
  expect(err).toMatch(/^error: there is no such demo\n {2}= fix: did you mean "npx svc-router demo failover/)
  expect((await cli.say('demo', 'xyzzy-unknown')).err).toContain('choose one of: failover, ratelimit, quota, fusion')
})
