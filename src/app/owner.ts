import type { Duplex } from 'node:stream'
import type { Config } from '../config/config.ts'
import { errorName } from '../runtime/describe-bug.ts'
import { workerFolder } from '../storage/data-folder.ts'
import { type DeliveryHistory, firstMark, readBootId, readDeliveryHistory } from '../storage/ledger/delivery-marks.ts'
import { WorkerConnection } from '../storage/owner/worker-connection.ts'
import { startAuditCheckpoints } from './background-checks.ts'
import { createRuntime, type Runtime } from './runtime.ts'
import { openSqliteStorage } from './storage.ts'
import { startSweeps } from './sweeps.ts'

/** A message may hold a conversation, encrypted, with its answers. */
const bodiesPerMessage = 8
const leastMessageBytes = 64 * 1024 ** 2

/** The largest message between a worker and the owner. */
export function maxMessageBytes({ limits }: Pick<Config, 'limits'>): number {
  return leastMessageBytes + bodiesPerMessage * limits.bodyBytes
}

/** The id of a worker among the nodes that share a database. */
export function nodeIdOf(worker: number): string {
  return `worker-${worker}`
}

/** The process that owns a SQLite database for its workers (contract 36.9): its ledger, its stores, and the jobs that run once. */
export interface Owner {
  /** Resolves with a reason code if requests can no longer be recorded. `stop` must still be called. */
  readonly failed: Promise<string>
  /**
   * Serves the worker at the other end of a socket. `onTrouble` is called at most once, with a reason code: the worker
   * must be ended. Call the result when its process has ended.
   */
  serve(worker: number, socket: Duplex, onTrouble: (reason: string) => void): () => void
  /** Call it when all workers have ended. @throws LedgerUnavailable */
  stop(): Promise<void>
}

/** Opens the database and starts the jobs. @throws DataFolderInUse, SetupError, and errors of the engine */
export async function startOwner(
  config: Config,
  { clock, random, log }: Pick<Runtime, 'clock' | 'random' | 'log'>,
): Promise<Owner> {
  await using opened = new AsyncDisposableStack()
  const runtime = createRuntime(config, { clock, random, log })
  const fatal = Promise.withResolvers<string>()
  const storage = opened.use(await openSqliteStorage(runtime, fatal.resolve))
  const onFailed = (error: unknown): void => log({ event: 'store_failing', reason: errorName(error) })
  opened.defer(startAuditCheckpoints(runtime, storage.store))
  opened.use(startSweeps(runtime, storage, onFailed))
  const { store, ledger, responses, conversations, generations } = storage
  const parts = {
    ledger,
    stores: {
      store,
      billing: store.billing,
      operators: store.operators,
      responses,
      conversations,
      generations,
      storage: { proveQuotas: () => storage.proveQuotas() },
    },
    isHealthy: () => storage.isHealthy(),
    clock,
    maxMessageBytes: maxMessageBytes(config),
  }
  // Those of an earlier start.
  for (const { id } of await store.listNodes()) await store.forgetWorker(id)
  const bootId = readBootId()
  const abandon = async (connection: WorkerConnection, history: DeliveryHistory): Promise<void> => {
    const stored = await generations.withContent(connection.openRequests).catch((error: unknown) => {
      onFailed(error)
      return []
    })
    const uncharged = connection.abandon({ ...history, ids: new Set([...history.ids, ...stored]) })
    await responses.removeUncharged(uncharged).catch(onFailed)
  }
  const abandoning = new Set<Promise<void>>()
  opened.defer(async () => void (await Promise.all(abandoning)))
  const owned = opened.move()
  return {
    failed: fatal.promise,
    serve(worker, socket, onTrouble) {
      const connection = new WorkerConnection(socket, parts, (trouble, cause) =>
        onTrouble(cause === undefined ? trouble : `${trouble}:${errorName(cause)}`),
      )
      return () => {
        // Read now: the worker's replacement continues the same marks.
        const history = readDeliveryHistory(workerFolder(config.dataDir, worker), bootId, firstMark(worker))
        const abandoned = abandon(connection, history).finally(() => abandoning.delete(abandoned))
        abandoning.add(abandoned)
        store.forgetWorker(nodeIdOf(worker)).catch(onFailed)
      }
    },
    stop: () => owned.disposeAsync(),
  }
}
