import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import type { Socket } from 'node:net'
import { join } from 'node:path'
import type { Config } from '../../config/config.ts'
import { withPorts } from '../../config/config.ts'
import { errorName } from '../../runtime/describe-bug.ts'
import { freePort } from '../../runtime/free-port.ts'
import { SetupError } from '../../runtime/setup-error.ts'
import { readVersion } from '../../runtime/version.ts'
import { CommandError, exitCodes } from '../failures.ts'
import type { RunningApp } from '../ports.ts'

/** How long a worker may take to start, the first time and when it replaces one that died. */
const usualStartLimitMs = 60_000
/** Delay before a worker that died is replaced, doubled each time it does not live for `steadyMs`. */
const firstDelayMs = 100
const longestDelayMs = 5_000
const steadyMs = 10_000
/** A worker that still runs this long after the drain limit is killed. */
const stopMarginMs = 20_000
/** How long a worker may run after it closed its connection to the owner. */
const closedLimitMs = 5_000
/** The descriptor of a worker's connection to the owner of the database. */
export const ownerSocketFd = 4
const standardInput = 0

/** The environment variable that tells a worker which one it is, as JSON. */
export const workerEnv = 'SVC_ROUTER_WORKER'

/** What a worker needs to know besides the configuration, which it gets on standard input. */
export interface WorkerPlace {
  readonly number: number
  readonly api: number
  readonly app: number
  /** Processes of two versions cannot share an owner: their messages may differ. */
  readonly version: string
}

/** Serves the database to the workers, in this process. */
interface WorkerHost {
  /**
   * Serves a worker over a socket. `onTrouble` is called at most once, with a reason code: the worker must be ended. Call
   * the result when its process has ended.
   */
  serve(worker: number, socket: Socket, onTrouble: (reason: string) => void): () => void
}

/** What starting workers needs. */
interface WorkersOptions {
  /** The environment of workers. */
  readonly env: NodeJS.ProcessEnv
  /** Called with every process that starts. */
  readonly onSpawned: (child: ChildProcess) => void
  /** A worker died and is replaced. `reason` is its exit code or signal. */
  readonly onDied: (died: { readonly worker: number; readonly reason: string }) => void
  /** Undefined if each worker opens the database itself. */
  readonly host: WorkerHost | undefined
  /** Default: 60 s. */
  readonly startLimitMs?: number
}

/** Reads what a worker's parent wrote into the environment; undefined if this process is not a worker. */
export function readWorkerPlace(text: string | undefined): WorkerPlace | undefined {
  return text === undefined ? undefined : (JSON.parse(text) as WorkerPlace)
}

/**
 * The text of the configuration file as the parent of this worker read it. The file may have changed since then, and the
 * processes of one node must not differ (contract 36.9). @throws SetupError
 */
export function readGivenConfig(): string | undefined {
  try {
    return (JSON.parse(readFileSync(standardInput, 'utf8')) as { readonly text?: string }).text
  } catch (error) {
    throw new SetupError(
      `this worker received no configuration (${errorName(error)}): the service that started it has ended or has a different version`,
      'restart the service',
    )
  }
}

/** The configuration of one worker: the shared ports, and on PostgreSQL a data folder of its own (contract 36.9). */
export function configOfWorker(config: Config, { number, api, app }: WorkerPlace): Config {
  const shared = withPorts(config, { api, app })
  return {
    ...shared,
    workers: 1,
    dataDir: config.databaseUrl === undefined ? config.dataDir : join(config.dataDir, `worker-${number}`),
    listen: { ...shared.listen, sharesPort: true },
    appListen: { ...shared.appListen, sharesPort: true },
  }
}

/**
 * Starts the workers, each this same program with the same arguments. @throws CommandError if one of them does not start
 */
export async function startWorkers(config: Config, options: WorkersOptions): Promise<RunningApp> {
  const api = config.listen.port === 0 ? await freePort(config.listen.host) : config.listen.port
  const app = config.appListen.port === 0 ? await freePort(config.appListen.host) : config.appListen.port
  const workers = Array.from(
    { length: config.workers },
    (_, number) => new Worker({ number, api, app, version: readVersion() }, config, options),
  )
  const stop = async (): Promise<void> => {
    await Promise.all(workers.map((worker) => worker.stop()))
  }
  const started = await Promise.allSettled(workers.map((worker) => worker.start()))
  if (started.some(({ status }) => status === 'rejected')) {
    await stop()
    throw new CommandError(
      exitCodes.failure,
      'a worker did not start',
      'see the error that it printed above; if there is none, it took too long',
    )
  }
  const running = withPorts(config, { api, app })
  return { config: running, stopped: new Promise(() => {}), stop }
}

