import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { startSimulatedProvider, type SimulatedProvider } from '../../src/providers/simulated.ts'
import { documentedBlocks, writtenBaseUrl } from '../clients/docs.ts'
import { Service } from '../service.ts'
import { CountingProxy } from './counting-proxy.ts'
import { installAgent, runAgent, type Finished } from './programme.ts'
import { RunningService } from './running-service.ts'

const version = '2.1.329'
const withinMs = 90_000

let programme: string
beforeAll(() => {
  // What finds the programme of this platform where the package's own script did not put it into its place.
  programme = join(installAgent('@anthropic-ai/claude-code', version), 'cli-wrapper.cjs')
})

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'svc-router-claude-'))
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

/** Runs Claude Code after the lines of docs/clients.md, with another address; `retries` is the number of them where it is not the page's. */
function claude(
  address: string,
  key: string,
  prompt: string,
  { args = [], retries }: { args?: readonly string[]; retries?: number } = {},
): Promise<Finished> {
  const lines = documentedBlocks('Claude Code', 'sh')[0]!
  const written = `ANTHROPIC_BASE_URL=${new URL(writtenBaseUrl).origin}\n`
  expect(lines).toContain(written)
  const changed = retries === undefined ? '' : `export CLAUDE_CODE_MAX_RETRIES=${retries}\n`
  const script = `${lines.replace(written, `ANTHROPIC_BASE_URL=${address}\n`)}${changed}exec "$@"`
  return runAgent('sh', ['-c', script, 'sh', process.execPath, programme, '-p', prompt, ...args], {
    folder,
    withinMs,
    env: { SVC_ROUTER_API_KEY: key, CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1' },
  })
}

function originOf({ baseUrl }: RunningService): string {
  return new URL(baseUrl).origin
}

/** Arguments that give Claude Code the tool server of these tests, and no other. */
function weatherServer(): string[] {
  const path = join(folder, 'mcp.json')
  const weather = { command: process.execPath, args: [join(import.meta.dirname, 'weather-mcp.mjs')] }
  writeFileSync(path, JSON.stringify({ mcpServers: { weather } }))
  return ['--mcp-config', path, '--strict-mcp-config', '--allowedTools', 'mcp__weather__get_weather']
}

describe.each([
  ['openai-chat', '/v1/chat/completions', 'translated'],
  ['openai-responses', '/v1/responses', 'translated'],
  ['anthropic-messages', '/v1/messages', 'relayed'],
] as const)('Claude Code, with a backend that speaks %s', (format, upstreamPath, lane) => {
  let provider: SimulatedProvider
  let service: RunningService
  beforeEach(async () => {
    provider = await startSimulatedProvider({ name: 'alpha', capture: true })
    service = await RunningService.start(`
providers: { simulation: { preset: custom, base_url: '${provider.baseUrl}', format: ${format} } }
backends: { alpha: { provider: simulation, model: model-of-alpha } }
`)
  })
  afterEach(async () => {
    await service[Symbol.asyncDispose]()
    await provider.close()
  })

  /** One record for each turn, each served by the first attempt and charged once, and no request besides. */
  async function expectServed(turns: number): Promise<void> {
    const records = await service.requests()
    expect(records).toHaveLength(turns)
    for (const record of records) {
      expect(record).toMatchObject({
        profile: 'svc-router/frontier',
        format: 'anthropic-messages',
        stream: true,
        state: 'done',
        charged: 1,
        attempts: [{ backend: 'alpha', outcome: 'answered' }],
        usage: { source: 'counted' },
      })
      expect(record.errorCode).toBeUndefined()
    }
    expect(provider.captured().map(({ path }) => path)).toEqual(records.map(() => upstreamPath))
  }

  test(`finishes a prompt, ${lane}, served and charged once`, async () => {
    const { code, stdout, stderr } = await claude(originOf(service), service.key, 'Say hello.')
    expect(code, stderr).toBe(0)
    expect(stdout).toContain('This is a simulated answer from alpha.')
    await expectServed(1)
  })

  test('calls a tool of a tool server and answers with its result', async () => {
    const { code, stdout, stderr } = await claude(originOf(service), service.key, 'What is the weather in Oslo?', {
      args: weatherServer(),
    })
    expect(code, stderr).toBe(0)
    expect(stdout).toContain('It is 7 degrees in Oslo.')
    await expectServed(2)
  })

  test('goes on with a conversation that it kept', async () => {
    expect((await claude(originOf(service), service.key, 'Say hello.')).code).toBe(0)
    const { code, stdout, stderr } = await claude(originOf(service), service.key, 'And again.', {
      args: ['--continue'],
    })
    expect(code, stderr).toBe(0)
    expect(stdout).toContain('This is a simulated answer from alpha.')
    expect(provider.captured().at(-1)!.body).toContain('This is a simulated answer from alpha.')
    await expectServed(2)
  })

  test('does not take an answer that breaks off for a whole one: it asks again, whole, and then says that it failed', async () => {
    provider.script([{ do: 'cut', afterEvents: 9, repeat: true }])
    const { code, stdout } = await claude(originOf(service), service.key, 'Say hello.')
    expect(code).toBe(1)
    expect(stdout).toMatch(/^API Error: /)
    expect(stdout).not.toContain('simulated answer')
    const records = await service.requests()
    expect(records[0]).toMatchObject({ stream: true, errorCode: 'upstream_broken' })
    expect(records.some(({ state, errorCode }) => state === 'done' && errorCode === undefined)).toBe(false)
  })

  test('answers after all where only the first answer broke off', async () => {
    provider.script([{ do: 'cut', afterEvents: 9 }])
    const { code, stdout } = await claude(originOf(service), service.key, 'Say hello.')
    expect(code).toBe(0)
    expect(stdout.match(/This is a simulated answer from alpha\./g)).toHaveLength(1)
    expect((await service.requests()).map(({ errorCode }) => errorCode)).toEqual(['upstream_broken', undefined])
  })
})

describe('what a person reads at Claude Code when a request is refused, and how often it asks', () => {
  const plans = {
    max: { name: 'Max', requests_per_minute: 600, requests_per_month: 100_000, premium: true },
    tiny: { name: 'Tiny', requests_per_minute: 100, requests_per_month: 1 },
    slow: { name: 'Slow', requests_per_minute: 1, requests_per_month: 500 },
  }
  let service: Service
  let proxy: CountingProxy
  beforeAll(async () => {
    service = await Service.start({ formats: ['anthropic-messages'], settings: { plans } })
  })
  beforeEach(async () => {
    proxy = await CountingProxy.start(service.origin)
  })
  afterEach(() => proxy[Symbol.asyncDispose]())
  afterAll(() => service.stop())

  /** Asks once well, so that the plan of a new account is used up, and gives its key. */
  async function spentKey(plan: string): Promise<string> {
    const { key } = await service.addAccount(`${plan}-${Math.random()}`, plan)
    expect((await service.chat({}, { authorization: `Bearer ${key}` })).status).toBe(200)
    return key
  }

  test('401, a revoked key: our sentence and its link, after one request', async () => {
    const { key, stored } = await service.addAccount('revoked', 'max')
    await service.revoke(stored.id)
    const { code, stdout, stderr } = await claude(proxy.origin, key, 'Say hello.')
    expect(code).toBe(1)
    expect(stdout).toContain('API Error: 401 This API key was revoked and will not work again. Create a new one:')
    expect(stdout).toContain(`${service.origin}/account`)
    expect(stdout + stderr).not.toContain(key)
    expect(proxy.statuses).toEqual([401])
  })

  test('402, a spent month: our sentence and the way to upgrade, after one request', async () => {
    const { code, stdout } = await claude(proxy.origin, await spentKey('tiny'), 'Say hello.')
    expect(code).toBe(1)
    expect(stdout).toContain('API Error: 402 The monthly quota is used up: 1 of 1 on Tiny.')
    expect(stdout).toContain(`Upgrade: ${service.origin}/billing/upgrade`)
    expect(proxy.statuses).toEqual([402])
  })

  test('403, a premium profile on a plan without it: our sentence and the way to upgrade, after one request', async () => {
    const { key } = await service.addAccount('plain', 'slow')
    const { code, stdout } = await claude(proxy.origin, key, 'Say hello.', { args: ['--model', 'svc-router/fusion'] })
    expect(code).toBe(1)
    expect(stdout).toContain('API Error: 403 svc-router/fusion needs a premium plan; this account is on Slow.')
    expect(stdout).toContain(`Upgrade: ${service.origin}/billing/upgrade`)
    expect(proxy.statuses).toEqual([403])
  })

  test('429, a spent minute: our sentence, where it may not wait', async () => {
    const key = await spentKey('slow')
    const { code, stdout } = await claude(proxy.origin, key, 'Say hello.', { retries: 0 })
    expect(code).toBe(1)
    expect(stdout).toMatch(/\(429\) · 1 requests a minute are allowed on Slow.*Please try again in \d+s\./)
    expect(proxy.statuses).toEqual([429])
  })

  test('429, a spent minute: as docs/clients.md sets it up it waits as long as we say, and is answered', async () => {
    const { code, stdout } = await claude(proxy.origin, await spentKey('slow'), 'Say hello.')
    expect(stdout).toContain('This is a simulated answer from alpha.')
    expect(code).toBe(0)
    expect(proxy.statuses).toEqual([429, 200])
  })

  test('404, an address that ends in /v1: it blames the model, as docs/clients.md says', async () => {
    const { code, stdout, stderr } = await claude(`${proxy.origin}/v1`, service.key, 'Say hello.')
    expect(code, stderr).toBe(1)
    expect(stdout).toContain("There's an issue with the selected model")
    expect(new Set(proxy.statuses)).toEqual(new Set([404]))
  })
})
