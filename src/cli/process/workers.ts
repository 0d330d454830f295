import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import type { Config } from '../../config/config.ts'
import { withPorts } from '../../config/config.ts'
import { freePort } from '../../runtime/free-port.ts'
import { CommandError, exitCodes } from '../failures.ts'
import type { RunningApp } from '../ports.ts'

/** How long a worker may take to start. */
const startLimitMs = 60_000
/** Delay before a worker that died is replaced, doubled each time it does not live for `steadyMs`. */
const firstDelayMs = 100
const longestDelayMs = 5_000
const steadyMs = 10_000
/** Time beyond the drain limit after which a worker is killed. */
const stopMarginMs = 20_000

/** The environment variable that tells a worker which one it is, as JSON. */
export const workerEnv = 'SVC_ROUTER_WORKER'

/** What a worker needs to know besides the configuration, which it reads itself. */
interface WorkerPlace {
  readonly number: number
  readonly api: number
  readonly app: number
}

/** What starting workers needs. */
interface WorkersOptions {
  /** The environment of workers. */
  readonly env: NodeJS.ProcessEnv
  /** Called with every process that starts. */
  readonly onSpawned: (child: ChildProcess) => void
  /** A worker died and is replaced. `reason` is its exit code or signal. */
  readonly onDied: (died: { readonly worker: number; readonly reason: string }) => void
}

/** The configuration of one worker: the shared ports, and a data folder of its own (contract 36.9). */
export function configOfWorker(config: Config, place: string): Config {
  const { number, api, app } = JSON.parse(place) as WorkerPlace
  const shared = withPorts(config, { api, app })
  return {
    ...shared,
    workers: 1,
    dataDir: join(config.dataDir, `worker-${number}`),
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
    (_, number) => new Worker({ number, api, app }, config.drainDelayMs + config.drainMs, options),
  )
  const stop = async (): Promise<void> => {
    await Promise.all(workers.map((worker) => worker.stop()))
  }
  const started = await Promise.allSettled(workers.map((worker) => worker.start()))
  if (started.some(({ status }) => status === 'rejected')) {
    await stop()
    throw new CommandError(exitCodes.failure, 'a worker did not start', 'see the error that it printed above')
  }
  const running = withPorts(config, { api, app })
  return { config: running, stopped: new Promise(() => {}), stop }
}

/** One worker process, replaced whenever it dies. */
class Worker {
  readonly #place: WorkerPlace
  readonly #drainMs: number
  readonly #options: WorkersOptions
  #child: ChildProcess | undefined
  #delayMs = firstDelayMs
  #retry: NodeJS.Timeout | undefined
  #isStopping = false

  constructor(place: WorkerPlace, drainMs: number, options: WorkersOptions) {
    this.#place = place
    this.#drainMs = drainMs
    this.#options = options
  }

  /** Resolves when the worker listens. Rejects if it does not; it is not replaced then. */
  async start(): Promise<void> {
    const child = this.#spawn()
    const limit = AbortSignal.timeout(startLimitMs)
    const listening = await Promise.race([
      once(child, 'message', { signal: limit }).then(() => true),
      once(child, 'exit', { signal: limit }).then(() => false),
    ])
    if (!listening) throw new Error('the worker ended')
    this.#replaceWhenDead(child)
  }

  async stop(): Promise<void> {
    this.#isStopping = true
    clearTimeout(this.#retry)
    const child = this.#child
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return
    const exited = once(child, 'exit')
    child.kill('SIGTERM')
    const limit = setTimeout(() => child.kill('SIGKILL'), this.#drainMs + stopMarginMs)
    await exited
    clearTimeout(limit)
  }

  #spawn(): ChildProcess {
    const args = [...process.execArgv, ...process.argv.slice(1)]
    // Only the parent announces the service; a worker's log and errors go where the parent's go.
    const { env, onSpawned } = this.#options
    const child = spawn(process.execPath, args, {
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
      env: { ...env, [workerEnv]: JSON.stringify(this.#place) },
    })
    onSpawned(child)
    this.#child = child
    return child
  }

  #replaceWhenDead(child: ChildProcess): void {
    const startedMs = performance.now()
    child.once('exit', (code, signal) => {
      if (this.#isStopping) return
      this.#options.onDied({ worker: this.#place.number, reason: String(signal ?? code) })
      const isSteady = performance.now() - startedMs >= steadyMs
      this.#delayMs = isSteady ? firstDelayMs : Math.min(longestDelayMs, this.#delayMs * 2)
      this.#retry = setTimeout(() => this.#replaceWhenDead(this.#spawn()), this.#delayMs)
    })
  }
}
