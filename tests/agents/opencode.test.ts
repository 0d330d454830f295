import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { startSimulatedProvider, type SimulatedProvider } from '../../src/providers/simulated.ts'
import { documentedBlocks, writtenBaseUrl } from '../clients/docs.ts'
import { installAgent, runAgent, type Finished } from './programme.ts'
import { RunningService } from './running-service.ts'

const version = '1.18.33'
const withinMs = 90_000
const linkWithinMs = 60_000

let programme: string
beforeAll(() => {
  const folder = installAgent('opencode-ai', version)
  // What its own installation would do: puts the programme of this platform in its place.
  const { status, stderr } = spawnSync(process.execPath, [join(folder, 'postinstall.mjs')], {
    cwd: folder,
    encoding: 'utf8',
    timeout: linkWithinMs,
  })
  if (status !== 0) throw new Error(`opencode could not be put in its place: ${stderr}`)
  programme = join(folder, 'bin', 'opencode.exe')
})

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'svc-router-opencode-'))
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

interface Configuration {
  readonly provider: { readonly 'svc-router': Record<string, unknown> }
}

/** Runs opencode with the configuration of docs/clients.md, this service's address and another `npm` package where one is named. */
function opencode(service: RunningService, key: string, prompt: string, npm?: string): Promise<Finished> {
  const text = documentedBlocks('opencode', 'json')[0]!
  expect(text).toContain(writtenBaseUrl)
  const config = JSON.parse(text.replace(writtenBaseUrl, service.baseUrl)) as Configuration
  if (npm !== undefined) config.provider['svc-router']['npm'] = npm
  const weather = { type: 'local', command: [process.execPath, join(import.meta.dirname, 'weather-mcp.mjs')] }
  const path = join(folder, 'opencode.json')
  writeFileSync(path, JSON.stringify({ ...config, autoupdate: false, share: 'disabled', mcp: { weather } }))
  return runAgent(programme, ['run', '-m', 'svc-router/svc-router/frontier', prompt], {
    folder,
    withinMs,
    env: {
      OPENCODE_CONFIG: path,
      OPENCODE_DISABLE_AUTOUPDATE: '1',
      OPENCODE_DISABLE_MODELS_FETCH: '1',
      SVC_ROUTER_API_KEY: key,
    },
  })
}

describe.each([
  ['openai-chat', '/v1/chat/completions'],
  ['openai-responses', '/v1/responses'],
] as const)('opencode, with a backend that speaks %s', (format, upstreamPath) => {
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

  test.each([
    ['chat completions', undefined, 'openai-chat'],
    ['responses', '@ai-sdk/openai', 'openai-responses'],
  ] as const)('finishes a prompt over %s', async (_, npm, spoken) => {
    const { code, stdout, stderr } = await opencode(service, service.key, 'Say hello.', npm)
    expect(code, stderr).toBe(0)
    expect(stdout).toContain('This is a simulated answer from alpha.')
    const records = await service.requests()
    // One for the title of the session, one for the answer.
    expect(records).toHaveLength(2)
    for (const record of records) expect(record).toMatchObject({ format: spoken, state: 'done', charged: 1 })
    expect(provider.captured().map(({ path }) => path)).toEqual([upstreamPath, upstreamPath])
  })

  test.each([
    ['chat completions', undefined],
    ['responses', '@ai-sdk/openai'],
  ] as const)('calls a tool and answers with its result over %s', async (_, npm) => {
    const { code, stdout, stderr } = await opencode(service, service.key, 'What is the weather in Oslo?', npm)
    expect(code, stderr).toBe(0)
    expect(stdout).toContain('It is 7 degrees in Oslo.')
    expect(await service.requests()).toHaveLength(3)
  })
})

describe('opencode, with the service as it comes', () => {
  let service: RunningService
  beforeAll(async () => {
    service = await RunningService.start()
  })
  afterAll(() => service[Symbol.asyncDispose]())

  test('shows our sentence and its link for a mistyped key', async () => {
    const { code, stderr } = await opencode(service, service.key.slice(0, -1), 'Say hello.')
    expect(code).toBe(1)
    expect(stderr).toContain('The key is incomplete or mistyped')
    expect(stderr).toContain(`${new URL(service.baseUrl).origin}/account`)
    expect(await service.requests()).toEqual([])
  })
})
