import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'vitest'
import { documentedBlocks, writtenBaseUrl } from '../clients/docs.ts'
import { installAgent, runAgent, type Finished } from './programme.ts'
import type { RunningService } from './running-service.ts'

const version = '0.169.0'
const withinMs = 90_000

/** A tool server with one tool, for the end of a configuration. */
export const weatherServer = `
[mcp_servers.weather]
command = ${JSON.stringify(process.execPath)}
args = [${JSON.stringify(join(import.meta.dirname, 'weather-mcp.mjs'))}]
`

/** Codex in a home of its own. */
export class CodexHome implements Disposable {
  readonly folder = mkdtempSync(join(tmpdir(), 'svc-router-codex-'))
  /** Where it works. */
  readonly work = join(this.folder, 'work')
  readonly #configuration = join(this.folder, 'home', '.codex')

  constructor() {
    mkdirSync(this.#configuration, { recursive: true })
    mkdirSync(this.work, { recursive: true })
  }

  /** Downloads the programme where it is not there yet. */
  static install(): string {
    return join(installAgent('@openai/codex', version), 'bin', 'codex.js')
  }

  /** The configuration of docs/clients.md with this service's address; `top` goes before its tables and `end` behind them. */
  configure(service: Pick<RunningService, 'baseUrl'>, { top = '', end = '' } = {}): void {
    const config = documentedBlocks('Codex', 'toml')[0]!
    expect(config).toContain(writtenBaseUrl)
    const text = `${top}\n${config.replace(writtenBaseUrl, service.baseUrl)}\n${end}`
    writeFileSync(join(this.#configuration, 'config.toml'), text)
  }

  /** The same with the list of models that the service has for Codex. */
  async configureWithModels(service: RunningService, end = ''): Promise<void> {
    const list = await fetch(`${service.baseUrl}/models`, {
      headers: { authorization: `Bearer ${service.key}`, 'user-agent': 'svc-router-tests/1.0' },
    })
    const path = join(this.folder, 'models.json')
    writeFileSync(path, await list.text())
    const top = documentedBlocks('Codex', 'toml')[1]!.replace(/".*"/, JSON.stringify(path))
    this.configure(service, { top, end })
  }

  run(args: readonly string[], key: string | undefined, mode = ['--sandbox', 'read-only']): Promise<Finished> {
    return runAgent(process.execPath, [CodexHome.install(), 'exec', '--skip-git-repo-check', ...mode, ...args], {
      folder: this.folder,
      withinMs,
      env: { CODEX_HOME: this.#configuration, ...(key === undefined ? {} : { SVC_ROUTER_API_KEY: key }) },
    })
  }

  [Symbol.dispose](): void {
    rmSync(this.folder, { recursive: true, force: true })
  }
}
