import { spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'vitest'
import { documentedBlocks, writtenBaseUrl } from '../clients/docs.ts'
import { AgentHome, weatherCommand, type Place } from './agent-home.ts'
import { installAgent, type Finished } from './programme.ts'

const version = '1.18.33'
const linkWithinMs = 60_000

/** What keeps opencode from asking for a newer one and for a list of models. */
export const opencodeQuiet = { OPENCODE_DISABLE_AUTOUPDATE: '1', OPENCODE_DISABLE_MODELS_FETCH: '1' } as const

interface Configuration {
  readonly provider: {
    readonly 'svc-router': Record<string, unknown> & { readonly models: Record<string, object>; options: object }
  }
}

let programme: string | undefined

/** opencode in a home of its own. */
export class OpencodeHome extends AgentHome {
  readonly #configuration: string

  constructor() {
    super('opencode')
    this.#configuration = join(this.folder, 'opencode.json')
  }

  /** Downloads the programme where it is not there yet. */
  static install(): string {
    if (programme !== undefined) return programme
    const folder = installAgent('opencode-ai', version)
    // What its own installation would do: puts the programme of this platform in its place.
    const { status, stderr } = spawnSync(process.execPath, [join(folder, 'postinstall.mjs')], {
      cwd: folder,
      encoding: 'utf8',
      timeout: linkWithinMs,
    })
    if (status !== 0) throw new Error(`opencode could not be put in its place: ${stderr}`)
    programme = join(folder, 'bin', 'opencode.exe')
    return programme
  }

  /**
   * The configuration of docs/clients.md with this address, a tool server, and another `npm` package, profile, options
   * and lines where they are named.
   */
  configure(
    { baseUrl }: Pick<Place, 'baseUrl'>,
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
