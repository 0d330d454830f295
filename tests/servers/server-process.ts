import { execFileSync, spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, readdirSync } from 'node:fs'

const startWithinMs = 240_000
const pollEveryMs = 100
const stopWithinMs = 15_000
const maxLogCharacters = 20_000
/** The clock ticks of the kernel per second: 100 on common Linux systems. */
const ticksPerSecond = Number(execFileSync('getconf', ['CLK_TCK'], { encoding: 'utf8' }))

/** Builds long command-line options. `true` means an option without a value. */
export function options(given: Readonly<Record<string, string | number | true>>): string[] {
  return Object.entries(given).flatMap(([name, value]) =>
    value === true ? [`--${name}`] : [`--${name}`, String(value)],
  )
}

export interface ServerCommand {
  readonly command: string
  readonly args: readonly string[]
  readonly env?: Readonly<Record<string, string>>
  readonly folder: string
  /** Answers 2xx once the server is ready. */
  readonly readyUrl: string
}

/** A server in its own process group. Tests can stop, kill, and restart it. */
export class ServerProcess implements AsyncDisposable {
  readonly #given: ServerCommand
  #child: ChildProcess | undefined
  #log = ''

  private constructor(given: ServerCommand) {
    this.#given = given
  }

  /** @throws Error with the end of its log if it is not ready in time */
  static async start(given: ServerCommand): Promise<ServerProcess> {
    const server = new ServerProcess(given)
    await server.start()
    return server
  }

  /** Starts the server, also after `stop` or `kill`, and waits until it is ready. */
  async start(): Promise<void> {
    const { command, args, env, folder, readyUrl } = this.#given
    const child = spawn(command, args, {
      cwd: folder,
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...process.env, ...env },
    })
    this.#child = child
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (text: string) => {
        this.#log = (this.#log + text).slice(-maxLogCharacters)
      })
    }
    child.once('error', (error) => (this.#log += error.message))
    const deadline = performance.now() + startWithinMs
    while (!(await isReady(readyUrl))) {
      if (child.exitCode !== null || child.signalCode !== null || performance.now() > deadline) {
        await this.kill()
        throw new Error(`${command} did not become ready: ${this.#log.slice(-2_000)}`)
      }
      await new Promise((resolve) => setTimeout(resolve, pollEveryMs))
    }
  }

  /** The end of its output. */
  get log(): string {
    return this.#log
  }

  /** Sends SIGTERM, then SIGKILL after 15 s. Returns whether SIGTERM was enough. */
  async stop(): Promise<boolean> {
    let stoppedItself = true
    const late = setTimeout(() => {
      stoppedItself = false
      this.#signal('SIGKILL')
    }, stopWithinMs)
    await this.#end('SIGTERM')
    clearTimeout(late)
    // Ends its child processes.
    this.#signal('SIGKILL')
    return stoppedItself
  }

  /** Kills it without warning, as a crash would. */
  kill(): Promise<void> {
    return this.#end('SIGKILL')
  }

  /** The CPU time that the processes of its group have used so far, in seconds. */
  cpuSeconds(): number {
    const group = String(this.#child!.pid)
    let ticks = 0
    for (const pid of readdirSync('/proc')) {
      if (!/^\d+$/.test(pid)) continue
      try {
        const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
        // The name in parentheses may contain spaces. After it: state, parent, group, …, user and system time.
        const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
        if (fields[2] === group) ticks += Number(fields[11]) + Number(fields[12])
      } catch {
        // The process exited while this loop ran.
      }
    }
    return ticks / ticksPerSecond
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop()
  }

  async #end(signal: NodeJS.Signals): Promise<void> {
    const child = this.#child
    if (child === undefined || child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return
    const exited = once(child, 'exit')
    this.#signal(signal)
    await exited
  }

  #signal(signal: NodeJS.Signals): void {
    if (this.#child?.pid === undefined) return
    try {
      process.kill(-this.#child.pid, signal)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
    }
  }
}

async function isReady(url: string): Promise<boolean> {
  try {
    return (await fetch(url, { signal: AbortSignal.timeout(5_000) })).ok
  } catch {
    return false
  }
}
