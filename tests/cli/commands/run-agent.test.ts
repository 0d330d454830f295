import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { announceRunning } from '../../../src/cli/process/running-file.ts'
import { Service } from '../../service.ts'
import { serveHttp, serveSilence } from '../broken-servers.ts'
import { Harness } from '../harness.ts'

const main = join(import.meta.dirname, '..', '..', '..', 'src', 'main.ts')
const withinMs = 3_000

let service: Service
beforeAll(async () => {
  service = await Service.start({ formats: ['openai-chat'] })
})
afterAll(() => service.stop())

let cli: Harness
let bin: string
beforeEach(() => {
  cli = new Harness()
  bin = join(cli.folder, 'bin')
  mkdirSync(bin)
  for (const name of ['codex', 'claude', 'opencode']) install(name, '')
  cli.env = { PATH: bin, SVC_ROUTER_API_KEY: service.key, SVC_ROUTER_BASE_URL: service.baseUrl }
})
afterEach(() => cli.remove())

/** Puts a program of that name on PATH. */
function install(name: string, script: string): void {
  writeFileSync(join(bin, name), `#!/bin/sh\n${script}\n`, { mode: 0o755 })
}

/** Codex's overrides, as it reads them. */
function overridesOf(args: readonly string[]): Record<string, unknown> {
  const pairs = args.flatMap((arg, index) => (args[index - 1] === '-c' ? [arg] : []))
  return Object.fromEntries(
    pairs.map((pair) => [pair.slice(0, pair.indexOf('=')), JSON.parse(pair.slice(pair.indexOf('=') + 1)) as unknown]),
  )
}