/** Resolves when a worker reports that it listens. It may answer other messages before that. */
function listens(child: ChildProcess): Promise<true> {
  return new Promise((resolve) => {
    child.on('message', (message) => {
      if (message === 'listening') resolve(true)
    })
  })
}

/** One worker process, replaced whenever it dies. */
class Worker {
  readonly #place: WorkerPlace
  readonly #stopLimitMs: number
  readonly #configText: string
  readonly #options: WorkersOptions
  #child: ChildProcess | undefined
  /** Why the worker had to be ended. */
  #trouble: string | undefined
  #delayMs = firstDelayMs
  #retry: NodeJS.Timeout | undefined
  #isStopping = false

  constructor(place: WorkerPlace, config: Config, options: WorkersOptions) {
    this.#place = place
    this.#stopLimitMs = config.drainDelayMs + config.drainMs + stopMarginMs
    this.#configText = JSON.stringify({ text: config.fileText })
    this.#options = options
  }

  /** Resolves when the worker listens. Rejects if it does not; it is not replaced then. */
  async start(): Promise<void> {
    const child = this.#spawn()
    const listening = await Promise.race([listens(child), once(child, 'exit').then(() => false)])
    if (!listening) throw new Error('the worker ended')
    this.#replaceWhenDead(child)
  }

  async stop(): Promise<void> {
    this.#isStopping = true
    clearTimeout(this.#retry)
    const child = this.#child
    if (child?.pid === undefined || hasEnded(child)) return
    const exited = once(child, 'exit')
    child.kill('SIGTERM')
    const limit = setTimeout(() => child.kill('SIGKILL'), this.#stopLimitMs)
    await exited
    clearTimeout(limit)
  }

  #spawn(): ChildProcess {
    const { env, host, onSpawned } = this.#options
    const args = [...process.execArgv, ...process.argv.slice(1)]
    // Only the parent announces the service; a worker's log and errors go where the parent's go.
    const child = spawn(process.execPath, args, {
      stdio: ['pipe', 'ignore', 'inherit', 'ipc', ...(host === undefined ? [] : (['pipe'] as const))],
      env: { ...env, [workerEnv]: JSON.stringify(this.#place) },
    })
    // Without a process, `error` follows instead of `exit`.
    const hasProcess = child.pid !== undefined
    if (hasProcess) onSpawned(child)
    this.#child = child
    this.#trouble = undefined
    // A worker that dies before it has read this is replaced when it exits.
    child.stdin?.on('error', () => {}).end(this.#configText)
    this.#limitStart(child)
    if (host !== undefined && hasProcess) this.#serve(host, child)
    return child
  }

  /** Ends a worker that hangs before it listens: nothing else would notice it. */
  #limitStart(child: ChildProcess): void {
    const limit = setTimeout(() => {
      this.#trouble = 'start_timeout'
      child.kill('SIGKILL')
    }, this.#options.startLimitMs ?? usualStartLimitMs)
    const clear = (): void => clearTimeout(limit)
    void listens(child).then(clear)
    child.once('exit', clear).once('error', clear)
  }

  #serve(host: WorkerHost, child: ChildProcess): void {
    const onTrouble = (reason: string): void => {
      if (hasEnded(child)) return
      const isEnding = reason === 'closed'
      if (!isEnding) this.#trouble = reason
      const limit = setTimeout(() => child.kill('SIGKILL'), isEnding ? closedLimitMs : 0)
      child.once('exit', () => clearTimeout(limit))
    }
    const end = host.serve(this.#place.number, child.stdio[ownerSocketFd] as Socket, onTrouble)
    child.once('exit', end)
  }

  #replaceWhenDead(child: ChildProcess): void {
    const startedMs = performance.now()
    child.once('exit', (code, signal) => this.#replace(startedMs, this.#trouble ?? String(signal ?? code)))
    child.on('error', (error: NodeJS.ErrnoException) => {
      if (child.pid === undefined) this.#replace(startedMs, error.code ?? error.name)
    })
  }

  #replace(startedMs: number, reason: string): void {
    if (this.#isStopping) return
    this.#options.onDied({ worker: this.#place.number, reason })
    const isSteady = performance.now() - startedMs >= steadyMs
    this.#delayMs = isSteady ? firstDelayMs : Math.min(longestDelayMs, this.#delayMs * 2)
    this.#retry = setTimeout(() => this.#replaceWhenDead(this.#spawn()), this.#delayMs)
  }
}

function hasEnded({ exitCode, signalCode }: ChildProcess): boolean {
  return exitCode !== null || signalCode !== null
}
