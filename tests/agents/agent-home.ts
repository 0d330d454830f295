import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pixel } from '../clients/openai-clients.ts'
import { killLeftBehind, runAgent, type Finished } from './program.ts'

/** More than a minute, because an agent waits between its attempts. */
const withinMs = 150_000

/** Starts an MCP server with one tool, which returns the weather of a city. */
export const weatherCommand = {
  command: process.execPath,
  args: [join(import.meta.dirname, 'weather-mcp.mjs')],
} as const

/** The JSON schema that a test requests from an agent. */
export const citySchema = {
  type: 'object',
  properties: { city: { type: 'string' }, degrees: { type: 'integer' } },
  required: ['city', 'degrees'],
  additionalProperties: false,
} as const

/** The address that an agent uses: that of the service, or of a proxy in front of it. */
export interface Endpoint {
  readonly origin: string
  readonly baseUrl: string
}

/** The home and the working folder of one agent. Disposal deletes both, after it has stopped what the agent left running. */
export class AgentHome implements Disposable {
  readonly folder: string
  /** The working folder of the agent. */
  readonly work: string

  constructor(name: string) {
    this.folder = mkdtempSync(join(tmpdir(), `svc-router-${name}-`))
    this.work = join(this.folder, 'work')
    mkdirSync(this.work)
  }

  /** Writes a one-pixel image into the working folder and returns its path. */
  putPixel(): string {
    const path = join(this.work, 'pixel.png')
    writeFileSync(path, Buffer.from(pixel.slice(pixel.indexOf(',') + 1), 'base64'))
    return path
  }

  /** Runs a program in this home until it exits. */
  start(command: string, args: readonly string[], env: Readonly<Record<string, string>>): Promise<Finished> {
    return runAgent(command, args, { folder: this.folder, withinMs, env })
  }

  [Symbol.dispose](): void {
    killLeftBehind(this.folder)
    rmSync(this.folder, { recursive: true, force: true })
  }
}
