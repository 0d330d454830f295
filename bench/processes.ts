import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { closeSync, openSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { Machine } from './machine.ts'

const stopGraceMs = 3000
const stopPollMs = 20
const maxLogTail = 1500

/** Where a process runs: `gateway` has its own core, `others` share one. */
export type Place = 'gateway' | 'others'

/** `talks`: whether it exchanges messages with us. `environment` is added to PATH and HOME. */
export interface ChildOptions {
  readonly talks: boolean
  readonly environment?: Readonly<Record<string, string>>
}

/** Every process of one run. `stopAll` ends all of them. */
export class Processes {
  readonly #running = new Set<Child>()
  readonly #machine: Machine
  readonly #folder: string
  #started = 0

  /** `folder` gets one log file per process. */
  constructor(machine: Machine, folder: string) {
    this.#machine = machine
    this.#folder = folder
  }

  /** Starts `node ...args` on the core of its place, with its own environment. */
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

  /** Asks all processes to end, and kills those that still run after three seconds. */
  async stopAll(): Promise<void> {
    await Promise.all([...this.#running].map((child) => child.stop()))
  }

  /** Kills all processes immediately, for when this process must end. */
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

  /** Why the process ended; undefined while it runs. */
  get exit(): string | undefined {
    return this.#exit
  }

  /** The next message from the process, after sending `message` if given. @throws Error on a timeout */
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

  /** An error with the process, the problem, and the last lines of its log, without keys. */
  failure(trouble: string): Error {
    const log = readFileSync(this.#logFile, 'utf8').slice(-maxLogTail).trim()
    const tail = log.replaceAll(/sk_svc_\w*/g, 'sk_svc_…')
    return new Error(`${this.name}: ${trouble}${tail === '' ? '' : `. Its log ends:\n${tail}`}`)
  }
}
