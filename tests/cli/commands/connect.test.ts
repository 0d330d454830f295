import { execFile } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { announceRunning, findRunning } from '../../../src/cli/process/running-file.ts'
import { clientRecipes } from '../../../src/domain/client-recipes.ts'
import { documentedBlocks } from '../../clients/docs.ts'
import { Service } from '../../service.ts'
import { Harness } from '../harness.ts'

const run = promisify(execFile)
const timeoutMs = 20_000
const root = join(import.meta.dirname, '..', '..', '..')
const says = 'This is a simulated answer from alpha. You said: "Hello!".'

let cli: Harness
beforeEach(() => {
  cli = new Harness()
})
afterEach(() => cli.remove())

async function printed(...args: readonly string[]): Promise<string> {
  const { code, out } = await cli.say('connect', ...args)
  expect(code).toBe(0)
  return out
}

/** What a POSIX shell has in its environment once it has read a text. */
async function exportedBy(text: string, env: Record<string, string> = {}): Promise<Record<string, string | undefined>> {
  const { stdout } = await run('sh', ['-c', `${text}\nexec "$NODE" -e 'console.log(JSON.stringify(process.env))'`], {
    env: { PATH: process.env['PATH'], NODE: process.execPath, ...env },
    timeout: timeoutMs,
  })
  return JSON.parse(stdout) as Record<string, string>
}

describe('every client', () => {
  const names = clientRecipes.map(({ name }) => name)

  test('connect lists them', async () => {
    const { code, out, err } = await cli.say('connect')
    expect(code).toBe(0)
    for (const name of names) expect(out).toMatch(new RegExp(`^${name} `, 'm'))
    expect(err).toContain('npx svc-router connect codex')
    expect(
      (JSON.parse((await cli.say('connect', '--json')).out) as { name: string }[]).map(({ name }) => name),
    ).toEqual(names)
  })

  test.each(names)(
    '%s: the configuration alone on standard output, hints on standard error, and no key',
    async (name) => {
      const key = 'sk_svc_made0up0key0of0the0tests'
      cli.env['MY_KEY'] = key
      const { code, out, err } = await cli.say(
        'connect',
        name,
        '--url',
        'https://router.example.com',
        '--key-variable',
        'MY_KEY',
        '--model',
        'team/best',
      )
      expect(code).toBe(0)
      for (const part of ['router.example.com', 'MY_KEY', 'team/best']) expect(out).toContain(part)
      expect(out).not.toContain('SVC_ROUTER_API_KEY')
      expect(err).toContain('The base URL is https://router.example.com/v1')
      expect(err).toContain('Next: ')
      expect(err).not.toContain('is not set')
      expect(out + err).not.toContain(key)
      const data = JSON.parse((await cli.say('connect', name, '--key-variable', 'MY_KEY', '--json')).out) as object
      expect(data).toMatchObject({ client: name, key_variable: 'MY_KEY', base_url: 'http://127.0.0.1:8787/v1' })
    },
  )

  test('an unknown client ends with a usage error', async () => {
    expect(await cli.say('connect', 'codx')).toMatchObject({
      code: 2,
      err: expect.stringContaining(`did you mean "npx svc-router connect codex`) as string,
    })
    expect(await cli.say('connect', 'emacs')).toMatchObject({
      code: 2,
      err: expect.stringContaining('one of: codex, claude') as string,
    })
  })

  test('an unset variable is reported with the line that sets it', async () => {
    const setsIt = async (): Promise<string> => (await cli.say('connect', 'codex')).err
    expect(await setsIt()).toContain(`export SVC_ROUTER_API_KEY=$(npx svc-router keys create --data ${cli.dataDir})`)
    mkdirSync(cli.dataDir, { recursive: true })
    writeFileSync(join(cli.dataDir, 'first-key'), 'sk_svc_first\n')
    expect(await setsIt()).toContain(`export SVC_ROUTER_API_KEY=$(cat ${join(cli.dataDir, 'first-key')})`)
    expect((await cli.say('connect', 'codex', '--url', 'https://router.example.com/v1')).err).toContain(
      'export SVC_ROUTER_API_KEY=…',
    )
  })
})

describe('the base URL', () => {
  test.each([
    ['https://router.example.com', 'https://router.example.com/v1'],
    ['https://router.example.com/', 'https://router.example.com/v1'],
    ['https://router.example.com/v1/', 'https://router.example.com/v1'],
    ['https://router.example.com/v1/chat/completions', 'https://router.example.com/v1'],
    ['https://example.com/router/v1', 'https://example.com/router/v1'],
  ])('%s becomes %s', async (given, expected) => {
    expect(await printed('openai', '--url', given)).toContain(`baseURL: "${expected}"`)
    cli.env['SVC_ROUTER_BASE_URL'] = given
    expect(await printed('openai')).toContain(`baseURL: "${expected}"`)
  })

  test('is the configured one', async () => {
    const path = join(cli.folder, 'svc-router.yaml')
    writeFileSync(path, 'listen: { port: 9123 }\n')
    expect(await printed('openai', '--config', path)).toContain('"http://127.0.0.1:9123/v1"')
  })

  test('is the actual address while the service runs, and the configured one afterwards', async () => {
    mkdirSync(cli.dataDir)
    const takeBack = announceRunning(cli.dataDir, {
      baseUrl: 'http://127.0.0.1:4242/v1',
      appUrl: 'http://127.0.0.1:4343',
    })
    expect(await printed('openai')).toContain('"http://127.0.0.1:4242/v1"')
    takeBack()
    expect(await printed('openai')).toContain('"http://127.0.0.1:8787/v1"')
    const dead = { pid: 2 ** 22 + 1, base_url: 'http://127.0.0.1:4242/v1', app_url: 'http://127.0.0.1:4343' }
    writeFileSync(join(cli.dataDir, 'running.json'), JSON.stringify(dead))
    expect(findRunning(cli.dataDir)).toBeUndefined()
    writeFileSync(join(cli.dataDir, 'running.json'), 'damaged')
    expect(findRunning(cli.dataDir)).toBeUndefined()
  })

  test('start records its address, and removes it at the end', async () => {
    let seen: string | undefined
    cli.onStarted = () => {
      seen = findRunning(cli.dataDir)?.baseUrl
    }
    await cli.say('start', '--port', '0')
    expect([seen, findRunning(cli.dataDir)]).toEqual(['http://127.0.0.1:4242/v1', undefined])
  })
})

