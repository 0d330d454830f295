import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pixel } from '../clients/openai-clients.ts'
import { runAgent, type Finished } from './programme.ts'

/** An agent that waits between its attempts takes more than a minute. */
const withinMs = 150_000

/** The command of a tool server (MCP) with one tool: the weather of a city. */
export const weatherCommand = {
  command: process.execPath,
  args: [join(import.meta.dirname, 'weather-mcp.mjs')],
} as const

/** The schema of an object that an agent is asked for. */
export const citySchema = {
  type: 'object',
  properties: { city: { type: 'string' }, degrees: { type: 'integer' } },
  required: ['city', 'degrees'],
  additionalProperties: false,
} as const

/** Where an agent finds a service, or what stands before it. */
export interface Place {
  readonly origin: string
  readonly baseUrl: string
}

/** One agent in a home and a working folder of its own, which are thrown away with it. */
export class AgentHome implements Disposable {
  readonly folder: string
  /** Where it works. */
  readonly work: string

  constructor(name: string) {
    this.folder = mkdtempSync(join(tmpdir(), `svc-router-${name}-`))
    this.work = join(this.folder, 'work')
    mkdirSync(this.work)
  }

  /** Puts a picture of one pixel to where it works and gives its path. */
  putPixel(): string {
    const path = join(this.work, 'pixel.png')
    writeFileSync(path, Buffer.from(pixel.slice(pixel.indexOf(',') + 1), 'base64'))
    return path
  }

  /** Runs a programme in it to its end. */
  start(command: string, args: readonly string[], env: Readonly<Record<string, string>>): Promise<Finished> {
    return runAgent(command, args, { folder: this.folder, withinMs, env })
  }

  [Symbol.dispose](): void {
    rmSync(this.folder, { recursive: true, force: true })
  }
}
