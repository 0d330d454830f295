import { spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'vitest'
import { documentedBlocks, writtenBaseUrl } from '../clients/docs.ts'
import { AgentHome, weatherCommand, type Endpoint } from './agent-home.ts'
import { installAgent, type Finished } from './program.ts'

const version = '1.18.33'
const linkWithinMs = 60_000

/** Stops opencode from checking for updates and downloading its model list. */
export const opencodeQuiet = { OPENCODE_DISABLE_AUTOUPDATE: '1', OPENCODE_DISABLE_MODELS_FETCH: '1' } as const

interface Configuration {
  readonly provider: {
    readonly 'svc-router': Record<string, unknown> & { readonly models: Record<string, object>; options: object }
  }
}

let program: string | undefined

/** opencode with its own home folder. */
export class OpencodeHome extends AgentHome {
  readonly #configuration: string

  constructor() {
    super('opencode')
    this.#configuration = join(this.folder, 'opencode.json')
  }

  /** Downloads the program if it is missing, and returns its path. */
  static install(): string {
    if (program !== undefined) return program
    const folder = installAgent('opencode-ai', version)
    // Its install script, which did not run, would also link the program of this platform.
    const { status, stderr } = spawnSync(process.execPath, [join(folder, 'postinstall.mjs')], {
      cwd: folder,
      encoding: 'utf8',
      timeout: linkWithinMs,
    })
    if (status !== 0) throw new Error(`opencode could not be linked: ${stderr}`)
    program = join(folder, 'bin', 'opencode.exe')
    return program
  }

  /**
   * Writes the configuration of docs/clients.md with this address and the MCP server, and with another `npm` package,
   * profile, options, and lines if given.
   */
  configure(
    { baseUrl }: Pick<Endpoint, 'baseUrl'>,
    { npm, profile, options, lines = {} }: { npm?: string; profile?: string; options?: object; lines?: object } = {},
  ): void {
    const text = documentedBlocks('opencode', 'json')[0]!
    expect(text).toContain(writtenBaseUrl)
    const config = JSON.parse(text.replace(writtenBaseUrl, baseUrl)) as Configuration
    const ours = config.provider['svc-router']
    if (npm !== undefined) ours['npm'] = npm
    if (options !== undefined) ours.options = { ...ours.options, ...options }
    if (profile !== undefined) ours.models[profile] = ours.models['svc-router/frontier']!
    const weather = { type: 'local', command: [weatherCommand.command, ...weatherCommand.args] }
    const whole = { ...config, ...lines, autoupdate: false, share: 'disabled', mcp: { weather } }
    writeFileSync(this.#configuration, JSON.stringify(whole))
  }

  run(args: readonly string[], key: string, profile = 'svc-router/frontier'): Promise<Finished> {
    return this.start(OpencodeHome.install(), ['run', '-m', `svc-router/${profile}`, ...args], {
      OPENCODE_CONFIG: this.#configuration,
      ...opencodeQuiet,
      SVC_ROUTER_API_KEY: key,
    })
  }
}
