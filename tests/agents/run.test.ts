import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { AgentHome } from './agent-home.ts'
import { ClaudeHome, claudeQuiet } from './claude-home.ts'
import { CodexHome } from './codex-home.ts'
import { CommandFolder } from './command-folder.ts'
import { OpencodeHome, opencodeQuiet } from './opencode-home.ts'
import type { Finished } from './program.ts'
import { RunningService } from './running-service.ts'

const main = join(import.meta.dirname, '..', '..', 'src', 'main.ts')

let commands: CommandFolder
let service: RunningService
beforeAll(async () => {
  commands = new CommandFolder()
  commands.add('codex', process.execPath, CodexHome.install())
  commands.add('claude', process.execPath, ClaudeHome.install())
  commands.add('opencode', OpencodeHome.install())
  service = await RunningService.start()
})
afterAll(async () => {
  await service[Symbol.asyncDispose]()
  commands[Symbol.dispose]()
})

let home: AgentHome
beforeEach(() => {
  home = new AgentHome('run')
})
afterEach(() => home[Symbol.dispose]())

/** Runs a program in a new home with the agents on `PATH`. */
function inNewHome(command: string, args: readonly string[]): Promise<Finished> {
  return home.start(command, args, {
    PATH: commands.path,
    ...opencodeQuiet,
    ...claudeQuiet,
  })
}

/**
 * Runs `svc-router run` for an agent on the data folder of the service. No option gives the address or the key.
 */
function runThrough(agent: string, ...args: readonly string[]): Promise<Finished> {
  const options = ['--data', join(service.folder, 'data'), '--config', join(service.folder, 'svc-router.yaml')]
  return inNewHome(process.execPath, [main, 'run', ...agent.split(' '), ...options, '--', ...args])
}

const codexArgs = ['exec', '--skip-git-repo-check', '--sandbox', 'read-only']

describe('svc-router run', () => {
  test('codex finishes a prompt, with no configuration of its own', async () => {
    const before = await service.requests()
    const { code, stdout, stderr } = await runThrough('codex', ...codexArgs, 'Say hello.')
    expect(code, stderr).toBe(0)
    expect(stdout).toContain('You said: "Say hello.".')
    expect(existsSync(join(home.folder, 'home', '.codex', 'config.toml'))).toBe(false)
    expect((await service.requests()).length).toBe(before.length + 1)
  })

  test('codex uses svc-router although its user configured another provider, whose file does not change', async () => {
    const configuration = join(home.folder, 'home', '.codex')
    mkdirSync(configuration, { recursive: true })
    const configured = 'model = "gpt-5.6-sol"\nmodel_provider = "openai"\n'
    writeFileSync(join(configuration, 'config.toml'), configured)
    const { code, stdout, stderr } = await runThrough('codex', ...codexArgs, 'Say hello.')
    expect(code, stderr).toBe(0)
    expect(stdout).toContain('You said: "Say hello.".')
    expect(readFileSync(join(configuration, 'config.toml'), 'utf8')).toBe(configured)
  })

  test('returns the exit code of codex', async () => {
    const { code } = await runThrough('codex', 'exec', '--no-such-option')
    expect(code).toBe(2)
  })

  test('claude finishes a prompt, with no configuration of its own', async () => {
    const before = await service.requests()
    const { code, stdout, stderr } = await runThrough('claude', '-p', 'Say hello.')
    expect(code, stderr).toBe(0)
    expect(stdout).toContain('This is a simulated answer')
    expect((await service.requests()).length).toBe(before.length + 1)
  })

  test('opencode finishes a prompt, with no configuration of its own', async () => {
    const before = await service.requests()
    const { code, stdout, stderr } = await runThrough('opencode', 'run', 'Say hello.')
    expect(code, stderr).toBe(0)
    expect(stdout).toContain('This is a simulated answer')
    // One for the title of the session, one for the answer.
    expect((await service.requests()).length).toBe(before.length + 2)
  })

  test.each([
    ['codex', codexArgs],
    ['claude', ['-p']],
    ['opencode', ['run', '--title', 'A title']],
  ])('%s has the fusion tool if an option enables it, and its model uses the tool', async (agent, args) => {
    const before = await service.requests()
    const prompt = 'Please consult other models: how many?'
    const { code, stdout, stderr } = await runThrough(`${agent} --fusion-tool`, ...args, prompt)
    expect(code, stderr).toBe(0)
    expect(stdout).toContain('The tool answered')
    const after = (await service.requests()).slice(before.length)
    expect(after.map(({ fusions }) => fusions?.length)).toEqual([1])
  })
})
