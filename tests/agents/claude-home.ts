import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'vitest'
import { documentedBlocks, writtenBaseUrl } from '../clients/docs.ts'
import { AgentHome, weatherCommand, type Endpoint } from './agent-home.ts'
import { installAgent, type Finished } from './program.ts'

const version = '2.1.329'

/** Stops Claude Code from sending requests other than for answers. */
export const claudeQuiet = { CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1' } as const

export interface ClaudeOptions {
  readonly args?: readonly string[]
  /** The number of retries. Default: the number in the documentation. */
  readonly retries?: number
  /** The model to request. Default: the model in the documentation. */
  readonly model?: string
  /** Additional shell lines from the documentation, which run before Claude Code starts. */
  readonly lines?: string
}

/** Claude Code with its own home folder. */
export class ClaudeHome extends AgentHome {
  constructor() {
    super('claude')
  }

  /** Downloads the program if it is missing, and returns the path of its script. */
  static install(): string {
    // This wrapper finds the program of this platform, although the package's install script did not run.
    return join(installAgent('@anthropic-ai/claude-code', version), 'cli-wrapper.cjs')
  }

  /** Arguments for Claude Code that allow the weather MCP server and no other. */
  weatherServer(): string[] {
    const path = join(this.folder, 'mcp.json')
    writeFileSync(path, JSON.stringify({ mcpServers: { weather: weatherCommand } }))
    return ['--mcp-config', path, '--strict-mcp-config', '--allowedTools', 'mcp__weather__get_weather']
  }

  /** Runs Claude Code after the shell lines of docs/clients.md, with the address replaced. */
  run(
    { origin }: Pick<Endpoint, 'origin'>,
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
