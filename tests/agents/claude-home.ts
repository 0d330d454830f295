import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'vitest'
import { documentedBlocks, writtenBaseUrl } from '../clients/docs.ts'
import { AgentHome, weatherCommand, type Place } from './agent-home.ts'
import { installAgent, type Finished } from './programme.ts'

const version = '2.1.329'

/** What keeps Claude Code from asking for anything but answers. */
export const claudeQuiet = { CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1' } as const

export interface ClaudeOptions {
  readonly args?: readonly string[]
  /** How often it asks again, where that is not what the page says. */
  readonly retries?: number
  /** What it asks, where that is not what the page says. */
  readonly model?: string
  /** Further lines before it is started, as its page has them. */
  readonly lines?: string
}

/** Claude Code in a home of its own. */
export class ClaudeHome extends AgentHome {
  constructor() {
    super('claude')
  }

  /** Downloads the programme where it is not there yet. */
  static install(): string {
    // What finds the programme of this platform where the package's own script did not put it into its place.
    return join(installAgent('@anthropic-ai/claude-code', version), 'cli-wrapper.cjs')
  }

  /** Arguments that give it the tool server of these tests, and no other. */
  weatherServer(): string[] {
    const path = join(this.folder, 'mcp.json')
    writeFileSync(path, JSON.stringify({ mcpServers: { weather: weatherCommand } }))
    return ['--mcp-config', path, '--strict-mcp-config', '--allowedTools', 'mcp__weather__get_weather']
  }

  /** Runs it after the lines of docs/clients.md, with another address. */
  run(
    { origin }: Pick<Place, 'origin'>,
    key: string,
    prompt: string,
    { args = [], retries, model, lines: further = '' }: ClaudeOptions = {},
  ): Promise<Finished> {
    const lines = documentedBlocks('Claude Code', 'sh')[0]!
    const written = `ANTHROPIC_BASE_URL=${new URL(writtenBaseUrl).origin}\n`
    expect(lines).toContain(written)
    const changed = [
      retries === undefined ? '' : `export CLAUDE_CODE_MAX_RETRIES=${retries}\n`,
      model === undefined ? '' : `export ANTHROPIC_MODEL=${model}\n`,
      further,
    ].join('')
    const script = `${lines.replace(written, `ANTHROPIC_BASE_URL=${origin}\n`)}${changed}exec "$@"`
    return this.start('sh', ['-c', script, 'sh', process.execPath, ClaudeHome.install(), '-p', prompt, ...args], {
      SVC_ROUTER_API_KEY: key,
      ...claudeQuiet,
    })
  }
}
