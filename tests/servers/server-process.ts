import { execFileSync, spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, readdirSync } from 'node:fs'
import { createServer } from 'node:net'
import type { AddressInfo } from 'node:net'

const startWithinMs = 240_000
const askEveryMs = 100
const stopWithinMs = 15_000
const maxLogCharacters = 20_000
/** What the kernel counts in: a hundredth of a second on every Linux of today. */
const ticksPerSecond = Number(execFileSync('getconf', ['CLK_TCK'], { encoding: 'utf8' }))

/** A port of this machine that is free now. */
export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}

/** Long options for a command line; `true` stands for one without a value. */
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

/** A server as a process group of its own, which can be ended, killed and started again. */
export class ServerProcess implements AsyncDisposable {
  readonly #given: ServerCommand
  #child: ChildProcess | undefined
  #log = ''

  private constructor(given: ServerCommand) {
    this.#given = given
  }

  /** @throws Error with the end of its log where it is not ready in time */
  static async start(given: ServerCommand): Promise<ServerProcess> {
    const server = new ServerProcess(given)
    await server.start()
    return server
  }

  /** Starts it, again after `stop` or `kill`, and waits until it is ready. */
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
      await new Promise((resolve) => setTimeout(resolve, askEveryMs))
    }
  }

  /** The last of what it printed. */
  get log(): string {
    return this.#log
  }

  /** Asks it to stop, and kills it where it does not within 15 s. Gives whether it stopped by itself. */
  async stop(): Promise<boolean> {
    let isPatient = true
    const late = setTimeout(() => {
      isPatient = false
      this.#signal('SIGKILL')
    }, stopWithinMs)
    await this.#end('SIGTERM')
    clearTimeout(late)
    // What it started itself.
    this.#signal('SIGKILL')
    return isPatient
  }

  /** Ends it at once, as a crash would. */
  kill(): Promise<void> {
    return this.#end('SIGKILL')
  }

  /** Seconds of CPU that the processes of its group have taken so far. */
  cpuSeconds(): number {
    const group = String(this.#child!.pid)
    let ticks = 0
    for (const pid of readdirSync('/proc')) {
      if (!/^\d+$/.test(pid)) continue
      try {
        const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
        // The name in parentheses may hold spaces; behind it: state, parent, group, …, user and system time.
        const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
        if (fields[2] === group) ticks += Number(fields[11]) + Number(fields[12])
      } catch {
        // It ended while the list was read.
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
