import { EventEmitter } from 'node:events'
import { MessageChannel, type MessagePort, type Worker } from 'node:worker_threads'
import type { Runtime } from '../src/app/runtime.ts'
import { openSqliteStorage, openStorage, type Storage } from '../src/app/storage.ts'
import type { WorkerStart } from '../src/storage/sqlite/sqlite-messages.ts'
import {
  SqliteThread,
  startWorker,
  type ThreadListener,
  type ThreadWorker,
} from '../src/storage/sqlite/sqlite-thread.ts'

/** Idle threads of this process; more are ended. */
const maxIdle = 3
const body = new URL('reused-thread.ts', import.meta.url)
const idle: Worker[] = []

/**
 * Opens the storage of a service in a thread that may have served other databases before: a thread's start and end take
 * as much CPU time as the rest of a service's.
 */
export function openStorageOnReusedThread(runtime: Runtime, onDied: (reason: string) => void): Promise<Storage> {
  if (runtime.config.databaseUrl !== undefined) return openStorage(runtime, onDied)
  return openSqliteStorage(runtime, onDied, { startThread: startReusedThread })
}

/** Starts the database thread of a ledger like that. */
export function startReusedThread(start: WorkerStart, listener: ThreadListener): Promise<SqliteThread> {
  return SqliteThread.start(start, listener, new ThreadUse(idle.pop() ?? startWorker(body), start))
}

/** One use of a thread. It emits the events of a thread that ends with this use. */
class ThreadUse extends EventEmitter implements ThreadWorker {
  readonly #worker: Worker
  readonly #port: MessagePort
  readonly #onError = (error: unknown): boolean => this.emit('error', error)
  readonly #onExit = (code: number): void => this.#end(code)

  constructor(worker: Worker, start: WorkerStart) {
    super()
    const { port1, port2 } = new MessageChannel()
    this.#worker = worker
    this.#port = port1
    port1.on('message', (message) => this.emit('message', message))
    worker.on('error', this.#onError).once('exit', this.#onExit)
    // A thread that dies closes its port, too, but sends no message.
    let left = 2
    const countDown = (): void => {
      left -= 1
      if (left === 0) this.#return()
    }
    port1.once('close', countDown)
    worker.once('message', countDown)
    worker.ref()
    worker.postMessage({ start, port: port2 }, [port2])
  }

  postMessage(message: unknown): void {
    this.#port.postMessage(message, [])
  }

  terminate(): Promise<number> {
    return this.#worker.terminate()
  }

  #return(): void {
    this.#worker.off('exit', this.#onExit)
    if (idle.length < maxIdle) {
      this.#worker.unref()
      idle.push(this.#worker)
    } else void this.#worker.terminate()
    this.#end(0)
  }

  #end(code: number): void {
    this.#worker.off('error', this.#onError)
    this.emit('exit', code)
  }
}
