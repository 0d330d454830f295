import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { closeSync, openSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { Machine } from './machine.ts'

const stopGraceMs = 3000
const stopPollMs = 20
const maxLogTail = 1500

/** Where a process runs: `gateway` has a core to itself, `others` share one. */
export type Place = 'gateway' | 'others'

/** `talks`: whether it speaks to us in messages. `environment` comes on top of PATH and HOME. */
export interface ChildOptions {
  readonly talks: boolean
  readonly environment?: Readonly<Record<string, string>>
}

/** Every process of one benchmark run. Whatever was started is gone after `stopAll`. */
export class Processes {
  readonly #running = new Set<Child>()
  readonly #machine: Machine
  readonly #folder: string
  #started = 0

  /** `folder` takes one log file for each process. */
  constructor(machine: Machine, folder: string) {
    this.#machine = machine
    this.#folder = folder
  }

  /** Starts `node ...args` on the core of its place, with an environment of its own. */
  start(name: string, place: Place, args: readonly string[], options: ChildOptions): Child {
    const logFile = join(this.#folder, `${name}-${++this.#started}.log`)
    const log = openSync(logFile, 'w', 0o600)
    const command = [process.execPath, ...args]
    const pinning = this.#machine.pinning
    if (pinning !== undefined) command.unshift('taskset', '-c', String(pinning[place]))
    const environment = { PATH: process.env['PATH'], HOME: process.env['HOME'], ...options.environment }
    const child = spawn(command[0]!, command.slice(1), {
      env: environment,
      stdio: ['ignore', log, log, ...(options.talks ? (['ipc'] as const) : [])],
    })
    closeSync(log)
    const started = new Child(name, child, logFile)
    this.#running.add(started)
    child.once('exit', () => this.#running.delete(started))
    return started
  }

  /** Asks all to end, and kills what has not ended after three seconds. */
  async stopAll(): Promise<void> {
    await Promise.all([...this.#running].map((child) => child.stop()))
  }

  /** Kills all at once, for the moment in which this process itself has to go. */
  killAll(): void {
    for (const child of this.#running) child.kill()
  }
}

/** One process of the run. */
export class Child {
  readonly name: string
  readonly #process: ChildProcess
  readonly #logFile: string
  #exit: string | undefined

  constructor(name: string, child: ChildProcess, logFile: string) {
    this.name = name
    this.#process = child
    this.#logFile = logFile
    child.once('exit', (code, signal) => (this.#exit = `it ended with ${signal ?? `code ${code}`}`))
    child.once('error', (error: NodeJS.ErrnoException) => (this.#exit = `it could not be started (${error.code})`))
  }

  get pid(): number {
    const pid = this.#process.pid
    if (pid === undefined) throw new Error(`${this.name} is not running.`)
    return pid
  }

  /** Why the process is no longer there; undefined while it runs. */
  get exit(): string | undefined {
    return this.#exit
  }

  /** The next message from the process, after saying `message` if there is one. @throws Error when none comes in time. */
  async ask<Reply>(message: object | undefined, timeoutMs: number): Promise<Reply> {
    const child = this.#process
    return await new Promise<Reply>((resolve, reject) => {
      const settle = (run: () => void): void => {
        clearTimeout(timer)
        child.off('message', onMessage).off('exit', onExit).off('error', onExit)
        run()
      }
      const onMessage = (reply: unknown): void => settle(() => resolve(reply as Reply))
      const onExit = (): void => settle(() => reject(this.failure(this.#exit ?? 'it ended')))
      const timer = setTimeout(() => settle(() => reject(this.failure(`no reply in ${timeoutMs} ms`))), timeoutMs)
      child.on('message', onMessage).on('exit', onExit).on('error', onExit)
      if (this.#exit !== undefined) onExit()
      else if (message !== undefined) child.send(message)
    })
  }

  async stop(): Promise<void> {
    this.#process.kill('SIGTERM')
    const deadline = Date.now() + stopGraceMs
    while (this.#exit === undefined && Date.now() < deadline) await delay(stopPollMs)
    this.kill()
  }

  kill(): void {
    if (this.#exit === undefined) this.#process.kill('SIGKILL')
  }

  /** An error that names the process, the trouble and the last lines of its log, without any key in them. */
  failure(trouble: string): Error {
    const log = readFileSync(this.#logFile, 'utf8').slice(-maxLogTail).trim()
    const tail = log.replaceAll(/sk_svc_\w*/g, 'sk_svc_…')
    return new Error(`${this.name}: ${trouble}${tail === '' ? '' : `. Its log ends:\n${tail}`}`)
  }
}
