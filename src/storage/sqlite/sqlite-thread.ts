import { type EventEmitter, once } from 'node:events'
import { getCompileCacheDir } from 'node:module'
import { dirname, extname } from 'node:path'
import { type Transferable, Worker } from 'node:worker_threads'
import { sqliteDiskCodes, sqliteResultCode } from '../../runtime/sqlite-result-code.ts'
import { StoreUnavailable } from '../../runtime/store-unavailable.ts'
import { failureReason } from './failure-reason.ts'
import type { Batch } from './ledger-batch.ts'
import {
  type Call,
  type ErrorMessage,
  type FromWorker,
  threadClockMs,
  type ToWorker,
  type WorkerStart,
} from './sqlite-messages.ts'

/** The thread's file under the name that it has here: `.ts` from the sources, `.js` once built. */
const workerFile = new URL(`./sqlite-worker${extname(import.meta.url)}`, import.meta.url)
const startTimeoutMs = 20_000
const closeTimeoutMs = 10_000
/** A thread that hangs in the system cannot be ended by force either. */
const terminateTimeoutMs = 2_000
/** A call without an answer after this long has failed for its caller (contract 32.8). */
const answerLimitMs = 5_000
/** Calls without an answer at once. */
const maxCalls = 10_000
/** Nothing in the thread outlives its batch, so a young generation of 1 MiB is as fast as one of 16 (decision 26). */
const resourceLimits = { maxYoungGenerationSizeMb: 3 }

export interface ThreadListener {
  /** Every batch up to this number is on disk. */
  onCommitted(number: number): void
  /** A commit failed; it is tried again until it succeeds. */
  onFailed(reason: string): void
  /** The database refused a row, which was left out. */
  onBadRow?(reason: string): void
  /** The thread has ended; nothing will be written anymore. */
  onDied(reason: string): void
}

/** A worker thread, or the part of one in tests that serves a single database. */
export interface ThreadWorker extends EventEmitter {
  postMessage(message: unknown, transfer: readonly Transferable[]): void
  terminate(): Promise<unknown>
}

interface Pending {
  resolve(value: unknown): void
  reject(error: Error): void
  readonly limit: NodeJS.Timeout | undefined
  /** Its caller received an error, but the thread still has the call. */
  isOverdue: boolean
}

/**
 * The main thread's end of the database thread, which does all work of SQLite while the service runs: it commits the
 * ledger's batches and runs queries. The main thread never waits for it without a limit. From a call that is overdue
 * until its late answer, further calls are refused at once.
 */
export class SqliteThread {
  readonly #worker: ThreadWorker
  readonly #listener: ThreadListener
  readonly #exited: Promise<number>
  readonly #calls = new Map<number, Pending>()
  #lastCall = 0
  #overdue = 0
  #failure = 'exited'
  #isClosing = false
  #isGone = false

  private constructor(worker: ThreadWorker, listener: ThreadListener) {
    this.#worker = worker
    this.#listener = listener
    this.#exited = new Promise((resolve) => {
      worker.once('exit', (code) => {
        this.#isGone = true
        this.#refuseAll()
        if (!this.#isClosing) listener.onDied(this.#failure)
        resolve(code)
      })
    })
    worker.on('message', (message: FromWorker) => this.#receive(message))
    // The exit that follows notifies the listener.
    worker.on('error', (error) => {
      this.#failure = failureReason(error)
    })
  }

  /** Starts the thread and resolves when it has the database open. */
  static async start(
    start: WorkerStart,
    listener: ThreadListener,
    worker: ThreadWorker = startWorker(workerFile, start),
  ): Promise<SqliteThread> {
    try {
      // Rejects on an error of the worker, too.
      await once(worker, 'message', { signal: AbortSignal.timeout(startTimeoutMs) })
    } catch (error) {
      await worker.terminate()
      throw error
    }
    return new SqliteThread(worker, listener)
  }

  /** Calls without an answer. */
  get waitingCalls(): number {
    return this.#calls.size
  }

  /** Commits a batch after earlier ones; the listener is notified. */
  post(batch: Batch): void {
    this.#post(JSON.stringify(batch))
  }