describe('each agent is configured only through arguments and environment', () => {
  test('codex', async () => {
    const { code, out, err } = await cli.say('run', 'codex', '--', 'exec', '--json', 'Say hello.')
    expect([code, out, err]).toEqual([0, '', ''])
    const [program] = cli.programs
    expect(program!.name).toBe('codex')
    expect(program!.args.slice(-3)).toEqual(['exec', '--json', 'Say hello.'])
    expect(overridesOf(program!.args)).toMatchObject({
      model: 'svc-router/frontier',
      model_provider: 'svc-router',
      model_context_window: 200_000,
      'model_providers.svc-router.base_url': service.baseUrl,
      'model_providers.svc-router.env_key': 'SVC_ROUTER_API_KEY',
      'model_providers.svc-router.wire_api': 'responses',
    })
    expect(program!.env).toEqual({ SVC_ROUTER_API_KEY: service.key })
    expect(program!.args.join(' ')).not.toContain(service.key)
  })

  test('claude', async () => {
    await cli.say('run', 'claude', '--', '-p', 'Say hello.')
    expect(cli.programs).toEqual([
      {
        name: 'claude',
        args: ['-p', 'Say hello.'],
        env: expect.objectContaining({
          ANTHROPIC_BASE_URL: service.origin,
          ANTHROPIC_AUTH_TOKEN: service.key,
          ANTHROPIC_MODEL: 'svc-router/frontier',
          ANTHROPIC_DEFAULT_HAIKU_MODEL: 'svc-router/frontier',
          ANTHROPIC_API_KEY: undefined,
          CLAUDE_CODE_USE_BEDROCK: undefined,
        }) as object,
      },
    ])
  })

  test("opencode, merged with the user's own value of the same variable", async () => {
    cli.env['OPENCODE_CONFIG_CONTENT'] = JSON.stringify({ share: 'disabled', provider: { mine: {} }, model: 'mine/x' })
    await cli.say('run', 'opencode')
    const [program] = cli.programs
    expect(program).toMatchObject({ name: 'opencode', args: [] })
    const config = program!.env['OPENCODE_CONFIG_CONTENT']!
    expect(JSON.parse(config)).toMatchObject({
      share: 'disabled',
      model: 'svc-router/svc-router/frontier',
      provider: {
        mine: {},
        'svc-router': { options: { baseURL: service.baseUrl, apiKey: '{env:SVC_ROUTER_API_KEY}' } },
      },
    })
    expect(config).not.toContain(service.key)
  })

  test('opencode is not started if its variable has an unexpected value', async () => {
    cli.env['OPENCODE_CONFIG_CONTENT'] = '{ // a comment\n}'
    expect(await cli.say('run', 'opencode')).toMatchObject({
      code: 2,
      err: expect.stringContaining('unset OPENCODE_CONFIG_CONTENT') as string,
    })
    expect(cli.programs).toEqual([])
  })

  test("the fusion tool is attached by a header, in addition to the user's own headers", async () => {
    cli.env['ANTHROPIC_CUSTOM_HEADERS'] = 'X-Team: blue'
    for (const name of ['codex', 'claude', 'opencode']) await cli.say('run', name, '--fusion-tool')
    const [codex, claude, opencode] = cli.programs
    const header = 'x-svc-router-tools'
    const type = 'svc-router:fusion'
    expect(overridesOf(codex!.args)).toHaveProperty([`model_providers.svc-router.http_headers.${header}`], type)
    expect(claude!.env).toMatchObject({ ANTHROPIC_CUSTOM_HEADERS: `X-Team: blue\n${header}: ${type}` })
    expect(JSON.parse(opencode!.env['OPENCODE_CONFIG_CONTENT']!)).toMatchObject({
      provider: { 'svc-router': { options: { headers: { [header]: type } } } },
    })
    await cli.say('run', 'claude')
    expect(cli.programs.at(-1)!.env).not.toHaveProperty('ANTHROPIC_CUSTOM_HEADERS')
  })

  test('the proxy in the environment is bypassed, because it cannot reach this machine', async () => {
    Object.assign(cli.env, { HTTPS_PROXY: 'http://proxy.example.com:3128', no_proxy: 'example.org' })
    await cli.say('run', 'codex')
    expect(cli.programs[0]!.env).toMatchObject({ NO_PROXY: 'example.org,127.0.0.1', no_proxy: 'example.org,127.0.0.1' })
  })

  test('the exit code is the agent’s', async () => {
    cli.programExitCode = 42
    expect((await cli.say('run', 'claude')).code).toBe(42)
  })

  test('the first key is used only for the service on this machine', async () => {
    mkdirSync(cli.dataDir)
    writeFileSync(join(cli.dataDir, 'first-key'), `${service.key}\n`)
    announceRunning(cli.dataDir, { baseUrl: service.baseUrl, appUrl: 'http://127.0.0.1:4343' })
    cli.env = { PATH: bin }
    expect((await cli.say('run', 'codex')).code).toBe(0)
    expect(cli.programs[0]!.env).toEqual({ SVC_ROUTER_API_KEY: service.key })
    const seen: unknown[] = []
    await using other = await serveHttp((request, response) => {
      seen.push(request.headers.authorization)
      response.writeHead(401, { 'x-request-id': 'req_other', 'content-type': 'application/json' })
      response.end(JSON.stringify({ error: { code: 'key_missing', message: 'No key.', request_id: 'req_other' } }))
    })
    expect(await cli.say('run', 'codex', '--url', `http://${other.host}/v1`)).toMatchObject({
      code: 4,
      err: 'error: SVC_ROUTER_API_KEY is not set\n  = fix: export SVC_ROUTER_API_KEY=…',
    })
    expect(seen).toEqual([undefined])
    expect(cli.programs).toHaveLength(1)
  })
})

