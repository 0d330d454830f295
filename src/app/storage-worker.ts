import type { Duplex } from 'node:stream'
import type { TransactionStore } from '../accounts/declared/declared-ports.ts'
import type { Clock, Timer } from '../runtime/clock.ts'
import { createFolder } from '../runtime/create-folder.ts'
import { errorName } from '../runtime/describe-bug.ts'
import { StoreUnavailable } from '../runtime/store-unavailable.ts'
import { workerFolder } from '../storage/data-folder.ts'
import { DeliveryMarks, firstMark, readBootId } from '../storage/ledger/delivery-marks.ts'
import { LedgerUnavailable } from '../storage/ledger/ledger-unavailable.ts'
import { QuotaCalendar } from '../storage/ledger/quota-calendar.ts'
import { OwnerConnection } from '../storage/owner/owner-connection.ts'
import { RemoteLedger } from '../storage/owner/remote-ledger.ts'
import { remoteStore } from '../storage/owner/remote-stores.ts'
import { databasePath } from '../storage/sqlite/connect-sqlite.ts'
import { lockDataFolder } from '../storage/sqlite/data-folder-lock.ts'
import { openSqliteInThread } from '../storage/sqlite/open-sqlite.ts'
import { SqliteThread } from '../storage/sqlite/sqlite-thread.ts'
import { createStore } from '../storage/store.ts'
import { maxMessageBytes, nodeIdOf } from './owner.ts'
import type { Runtime } from './runtime.ts'
import type { NodeReporter, OwnNode, Storage } from './storage.ts'

/** The interval between reports, the same as for nodes on PostgreSQL (contract 36.10). */
const reportMs = 5_000
/** How long a worker that stops waits for its last records to be written. */
const flushLimitMs = 25_000
/** How long a connection for a change waits for a lock that another process holds. */
const changeBusyMs = 5_000

/** What a worker on SQLite gets from its parent, which owns the database. */
export interface WorkerOptions {
  readonly worker: number
  /** The connection to the owner. */
  readonly socket: Duplex
  /** Called once when the connection to the owner ends: nothing can be recorded anymore. */
  readonly onLost: () => void
}

/** Opens the storage of one worker on SQLite (contract 36.9). @throws DataFolderInUse, StoreUnavailable */
export async function openWorkerStorage(
  { config, clock, log }: Runtime,
  { worker, socket, onLost }: WorkerOptions,
): Promise<Storage> {
  await using opened = new AsyncDisposableStack()
  const folder = workerFolder(config.dataDir, worker)
  createFolder(folder)
  opened.defer(lockDataFolder(folder))
  const marks = DeliveryMarks.continue(folder, readBootId(), firstMark(worker))
  opened.defer(() => marks.close())
  const owner = new OwnerConnection(socket, maxMessageBytes(config), clock, onLost)
  opened.defer(() => owner.close())
  await owner.start()
  opened.defer(() => flush(owner))
  const store = remoteStore<Storage['store']>(owner, 'store', {
    billing: remoteStore(owner, 'billing'),
    operators: remoteStore(owner, 'operators'),
    declared: { atRevision: (revision, work) => changeAtRevision({ config, log }, revision, work) },
  })
  const reports = new WorkerReports(store, nodeIdOf(worker), clock)
  opened.defer(() => reports.close())
  const calendar = new QuotaCalendar(clock)
  const { proveQuotas } = remoteStore<Pick<Storage, 'proveQuotas'>>(owner, 'storage')
  const owned = opened.move()
  return {
    store,
    ledger: new RemoteLedger(owner, marks, clock),
    keys: { find: (digest) => store.find(digest), revision: () => store.revision() },
    responses: remoteStore(owner, 'responses'),
    conversations: remoteStore(owner, 'conversations'),
    generations: remoteStore(owner, 'generations'),
    ownNode: reports,
    isOwnedElsewhere: true,
    proveQuotas,
    nowMs: () => clock.nowMs(),
    quotaNowMs: () => calendar.nowMs(),
    isHealthy: () => owner.isHealthy,
    queues: () => owner.queues,
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  }
}

/**
 * Implements `DeclaredStore.atRevision`. Its `work` is a function, which cannot be sent to the owner, so the transaction runs
 * on its own connection. That connection is in a thread, so that neither statements nor the disk block the event loop
 * (contract 29.7, 32.8).
 */
async function changeAtRevision<Value>(
  { config, log }: Pick<Runtime, 'config' | 'log'>,
  revision: number,
  work: (store: TransactionStore) => Promise<Value>,
): Promise<Value | 'stale'> {
  const thread = await startChangeThread(databasePath(config.dataDir))
  const store = createStore(openSqliteInThread(thread, 'store'))
  try {
    return await store.declared.atRevision(revision, work)
  } finally {
    await store.close()
    // The transaction has already committed or failed.
    await thread.close(undefined).catch((error: unknown) => log({ event: 'store_failing', reason: errorName(error) }))
  }
}

/** Starts a database thread that writes no ledger records, because the owner does that. @throws StoreUnavailable */
async function startChangeThread(path: string): Promise<SqliteThread> {
  const nothing = (): void => {}
  try {
    return await SqliteThread.start(
      { path, busyTimeoutMs: changeBusyMs },
      { onCommitted: nothing, onFailed: nothing, onDied: nothing },
    )
  } catch (error) {
    throw new StoreUnavailable(`the database thread did not start: ${errorName(error)}`)
  }
}

/** Resolves when the owner has written everything that this worker recorded. @throws LedgerUnavailable */
async function flush(owner: OwnerConnection): Promise<void> {
  try {
    await owner.ask({ do: 'flush' }, { limitMs: flushLimitMs })
  } catch (error) {
    throw new LedgerUnavailable(error)
  }
}

/** Writes this worker's reports to the database, so that every worker and command can show the whole service. */
class WorkerReports implements OwnNode {
  readonly id: string
  readonly #store: Pick<Storage['store'], 'reportWorker'>
  readonly #clock: Clock
  readonly #startedMs: number
  #isKnown = false
  #source: NodeReporter = () => undefined
  #timer: Timer | undefined

  constructor(store: Pick<Storage['store'], 'reportWorker'>, id: string, clock: Clock) {
    this.#store = store
    this.id = id
    this.#clock = clock
    this.#startedMs = clock.monotonicMs()
  }

  reportWith(source: NodeReporter): void {
    this.#source = source
    this.reportNow()
  }

  reportNow(): void {
    this.close()
    this.#timer = this.#clock.after(reportMs, () => this.reportNow())
    // Pages show that a report is missing, and the next one follows.
    const ageMs = Math.round(this.#clock.monotonicMs() - this.#startedMs)
    const sign = { ageMs, isKnown: this.#isKnown, report: this.#source() ?? null }
    this.#store.reportWorker(this.id, sign).then(
      () => (this.#isKnown = true),
      () => {},
    )
  }

  close(): void {
    this.#timer?.cancel()
  }
}
