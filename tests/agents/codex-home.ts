import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'vitest'
import { documentedBlocks, writtenBaseUrl } from '../clients/docs.ts'
import { AgentHome, weatherCommand, type Endpoint } from './agent-home.ts'
import { installAgent, type Finished } from './program.ts'

const version = '0.169.0'

/** The MCP server with one tool, as text to append to a configuration. */
export const weatherServer = `
[mcp_servers.weather]
command = ${JSON.stringify(weatherCommand.command)}
args = ${JSON.stringify(weatherCommand.args)}
`

/** Codex needs no sandbox: the tests delete its folder, and this machine may have no sandbox. */
export const withoutSandbox = ['--dangerously-bypass-approvals-and-sandbox']

/** The input of `apply_patch` that creates the file `made.txt`. */
export const patch = '*** Begin Patch\n*** Add File: made.txt\n+made by Codex\n*** End Patch\n'

/** Codex disconnects after three seconds without an event. */
export const shortIdleLimit = 'stream_idle_timeout_ms = 3000\n'

/** Expects that Codex succeeded and sent no request twice. */
export function expectNoRetry({ code, stderr }: Finished): void {
  expect(code, stderr).toBe(0)
  expect(stderr).not.toMatch(/ERROR|Reconnecting|idle timeout/)
}

/** Codex with its own home folder. */
export class CodexHome extends AgentHome {
  readonly #configuration: string

  constructor() {
    super('codex')
    this.#configuration = join(this.folder, 'home', '.codex')
    mkdirSync(this.#configuration, { recursive: true })
  }

  /** Downloads the program if it is missing, and returns the path of its script. */
  static install(): string {
    return join(installAgent('@openai/codex', version), 'bin', 'codex.js')
  }

  /** Writes the configuration of docs/clients.md with this address, `top` before its tables, and `end` after them. */
  configure({ baseUrl }: Pick<Endpoint, 'baseUrl'>, { top = '', end = '' } = {}): void {
    const config = documentedBlocks('Codex', 'toml')[0]!
    expect(config).toContain(writtenBaseUrl)
    const text = `${top}\n${config.replace(writtenBaseUrl, baseUrl)}\n${end}`
    writeFileSync(join(this.#configuration, 'config.toml'), text)
  }

  /** Like `configure`, with the model list that the service provides for Codex. */
  async configureWithModels(service: Pick<Endpoint, 'baseUrl'> & { readonly key: string }, end = ''): Promise<void> {
    const list = await fetch(`${service.baseUrl}/models`, {
      headers: { authorization: `Bearer ${service.key}`, 'user-agent': 'svc-router-tests/1.0' },
    })
    const path = join(this.folder, 'models.json')
    writeFileSync(path, await list.text())
    const top = documentedBlocks('Codex', 'toml')[1]!.replace(/".*"/, JSON.stringify(path))
    this.configure(service, { top, end })
  }

  run(args: readonly string[], key: string | undefined, mode = ['--sandbox', 'read-only']): Promise<Finished> {
    return this.start(process.execPath, [CodexHome.install(), 'exec', '--skip-git-repo-check', ...mode, ...args], {
      CODEX_HOME: this.#configuration,
      ...(key === undefined ? {} : { SVC_ROUTER_API_KEY: key }),
    })
  }
}
