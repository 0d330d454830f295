import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { installAgent, runAgent, type Finished } from './programme.ts'
import { RunningService } from './running-service.ts'

const withinMs = 90_000
const linkWithinMs = 60_000
const main = join(import.meta.dirname, '..', '..', 'src', 'main.ts')
const codexVersion = '0.169.0'
const opencodeVersion = '1.18.33'

let bin: string
let service: RunningService
beforeAll(async () => {
  bin = mkdtempSync(join(tmpdir(), 'svc-router-bin-'))
  const codex = join(installAgent('@openai/codex', codexVersion), 'bin', 'codex.js')
  writeFileSync(join(bin, 'codex'), `#!/bin/sh\nexec '${process.execPath}' '${codex}' "$@"\n`, { mode: 0o755 })
  const folder = installAgent('opencode-ai', opencodeVersion)
  // What its own installation would do: puts the programme of this platform in its place.
  const { status, stderr } = spawnSync(process.execPath, [join(folder, 'postinstall.mjs')], {
    cwd: folder,
    encoding: 'utf8',
    timeout: linkWithinMs,
  })
  if (status !== 0) throw new Error(`opencode could not be put in its place: ${stderr}`)
  writeFileSync(join(bin, 'opencode'), `#!/bin/sh\nexec '${join(folder, 'bin', 'opencode.exe')}' "$@"\n`, {
    mode: 0o755,
  })
  service = await RunningService.start()
})
afterAll(async () => {
  await service[Symbol.asyncDispose]()
  rmSync(bin, { recursive: true, force: true })
})

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'svc-router-run-'))
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

/** Runs a program in a new home with the agents on PATH. */
function inNewHome(command: string, args: readonly string[], env: Record<string, string> = {}): Promise<Finished> {
  return runAgent(command, args, {
    folder,
    withinMs,
    env: {
      PATH: `${bin}:${process.env['PATH']}`,
      OPENCODE_DISABLE_AUTOUPDATE: '1',
      OPENCODE_DISABLE_MODELS_FETCH: '1',
      ...env,
    },
  })
}

/** `svc-router run` on the data folder of the service: nothing says where it listens or what the key is. */
function runThrough(agent: string, ...args: readonly string[]): Promise<Finished> {
  const ours = ['--data', join(service.folder, 'data'), '--config', join(service.folder, 'svc-router.yaml')]
  return inNewHome(process.execPath, [main, 'run', agent, ...ours, '--', ...args])
}

const codexArgs = ['exec', '--skip-git-repo-check', '--sandbox', 'read-only']

describe('svc-router run', () => {
  test('codex finishes a prompt, with no configuration of its own', async () => {
    const before = await service.requests()
    const { code, stdout, stderr } = await runThrough('codex', ...codexArgs, 'Say hello.')
    expect(code, stderr).toBe(0)
    expect(stdout).toContain('You said: "Say hello.".')
    expect(existsSync(join(folder, 'home', '.codex', 'config.toml'))).toBe(false)
    expect((await service.requests()).length).toBe(before.length + 1)
  })

  test('codex is started in preference to what its user configured, whose file stays as it is', async () => {
    const home = join(folder, 'home', '.codex')
    mkdirSync(home, { recursive: true })
    const theirs = 'model = "gpt-5.6-sol"\nmodel_provider = "openai"\n'
    writeFileSync(join(home, 'config.toml'), theirs)
    const { code, stdout, stderr } = await runThrough('codex', ...codexArgs, 'Say hello.')
    expect(code, stderr).toBe(0)
    expect(stdout).toContain('You said: "Say hello.".')
    expect(readFileSync(join(home, 'config.toml'), 'utf8')).toBe(theirs)
  })

  test('codex’s own exit code comes through', async () => {
    const { code } = await runThrough('codex', 'exec', '--no-such-option')
    expect(code).toBe(2)
  })

  test('opencode finishes a prompt, with no configuration of its own', async () => {
    const before = await service.requests()
    const { code, stdout, stderr } = await runThrough('opencode', 'run', 'Say hello.')
    expect(code, stderr).toBe(0)
    expect(stdout).toContain('This is a simulated answer')
    // One for the title of the session, one for the answer.
    expect((await service.requests()).length).toBe(before.length + 2)
  })
})

test('what "connect codex" prints works as a profile of its own', async () => {
  const { configuration } = (await service.command('connect', 'codex')) as { configuration: string }
  const home = join(folder, 'home', '.codex')
  mkdirSync(home, { recursive: true })
  writeFileSync(join(home, 'svc-router.config.toml'), configuration)
  const { code, stdout, stderr } = await inNewHome(
    join(bin, 'codex'),
    ['--profile', 'svc-router', ...codexArgs, 'Say hello.'],
    { SVC_ROUTER_API_KEY: service.key },
  )
  expect(code, stderr).toBe(0)
  expect(stdout).toContain('You said: "Say hello.".')
})
