import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { clientRecipes } from '../../src/domain/client-recipes.ts'
import { pythonWithOpenai } from '../clients/python.ts'
import { pythonEnvironment } from '../installing.ts'
import { AgentHome } from './agent-home.ts'
import { ClaudeHome, claudeQuiet } from './claude-home.ts'
import { CodexHome } from './codex-home.ts'
import { CommandFolder } from './command-folder.ts'
import { OpencodeHome, opencodeQuiet } from './opencode-home.ts'
import { installAgent, type Finished } from './program.ts'
import { RunningService } from './running-service.ts'

const cache = join(import.meta.dirname, '..', '..', '.cache', 'agents')
const continueVersion = '1.5.47'
const clineVersion = '3.0.65'

/** The home of a client, and the exact text that `connect` printed for it. */
interface ConnectedClient {
  readonly home: AgentHome
  readonly printed: string
  readonly key: string
}

interface Client {
  /** Adds the command of the client to the folder, and installs the client if it is missing. */
  install(commands: CommandFolder): void
  /** Writes the printed text to the file that `connect` names. */
  save?(client: ConnectedClient): void
  /** A shell script that sends the prompt "Say hello."; `$PRINTED` contains the text that `connect` printed. */
  readonly script: string
}

const evalPrinted = 'eval "$PRINTED"'

/** Every client that tests/cli/commands/connect.test.ts does not run. */
const clients: Readonly<Record<string, Client>> = {
  codex: {
    install: (commands) => commands.add('codex', process.execPath, CodexHome.install()),
    save: ({ home, printed }) => write(home, '.codex/svc-router.config.toml', printed),
    script: 'codex --profile svc-router exec --skip-git-repo-check --sandbox read-only "Say hello."',
  },
  claude: {
    install: (commands) => commands.add('claude', process.execPath, ClaudeHome.install()),
    script: `${evalPrinted}\nclaude -p "Say hello."`,
  },
  opencode: {
    install: (commands) => commands.add('opencode', OpencodeHome.install()),
    save: ({ home, printed }) => write(home, '.config/opencode/opencode.json', printed),
    script: 'opencode run "Say hello."',
  },
  aider: {
    install(commands) {
      const folder = join(cache, 'aider')
      pythonEnvironment(folder, join(import.meta.dirname, 'requirements', 'aider.txt'))
      commands.add('aider', join(folder, 'bin', 'aider'))
    },
    script: `${evalPrinted}\naider --no-git --yes-always --no-check-update --analytics-disable --message "Say hello."`,
  },
  cline: {
    // Its own start script finds the program of this platform.
    install: (commands) =>
      commands.add('cline', process.execPath, join(installAgent('cline', clineVersion), 'bin', 'cline')),
    script: `${evalPrinted}\ncline "Say hello."`,
  },
  continue: {
    install: (commands) =>
      commands.add('cn', process.execPath, join(installAgent('@continuedev/cli', continueVersion), 'dist', 'cn.js')),
    save({ home, printed, key }) {
      write(home, '.continue/config.yaml', printed)
      write(home, '.continue/.env', `SVC_ROUTER_API_KEY=${key}\n`)
    },
    script: 'cn -p "Say hello."',
  },
  'openai-python': {
    install: (commands) => commands.add('python', pythonWithOpenai('what "connect openai-python" prints')!),
    save: ({ home, printed }) => writeFileSync(join(home.work, 'hello.py'), printed),
    script: 'python hello.py',
  },
}

function write(home: AgentHome, name: string, text: string): void {
  const path = join(home.folder, 'home', name)
  mkdirSync(join(path, '..'), { recursive: true })
  writeFileSync(path, text)
}

let service: RunningService
beforeAll(async () => {
  service = await RunningService.start()
})
afterAll(() => service[Symbol.asyncDispose]())

test('every client of `connect` runs in a test, here or in tests/cli/commands/connect.test.ts', () => {
  const elsewhere = ['openai', 'ai-sdk', 'curl']
  expect([...Object.keys(clients), ...elsewhere].sort()).toEqual(clientRecipes.map(({ name }) => name).sort())
})

describe('the output of `connect`', () => {
  test.each(Object.entries(clients))('works with the real client %s', { timeout: 900_000 }, async (name, client) => {
    using commands = new CommandFolder()
    client.install(commands)
    using home = new AgentHome(`connect-${name}`)
    const { configuration } = (await service.command('connect', name)) as { configuration: string }
    client.save?.({ home, printed: configuration, key: service.key })
    const before = await service.requests()
    const { code, stdout, stderr }: Finished = await home.start('sh', ['-c', client.script], {
      PATH: commands.path,
      PRINTED: configuration,
      SVC_ROUTER_API_KEY: service.key,
      ...claudeQuiet,
      ...opencodeQuiet,
    })
    expect(code, `${stdout}\n${stderr}`).toBe(0)
    expect(stdout.replaceAll(/\s+/g, ' ')).toContain('This is a simulated answer')
    const sent = (await service.requests()).slice(before.length)
    expect(sent.length).toBeGreaterThan(0)
    for (const { errorCode, profile } of sent) {
      expect(errorCode).toBeUndefined()
      expect(profile).toBe('svc-router/frontier')
    }
  })
})
