import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { startSimulatedProvider, type SimulatedProvider } from '../../src/providers/simulated.ts'
import { CodexHome, weatherServer } from './codex-home.ts'
import { RunningService } from './running-service.ts'

beforeAll(() => void CodexHome.install())

let home: CodexHome
beforeEach(() => {
  home = new CodexHome()
})
afterEach(() => home[Symbol.dispose]())

describe.each([
  ['openai-chat', '/v1/chat/completions', 'translated', 'custom'],
  ['openai-responses', '/v1/responses', 'relayed', 'openai'],
] as const)('Codex, with a backend that speaks %s', (format, upstreamPath, lane, preset) => {
  let provider: SimulatedProvider
  let service: RunningService
  beforeEach(async () => {
    provider = await startSimulatedProvider({ name: 'alpha', capture: true })
    const config = `
providers: { simulation: { preset: ${preset}, base_url: '${provider.baseUrl}', format: ${format} } }
backends: { alpha: { provider: simulation, model: model-of-alpha, credential_env: SIMULATED_KEY } }
`
    service = await RunningService.start(config, { SIMULATED_KEY: 'made-up-for-this-test' })
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
        format: 'openai-responses',
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
    home.configure(service)
    const { code, stdout, stderr } = await home.run(['Say hello.'], service.key)
    expect(code, stderr).toBe(0)
    expect(stdout.trim()).toBe('This is a simulated answer from alpha. You said: "Say hello.".')
    expect(stderr).not.toMatch(/ERROR|Reconnecting/)
    await expectServed(1)
  })

  test('calls a tool of a tool server, which it declares in a namespace, and answers with its result', async () => {
    home.configure(service, { end: weatherServer })
    const { code, stdout, stderr } = await home.run(['What is the weather in Oslo?'], service.key)
    expect(code, stderr).toBe(0)
    expect(stderr).toContain('weather/get_weather (completed)')
    expect(stdout).toContain('It is 7 degrees in Oslo.')
    await expectServed(2)
  })

  test('goes on with a conversation that it kept', async () => {
    home.configure(service)
    expect((await home.run(['Say hello.'], service.key)).code).toBe(0)
    const { code, stdout, stderr } = await home.run(['resume', '--last', 'And again.'], service.key)
    expect(code, stderr).toBe(0)
    expect(stdout).toContain('You said: "And again.".')
    expect(provider.captured().at(-1)!.body).toContain('This is a simulated answer from alpha.')
    await expectServed(2)
  })

  test('gives an object of a schema', async () => {
    home.configure(service)
    const path = join(home.folder, 'schema.json')
    const properties = { city: { type: 'string' }, degrees: { type: 'integer' } }
    const schema = { type: 'object', properties, required: ['city', 'degrees'], additionalProperties: false }
    writeFileSync(path, JSON.stringify(schema))
    const { code, stdout, stderr } = await home.run(['--output-schema', path, 'The weather?'], service.key)
    expect(code, stderr).toBe(0)
    expect(JSON.parse(stdout)).toEqual({ city: 'simulated by alpha', degrees: expect.any(Number) as number })
    await expectServed(1)
  })

  test('reads the list of models that the service has for it, and has nothing more to warn of', async () => {
    await home.configureWithModels(service)
    const { code, stdout, stderr } = await home.run(['Say hello.'], service.key)
    expect(code, stderr).toBe(0)
    expect(stdout).toContain('This is a simulated answer from alpha.')
    expect(stderr).not.toContain('Model metadata')
    await expectServed(1)
  })

  test('does not take an answer that breaks off for a whole one', async () => {
    home.configure(service)
    provider.script([{ do: 'cut', afterEvents: 9, repeat: true }])
    const { code, stdout, stderr } = await home.run(['Say hello.'], service.key)
    expect(code).toBe(1)
    expect(stdout.trim()).toBe('')
    expect(stderr).toContain('The answer broke off before it was complete.')
  })
})

describe('Codex, with the service as it comes', () => {
  let service: RunningService
  beforeAll(async () => {
    service = await RunningService.start()
  })
  afterAll(() => service[Symbol.asyncDispose]())

  test('finishes a prompt', async () => {
    home.configure(service)
    const { code, stdout, stderr } = await home.run(['Say hello.'], service.key)
    expect(code, stderr).toBe(0)
    expect(stdout).toContain('This is a simulated answer from simulated-alpha.')
    expect(await service.requests()).toHaveLength(1)
  })

  test.each([
    ['a revoked key', 'revoked', 'This API key was revoked and will not work again.'],
    ['a mistyped key', 'mistyped', 'The key is incomplete or mistyped'],
  ] as const)('shows our sentence and its link for %s, and nothing is admitted', async (_, kind, sentence) => {
    home.configure(service)
    const before = await service.requests()
    const key = kind === 'revoked' ? await revokedKey(service) : service.key.slice(0, -1)
    const { code, stdout, stderr } = await home.run(['Say hello.'], key)
    expect(code).toBe(1)
    expect(stdout).toBe('')
    expect(stderr).toContain(sentence)
    expect(stderr).toContain(`${new URL(service.baseUrl).origin}/account`)
    expect(stderr).toMatch(/request id: req_/)
    expect(stderr).not.toContain(key)
    expect(await service.requests()).toEqual(before)
  })

  test('without a key says where it is', async () => {
    home.configure(service)
    const { code, stderr } = await home.run(['Say hello.'], undefined)
    expect(code).toBe(1)
    expect(stderr).toContain('Your first key is in the file first-key')
  })
})

async function revokedKey(service: RunningService): Promise<string> {
  const made = (await service.command('keys', 'create')) as { key: string; id: string }
  await service.command('keys', 'revoke', made.id, '--yes')
  return made.key
}