  /**
   * Runs one call; rejects with SQLite's error, or with StoreUnavailable if no answer arrives in time. @throws
   * StoreUnavailable if the call was not sent: the thread hangs, has ended, or is overdue
   */
  call<Value>(call: Call): Promise<Value> {
    if (this.#isGone || this.#isClosing) throw new StoreUnavailable('the database thread has ended')
    if (this.#overdue > 0) throw new StoreUnavailable('the database does not answer')
    if (this.#calls.size >= maxCalls) throw new StoreUnavailable('too many calls are waiting for the database')
    const id = ++this.#lastCall
    return new Promise<Value>((resolve, reject) => {
      // An answer that arrived while this thread was blocked is read before the second of these two callbacks.
      const limit = setTimeout(() => setImmediate(() => this.#giveUp(id)), answerLimitMs)
      this.#calls.set(id, { resolve, reject, limit, isOverdue: false })
      this.#post({ type: 'call', id, expiresAtMs: threadClockMs() + answerLimitMs, call })
    })
  }

  /** Sends a call whose answer nobody needs. It never expires. */
  send(call: Call): void {
    if (!this.#isGone) this.#post({ type: 'call', id: 0, expiresAtMs: Infinity, call })
  }

  /**
   * Ends the thread once earlier calls are done, or by force if that takes too long. `finishFrom`: see `CloseMessage`.
   * Resolves to false if the thread hangs. @throws StoreUnavailable if its last write failed
   */
  async close(finishFrom: string | undefined): Promise<boolean> {
    this.#isClosing = true
    this.#post({ type: 'close', finishFrom })
    const code = await this.#exitWithin(closeTimeoutMs)
    if (code !== undefined) {
      if (code !== 0) throw new StoreUnavailable(this.#failure)
      return true
    }
    void this.#worker.terminate()
    return (await this.#exitWithin(terminateTimeoutMs)) !== undefined
  }

  #receive(message: FromWorker): void {
    if (message.type === 'committed') this.#listener.onCommitted(message.number)
    if (message.type === 'failed') this.#listener.onFailed(message.reason)
    if (message.type === 'bad_row') this.#listener.onBadRow?.(message.reason)
    if (message.type !== 'answer' && message.type !== 'error') return
    const pending = this.#calls.get(message.id)
    if (pending === undefined) return
    this.#calls.delete(message.id)
    clearTimeout(pending.limit)
    if (pending.isOverdue) this.#overdue -= 1
    else if (message.type === 'answer') pending.resolve(message.value)
    else pending.reject(asThrown(message.error))
  }

  #giveUp(id: number): void {
    const pending = this.#calls.get(id)
    if (pending === undefined) return
    pending.isOverdue = true
    this.#overdue += 1
    pending.reject(new StoreUnavailable('the database does not answer'))
  }

  #refuseAll(): void {
    for (const call of this.#calls.values()) {
      clearTimeout(call.limit)
      call.reject(new StoreUnavailable('the database thread has ended'))
    }
    this.#calls.clear()
  }

  #post(message: ToWorker): void {
    this.#worker.postMessage(message, [])
  }

  async #exitWithin(limitMs: number): Promise<number | undefined> {
    const limit = Promise.withResolvers<undefined>()
    const timer = setTimeout(() => limit.resolve(undefined), limitMs)
    const code = await Promise.race([this.#exited, limit.promise])
    clearTimeout(timer)
    return code
  }
}

/** Starts a worker thread that uses little memory, and gets no secrets. */
export function startWorker(file: URL, workerData?: unknown): Worker {
  return new Worker(file, { workerData, env: workerEnvironment(), execArgv: [], resourceLimits })
}

/** What the rest of the service uses of the thread; a simulation has another one. */
export type DatabaseThread = Pick<SqliteThread, 'call' | 'post' | 'send' | 'close' | 'waitingCalls'>

/** The error of the database thread, with SQLite's codes. */
function asThrown(error: ErrorMessage): Error {
  const isDisk = sqliteDiskCodes.includes(sqliteResultCode(error))
  return Object.assign(isDisk ? new StoreUnavailable(error.message) : new Error(error.message), error)
}

/**
 * Omits the process's environment, which contains secrets, and passes only the location of Node's compile cache.
 * Without the cache, a thread loads Node's whole TypeScript compiler for a few files, which costs 20 MB.
 */
function workerEnvironment(): Record<string, string> {
  // Node creates a folder per version inside the configured one.
  const folder = getCompileCacheDir()
  return folder === undefined ? {} : { NODE_COMPILE_CACHE: dirname(folder) }
}
