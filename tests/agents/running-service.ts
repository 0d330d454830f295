import { execFile, spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { ConversationFormatId } from '../../src/domain/format-id.ts'
import type { RequestRecord } from '../../src/domain/requests.ts'

const run = promisify(execFile)
const main = join(import.meta.dirname, '..', '..', 'src', 'main.ts')
const startWithinMs = 60_000
const stopWithinMs = 15_000
const commandWithinMs = 60_000
const settleWithinMs = 5_000
const pollEveryMs = 50

/**
 * The service as a new user starts it: in its own process, on a free port, with a new data folder.
 */
export class RunningService implements AsyncDisposable {
  readonly baseUrl: string
  /** The key that the first start stored in the data folder. */
  readonly key: string
  readonly folder: string
  readonly #process: ChildProcess
  readonly #environment: NodeJS.ProcessEnv

  private constructor(child: ChildProcess, folder: string, baseUrl: string, environment: NodeJS.ProcessEnv) {
    this.#environment = environment
    this.#process = child
    this.folder = folder
    this.baseUrl = baseUrl
    this.key = readFileSync(join(folder, 'data', 'first-key'), 'utf8').trim()
  }

  /**
   * `config` is the text of a configuration file; by default, the file is empty. `variables` are the environment
   * variables that it names.
   */
  static async start(config = '', variables: Readonly<Record<string, string>> = {}): Promise<RunningService> {
    const folder = mkdtempSync(join(tmpdir(), 'svc-router-agents-'))
    writeFileSync(join(folder, 'svc-router.yaml'), config)
    const environment = { ...cleanEnvironment(), ...variables }
    const child = spawn(process.execPath, [main, 'start', '--port', '0', '--json', ...shared(folder)], {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: environment,
    })
    try {
      return new RunningService(child, folder, await firstLine(child), environment)
    } catch (error) {
      child.kill('SIGKILL')
      rmSync(folder, { recursive: true, force: true })
      throw error
    }
  }

  /** Starts the service with one backend, `alpha`, of a provider at that address. */
  static startWithProvider(
    { baseUrl }: { readonly baseUrl: string },
    format: ConversationFormatId,
    preset = 'custom',
  ): Promise<RunningService> {
    const config = `
providers: { pretended: { preset: ${preset}, base_url: '${baseUrl}', format: ${format} } }
backends: { alpha: { provider: pretended, model: model-of-alpha, credential_env: PRETENDED_KEY } }
`
    return RunningService.start(config, { PRETENDED_KEY: 'made-up-for-this-test' })
  }

  get origin(): string {
    return new URL(this.baseUrl).origin
  }

  /** Runs another command on the same data folder and returns the JSON that it prints. */
  async command(...args: readonly string[]): Promise<unknown> {
    const { stdout } = await run(process.execPath, [main, ...args, '--json', ...shared(this.folder)], {
      env: this.#environment,
      timeout: commandWithinMs,
    })
    return JSON.parse(stdout)
  }

  /** Every admitted request, oldest first. Waits until all are settled. */
  async requests(): Promise<RequestRecord[]> {
    const deadline = performance.now() + settleWithinMs
    for (;;) {
      const records = (await this.command('requests', '--limit', '1000')) as RequestRecord[]
      if (records.every(({ state }) => state === 'done')) return records.toReversed()
      if (performance.now() > deadline) throw new Error('a request is still not settled')
      await new Promise((resolve) => setTimeout(resolve, pollEveryMs))
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#process.exitCode === null && this.#process.signalCode === null) {
      const killing = setTimeout(() => this.#process.kill('SIGKILL'), stopWithinMs)
      const exited = once(this.#process, 'exit')
      this.#process.kill('SIGTERM')
      await exited
      clearTimeout(killing)
    }
    rmSync(this.folder, { recursive: true, force: true })
  }
}

function shared(folder: string): string[] {
  return ['--data', join(folder, 'data'), '--config', join(folder, 'svc-router.yaml')]
}

/** The environment of this process without the settings that a developer may have for the service. */
function cleanEnvironment(): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^(SVC_ROUTER_|NODE_ENV$)/.test(name)))
}

/** The base URL in the only line on standard output. */
function firstLine(child: ChildProcess): Promise<string> {
  return new Promise((resolve, reject) => {
    let out = ''
    let log = ''
    const late = setTimeout(() => reject(new Error(`the service did not start in time: ${log}`)), startWithinMs)
    child.stderr!.setEncoding('utf8').on('data', (text: string) => {
      log = (log + text).slice(-10_000)
    })
    child.once('exit', (code) => reject(new Error(`the service exited with ${code}: ${log}`)))
    child.stdout!.setEncoding('utf8').on('data', (text: string) => {
      out += text
      if (!out.includes('\n')) return
      clearTimeout(late)
      resolve((JSON.parse(out) as { base_url: string }).base_url)
    })
  })
}