describe('an agent that could not work is not started, and one sentence says why', () => {
  test.each([
    ['codex', 'npm install -g @openai/codex'],
    ['claude', 'npm install -g @anthropic-ai/claude-code'],
    ['opencode', 'npm install -g opencode-ai'],
  ])('if %s is not installed, the command ends with 3 and says how to install it', async (name, command) => {
    rmSync(join(bin, name))
    expect(await cli.say('run', name)).toMatchObject({
      code: 3,
      err: `error: ${name} is not installed, or not on PATH\n  = fix: ${command}`,
    })
  })

  test('the service is not running', async () => {
    cli.env = { PATH: bin, SVC_ROUTER_API_KEY: service.key }
    mkdirSync(cli.dataDir)
    announceRunning(cli.dataDir, { baseUrl: 'http://127.0.0.1:9/v1', appUrl: 'http://127.0.0.1:4343' })
    const { code, err } = await cli.say('run', 'codex')
    expect(code).toBe(5)
    expect(err).toBe(
      `error: svc-router is not running: nothing listens on 127.0.0.1:9\n  = fix: npx svc-router start --data ${cli.dataDir}`,
    )
  })

  test('the service accepts the connection and never answers', async () => {
    await using silent = await serveSilence()
    const beganMs = performance.now()
    const { code, err } = await cli.say('run', 'codex', '--url', `http://${silent.host}/v1`)
    expect(performance.now() - beganMs).toBeLessThan(withinMs)
    expect([code, err.split('\n')]).toEqual([
      5,
      [expect.stringContaining('did not answer in time'), expect.any(String)],
    ])
  })

  test('the key was revoked', async () => {
    const { stored, key } = await service.addAccount('revoker', 'free')
    await service.revoke(stored.id)
    cli.env['SVC_ROUTER_API_KEY'] = key
    const { code, err } = await cli.say('run', 'codex')
    expect(code).toBe(4)
    expect(err).toContain('was revoked')
    expect(err).not.toContain(key)
  })

  test('there is no such profile, agent or option', async () => {
    expect(await cli.say('run', 'codex', '--model', 'svc-router/frontir')).toMatchObject({
      code: 1,
      err: expect.stringContaining('use --model svc-router/frontier') as string,
    })
    expect(await cli.say('run', 'codx')).toMatchObject({ code: 2, err: expect.stringContaining('run codex') as string })
    expect(await cli.say('run')).toMatchObject({ code: 2, err: expect.stringContaining('codex, claude') as string })
    expect(await cli.say('run', 'codex', 'exec')).toMatchObject({
      code: 2,
      err: expect.stringContaining('npx svc-router help run') as string,
    })
    expect(cli.programs).toEqual([])
  })
})

describe('as a process', () => {
  let folder: string
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'svc-router-run-'))
  })
  afterEach(() => rmSync(folder, { recursive: true, force: true }))

  function start(...args: readonly string[]): ChildProcess {
    return spawn(process.execPath, [main, 'run', 'claude', '--data', join(folder, 'data'), '--', ...args], {
      stdio: ['pipe', 'pipe', 'pipe'],
      env: {
        ...process.env,
        PATH: `${bin}:${process.env['PATH']}`,
        SVC_ROUTER_API_KEY: service.key,
        SVC_ROUTER_BASE_URL: service.baseUrl,
        ANTHROPIC_API_KEY: 'another',
        // As bin/boot.mjs leaves it.
        MALLOC_ARENA_MAX: '2',
        SVC_ROUTER_SET_BY_BOOT: 'MALLOC_ARENA_MAX',
      },
    })
  }

  async function finished(child: ChildProcess): Promise<{ code: number | null; out: string }> {
    let out = ''
    child.stdout!.setEncoding('utf8').on('data', (text: string) => (out += text))
    const [code] = (await once(child, 'close')) as [number | null]
    return { code, out }
  }

  test('input, output, arguments, environment and exit code are the agent’s own', async () => {
    install(
      'claude',
      'read line; echo "$line|$*|$ANTHROPIC_BASE_URL|${ANTHROPIC_API_KEY-none}|${MALLOC_ARENA_MAX-none}"; exit 7',
    )
    const child = start('-p', 'two words', '--json')
    child.stdin!.end('typed\n')
    expect(await finished(child)).toEqual({ code: 7, out: `typed|-p two words --json|${service.origin}|none|none\n` })
  })

  test.each(['SIGTERM', 'SIGINT', 'SIGHUP'] as const)(
    '%s is passed on, and the agent ends as it wants',
    async (signal) => {
      install(
        'claude',
        `trap 'echo got; exit 9' ${signal.slice(3)}; echo ready; for _ in $(seq 200); do sleep 0.05; done`,
      )
      const child = start()
      child.stdout!.once('data', () => child.kill(signal))
      expect(await finished(child)).toEqual({ code: 9, out: 'ready\ngot\n' })
    },
  )

  test("an agent that a signal ended results in 128 plus the signal's number", async () => {
    install('claude', 'kill -KILL $$')
    expect((await finished(start())).code).toBe(137)
  })

  test('a file that is not a program is reported in one sentence', async () => {
    writeFileSync(join(bin, 'claude'), '', { mode: 0o755 })
    writeFileSync(join(bin, 'claude'), '#!/nowhere/interpreter\n')
    const child = start()
    let err = ''
    child.stderr!.setEncoding('utf8').on('data', (text: string) => (err += text))
    expect((await finished(child)).code).toBe(3)
    expect(err).toBe(
      'error: claude could not be started (ENOENT)\n  = fix: check that it works on its own: claude --version\n',
    )
  })
})