describe('the printed configuration equals docs/clients.md, which tests and agents run', () => {
  test('codex', async () => {
    expect(`${await printed('codex')}\n`).toBe(documentedBlocks('Codex', 'toml')[0])
  })

  test('opencode', async () => {
    expect(JSON.parse(await printed('opencode'))).toEqual(JSON.parse(documentedBlocks('opencode', 'json')[0]!))
  })
})

describe('the printed configuration is valid for its client', () => {
  const key = 'made-up "key" $of `the` tests'

  test('claude gets the URL without /v1, every tier, the key as Bearer, and no variable that bypasses the service', async () => {
    const env = await exportedBy(await printed('claude', '--url', 'https://router.example.com/v1'), {
      SVC_ROUTER_API_KEY: key,
      ANTHROPIC_API_KEY: 'another',
      CLAUDE_CODE_USE_BEDROCK: '1',
    })
    expect(env).toMatchObject({
      ANTHROPIC_BASE_URL: 'https://router.example.com',
      ANTHROPIC_AUTH_TOKEN: key,
      ANTHROPIC_MODEL: 'svc-router/frontier',
      ANTHROPIC_DEFAULT_HAIKU_MODEL: 'svc-router/frontier',
    })
    expect(env).not.toHaveProperty('ANTHROPIC_API_KEY')
    expect(env).not.toHaveProperty('CLAUDE_CODE_USE_BEDROCK')
  })

  test('aider', async () => {
    expect(await exportedBy(await printed('aider'), { SVC_ROUTER_API_KEY: key })).toMatchObject({
      AIDER_OPENAI_API_BASE: 'http://127.0.0.1:8787/v1',
      AIDER_OPENAI_API_KEY: key,
      AIDER_MODEL: 'openai/svc-router/frontier',
    })
  })

  test('cline', async () => {
    const words = `cline() { node -e 'console.log(JSON.stringify(process.argv.slice(1)))' -- "$@"; }\n${await printed('cline')}`
    const { stdout } = await run('sh', ['-c', words], {
      env: { PATH: process.env['PATH'], SVC_ROUTER_API_KEY: key },
      timeout: timeoutMs,
    })
    expect(JSON.parse(stdout)).toEqual([
      'auth',
      '-p',
      'openai-compatible',
      '-b',
      'http://127.0.0.1:8787/v1',
      '-m',
      'svc-router/frontier',
      '-k',
      key,
    ])
  })

  test('continue', async () => {
    expect(parse(await printed('continue'))).toMatchObject({
      schema: 'v1',
      models: [
        {
          provider: 'openai',
          model: 'svc-router/frontier',
          apiBase: 'http://127.0.0.1:8787/v1',
          apiKey: '${{ secrets.SVC_ROUTER_API_KEY }}',
        },
      ],
    })
  })

  test('openai-python', async () => {
    const program = await printed('openai-python')
    // Python need not be here: that it is Python is looked at where it is.
    const python = await run('python3', ['-c', 'import ast,sys; ast.parse(sys.argv[1]); print("parsed")', program], {
      timeout: timeoutMs,
    }).catch((error: NodeJS.ErrnoException) =>
      error.code === 'ENOENT' ? { stdout: 'parsed\n' } : Promise.reject(error),
    )
    expect(python.stdout).toBe('parsed\n')
    expect(program).toContain('base_url="http://127.0.0.1:8787/v1", api_key=os.environ["SVC_ROUTER_API_KEY"]')
  })
})

describe('the printed programs run unchanged', () => {
  let service: Service
  let folder: string
  beforeAll(async () => {
    service = await Service.start({ formats: ['openai-chat'] })
    // Below the project, so that its packages are found.
    mkdirSync(join(root, '.cache'), { recursive: true })
    folder = mkdtempSync(join(root, '.cache', 'connect-'))
  })
  afterAll(async () => {
    rmSync(folder, { recursive: true, force: true })
    await service.stop()
  })

  test.each(['openai', 'ai-sdk'])('%s', async (name) => {
    const path = join(folder, `${name}.mjs`)
    writeFileSync(path, await printed(name, '--url', service.baseUrl))
    const env = { ...process.env, SVC_ROUTER_API_KEY: service.key }
    const { stdout } = await run(process.execPath, [path], { env, timeout: timeoutMs })
    expect(stdout).toBe(`${says}\n`)
  })

  test('curl', async () => {
    const { stdout } = await run('sh', ['-c', await printed('curl', '--url', service.baseUrl)], {
      env: { ...process.env, SVC_ROUTER_API_KEY: service.key },
      timeout: timeoutMs,
    })
    expect(JSON.parse(stdout)).toMatchObject({ choices: [{ message: { content: says } }] })
  })
})
