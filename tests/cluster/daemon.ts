import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { childrenOf } from '../faults/children-of.ts'

const stopLimitMs = 20_000
const keptCharacters = 20_000

export interface DaemonOptions {
  /** The user that runs it, if not this one. */
  readonly uid?: number
  readonly gid?: number
  readonly env?: NodeJS.ProcessEnv
  readonly cwd: string
}

/** A program that runs until it is stopped. It can be started again. */
export class Daemon {
  readonly #program: string
  readonly #args: readonly string[]
  readonly #options: DaemonOptions
  #child: ChildProcess | undefined
  /** The end of what it wrote. */
  output = ''

  constructor(program: string, args: readonly string[], options: DaemonOptions) {
    this.#program = program
    this.#args = args
    this.#options = options
  }

  get isRunning(): boolean {
    return this.#child !== undefined && this.#child.exitCode === null && this.#child.signalCode === null
  }

  start(): void {
    const child = spawn(this.#program, this.#args, {
      stdio: ['ignore', 'pipe', 'pipe'],
      ...this.#options,
      env: { PATH: process.env['PATH'], LC_ALL: 'C', ...this.#options.env },
    })
    this.#child = child
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (text: string) => {
        this.output = (this.output + text).slice(-keptCharacters)
      })
    }
  }

  /** Sends a signal and waits for the end; after a while with SIGKILL. */
  async stop(signal: NodeJS.Signals = 'SIGTERM'): Promise<void> {
    const child = this.#child
    if (child === undefined || !this.isRunning) return
    const exited = once(child, 'exit')
    child.kill('SIGCONT')
    child.kill(signal)
    const timer = setTimeout(() => child.kill('SIGKILL'), stopLimitMs)
    await exited
    clearTimeout(timer)
  }
}

/** Sends a signal to a process and, after it, to its descendants, and returns their ids. */
export function signalTree(pid: number, signal: 'SIGSTOP' | 'SIGCONT'): readonly number[] {
  const pids = [pid]
  for (let at = 0; at < pids.length; at++) {
    signalOne(pids[at]!, signal)
    pids.push(...childrenOf(pids[at]!))
  }
  return pids
}

/** Sends a signal unless the process has ended. */
export function signalOne(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal)
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'ESRCH')) throw error
  }
}
