import { once } from 'node:events'
import { getCompileCacheDir } from 'node:module'
import { dirname, extname } from 'node:path'
import { Worker } from 'node:worker_threads'
import { type Batch, closing, type FromWorker, type ToWorker, type WorkerStart } from './ledger-batch.ts'
import { failureReason } from './ledger-unavailable.ts'

const startTimeoutMs = 20_000
const closeTimeoutMs = 10_000
/** A thread that hangs in the system cannot be ended by force either. */
const terminateTimeoutMs = 2_000

export interface WriterListener {
  /** Every batch up to this number is on disk. */
  onCommitted(number: number): void
  /** A commit failed; it is tried again until it succeeds. */
  onFailed(reason: string): void
  /** The thread is gone; nothing will be written any more. */
  onDied(reason: string): void
}

/** The main thread's end of the worker that commits the ledger's records. */
export class LedgerWriter {
  readonly #worker: Worker
  readonly #exited: Promise<true>
  #failure = 'exited'
  #closing = false

  private constructor(worker: Worker, listener: WriterListener) {
    this.#worker = worker
    this.#exited = new Promise((resolve) => {
      worker.once('exit', () => {
        if (!this.#closing) listener.onDied(this.#failure)
        resolve(true)
      })
    })
    worker.on('message', (message: FromWorker) => {
      if (message.type === 'committed') listener.onCommitted(message.number)
      if (message.type === 'failed') listener.onFailed(message.reason)
    })
    // An exit follows, and is what the listener hears of.
    worker.on('error', (error) => {
      this.#failure = failureReason(error)
    })
  }

  /** Starts the worker and resolves when it has the database open. */
  static async start(start: WorkerStart, listener: WriterListener): Promise<LedgerWriter> {
    // The same file under the name that it has here: `.ts` from the sources, `.js` once built.
    const file = new URL(`./ledger-sqlite-worker${extname(import.meta.url)}`, import.meta.url)
    const worker = new Worker(file, { workerData: start, env: workerEnvironment(), execArgv: [] })
    try {
      // Rejects on an error of the worker, too.
      await once(worker, 'message', { signal: AbortSignal.timeout(startTimeoutMs) })
    } catch (error) {
      await worker.terminate()
      throw error
    }
    return new LedgerWriter(worker, listener)
  }

  post(batch: Batch): void {
    this.#worker.postMessage(JSON.stringify(batch) satisfies ToWorker, [])
  }

  /** Ends the worker after what was posted is written, or by force when that takes too long. False where it hangs. */
  async close(): Promise<boolean> {
    this.#closing = true
    this.#worker.postMessage(closing satisfies ToWorker, [])
    if (await this.#isGoneWithin(closeTimeoutMs)) return true
    void this.#worker.terminate()
    return this.#isGoneWithin(terminateTimeoutMs)
  }

  async #isGoneWithin(limitMs: number): Promise<boolean> {
    const limit = Promise.withResolvers<false>()
    const timer = setTimeout(() => limit.resolve(false), limitMs)
    const isGone = await Promise.race([this.#exited, limit.promise])
    clearTimeout(timer)
    return isGone
  }
}

/**
 * Nothing of the process's own environment, which has secrets; only where Node keeps what it made of the sources. Without
 * that a thread loads Node's whole TypeScript reader for a handful of files, and keeps its 20 MB.
 */
function workerEnvironment(): Record<string, string> {
  // It has a folder for each version inside the one that it was given.
  const folder = getCompileCacheDir()
  return folder === undefined ? {} : { NODE_COMPILE_CACHE: dirname(folder) }
}
