import { spawn, type ChildProcessByStdio } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import type { Readable } from 'node:stream'
import { stringify } from 'yaml'
import { nodeEnvironment, nodeFlags } from '../../bin/boot.mjs'
import type { SimulatedProvider } from '../../src/simulation/providers/simulated-provider.ts'
import { childrenOf } from './children-of.ts'

const repository = join(import.meta.dirname, '..', '..')
/** Starting takes 2 s, but the machine may be very busy. Less than the time limit of a test. */
const startLimitMs = 100_000
const exitLimitMs = 60_000

/** A request's record as stored on disk. */
export interface RecordRow {
  readonly id: string
  readonly state: string
  readonly charged: number
  readonly admittedAtMs: number
  readonly errorCode: string | null
}

/** The service as a separate process, started like an operator would, repeatedly on one data folder. */
export class ServiceProcess {
  readonly folder: string
  readonly #env: NodeJS.ProcessEnv
  port = 0
  /** The port of the web app. */
  appPort = 0
  /** The first key, printed at the first start. */
  key = ''
  #child: ChildProcessByStdio<null, Readable, Readable> | undefined
  errors = ''

  constructor(folder: string, providers: readonly SimulatedProvider[], settings: object, env: NodeJS.ProcessEnv = {}) {
    this.folder = folder
    this.#env = env
    mkdirSync(folder, { recursive: true })
    const file = {
      providers: Object.fromEntries(
        providers.map(({ name, baseUrl }) => [
          name,
          {
            preset: 'custom',
            base_url: baseUrl,
            format: name.includes('responses') ? 'openai-responses' : 'openai-chat',
          },
        ]),
      ),
      ...settings,
    }
    writeFileSync(join(folder, 'svc-router.yaml'), stringify(file))
  }

  get dataDir(): string {
    return join(this.folder, 'data')
  }

  get running(): ChildProcessByStdio<null, Readable, Readable> {
    if (this.#child === undefined) throw new Error('the service was not started')
    return this.#child
  }

  /**
   * Starts it and waits until it listens. `port`: 0 for any. `program`: the folder of the sources, if not this
   * repository.
   */
  async start({ port = 0, program = repository } = {}): Promise<void> {
    const args = [
      ...nodeFlags,
      join(program, 'src', 'main.ts'),
      'start',
      '--json',
      '--port',
      String(port),
      '--app-port',
      '0',
      '--data',
      this.dataDir,
      '--config',
      join(this.folder, 'svc-router.yaml'),
    ]
    const child = spawn(process.execPath, args, {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { PATH: process.env['PATH'], ...nodeEnvironment, ...this.#env },
    })
    this.#child = child
    this.errors = ''
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      this.errors = (this.errors + text).slice(-20_000)
    })
    const announced = await firstLine(child)
    if (announced === undefined) {
      const limit = `it exited, or ${startLimitMs / 1_000} s passed`
      throw new Error(`the service did not start (${limit}): ${this.errors}`)
    }
    const {
      base_url: baseUrl,
      app_url: appUrl,
      key,
    } = JSON.parse(announced) as Record<'base_url' | 'app_url', string> & {
      key?: string
    }
    this.port = Number(new URL(baseUrl).port)
    this.appPort = Number(new URL(appUrl).port)
    if (key !== undefined) this.key = key
  }

  /** Sends a signal and waits for the exit; returns the exit code or the signal's name. */
  async stop(signal: NodeJS.Signals): Promise<number | string> {
    const child = this.running
    if (child.exitCode !== null || child.signalCode !== null) return child.exitCode ?? String(child.signalCode)
    const exited = once(child, 'exit', { signal: AbortSignal.timeout(exitLimitMs) })
    child.kill(signal)
    const [code, name] = (await exited) as [number | null, string | null]
    return code ?? String(name)
  }

  /** The process ids of its workers. */
  workers(): number[] {
    return childrenOf(this.running.pid!)
  }

  /** Kills it if it still runs. */
  async destroy(): Promise<void> {
    if (this.#child !== undefined) await this.stop('SIGKILL')
  }

  /** All records in the order of their IDs, read from the file. */
  records(afterId = ''): RecordRow[] {
    return this.#read((database) =>
      database
        .prepare(
          `select id, state, charged, admitted_at_ms as admittedAtMs, error_code as errorCode
           from requests where id > ? order by id`,
        )
        .all(afterId),
    ) as unknown as RecordRow[]
  }

  /** The used units of all accounts and months. */
  usedUnits(): number {
    const rows = this.#read((database) => database.prepare('select coalesce(sum(used), 0) as used from usage').all())
    return (rows[0] as { used: number }).used
  }

  #read<T>(read: (database: DatabaseSync) => T): T {
    const database = new DatabaseSync(join(this.dataDir, 'svc-router.db'), { readOnly: true, timeout: 5_000 })
    try {
      return read(database)
    } finally {
      database.close()
    }
  }
}

async function firstLine(child: ChildProcessByStdio<null, Readable, Readable>): Promise<string | undefined> {
  let text = ''
  const timer = setTimeout(() => child.kill('SIGKILL'), startLimitMs)
  try {
    for await (const chunk of child.stdout
      .setEncoding('utf8')
      .iterator({ destroyOnReturn: false }) as AsyncIterable<string>) {
      text += chunk
      const end = text.indexOf('\n')
      if (end >= 0) return text.slice(0, end)
    }
    return undefined
  } finally {
    clearTimeout(timer)
    child.stdout.resume()
  }
}
