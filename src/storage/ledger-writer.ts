import { once } from 'node:events'
import { extname } from 'node:path'
import { Worker } from 'node:worker_threads'
import type { Batch, FromWorker, ToWorker, WorkerStart } from './ledger-batch.ts'

const startTimeoutMs = 20_000
const closeTimeoutMs = 10_000

export interface WriterListener {
  /** Every batch up to this number is on disk. */
  onCommitted(number: number): void
  /** A commit failed; it is tried again until it succeeds. */
  onFailed(): void
  /** The thread is gone; nothing will be written any more. */
  onDied(): void
}

/** The main thread's end of the worker that commits the ledger's records. */
export class LedgerWriter {
  readonly #worker: Worker
  readonly #exited: Promise<void>
  #closing = false

  private constructor(worker: Worker, listener: WriterListener) {
    this.#worker = worker
    this.#exited = new Promise((resolve) => {
      worker.once('exit', () => {
        if (!this.#closing) listener.onDied()
        resolve()
      })
    })
    worker.on('message', (message: FromWorker) => {
      if (message.type === 'committed') listener.onCommitted(message.number)
      if (message.type === 'failed') listener.onFailed()
    })
    // An exit follows, and is what the listener hears of.
    worker.on('error', () => {})
  }

  /** Starts the worker and resolves when it has the database open. */
  static async start(start: WorkerStart, listener: WriterListener): Promise<LedgerWriter> {
    // The same file under the name that it has here: `.ts` from the sources, `.js` once built.
    const file = new URL(`./ledger-sqlite-worker${extname(import.meta.url)}`, import.meta.url)
    const worker = new Worker(file, { workerData: start, env: {}, execArgv: [] })
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
    this.#worker.postMessage(batch satisfies ToWorker, [])
  }

  /** Ends the worker after what was posted is written, or by force when that takes too long. */
  async close(): Promise<void> {
    this.#closing = true
    this.#worker.postMessage('close' satisfies ToWorker, [])
    const timer = setTimeout(() => void this.#worker.terminate(), closeTimeoutMs)
    await this.#exited
    clearTimeout(timer)
  }
}
