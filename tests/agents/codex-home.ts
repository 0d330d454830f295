import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'vitest'
import { documentedBlocks, writtenBaseUrl } from '../clients/docs.ts'
import { AgentHome, weatherCommand, type Place } from './agent-home.ts'
import { installAgent, type Finished } from './programme.ts'

const version = '0.169.0'

/** A tool server with one tool, for the end of a configuration. */
export const weatherServer = `
[mcp_servers.weather]
command = ${JSON.stringify(weatherCommand.command)}
args = ${JSON.stringify(weatherCommand.args)}
`

/** Its folder is thrown away, and no sandbox of this machine has to be there for it. */
export const inItsFolder = ['--dangerously-bypass-approvals-and-sandbox']

/** What it is handed for making the file `made.txt`. */
export const patch = '*** Begin Patch\n*** Add File: made.txt\n+made by Codex\n*** End Patch\n'

/** It gives up after three seconds without an event. */
export const impatient = 'stream_idle_timeout_ms = 3000\n'

/** It ended well, and never asked a second time. */
export function expectPatient({ code, stderr }: Finished): void {
  expect(code, stderr).toBe(0)
  expect(stderr).not.toMatch(/ERROR|Reconnecting|idle timeout/)
}

/** Codex in a home of its own. */
export class CodexHome extends AgentHome {
  readonly #configuration: string

  constructor() {
    super('codex')
    this.#configuration = join(this.folder, 'home', '.codex')
    mkdirSync(this.#configuration, { recursive: true })
  }

  /** Downloads the programme where it is not there yet. */
  static install(): string {
    return join(installAgent('@openai/codex', version), 'bin', 'codex.js')
  }

  /** The configuration of docs/clients.md with this address; `top` goes before its tables and `end` behind them. */
  configure({ baseUrl }: Pick<Place, 'baseUrl'>, { top = '', end = '' } = {}): void {
    const config = documentedBlocks('Codex', 'toml')[0]!
    expect(config).toContain(writtenBaseUrl)
    const text = `${top}\n${config.replace(writtenBaseUrl, baseUrl)}\n${end}`
    writeFileSync(join(this.#configuration, 'config.toml'), text)
  }

  /** The same with the list of models that the service has for Codex. */
  async configureWithModels(service: Pick<Place, 'baseUrl'> & { readonly key: string }, end = ''): Promise<void> {
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
