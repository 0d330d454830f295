import { existsSync } from 'node:fs'
import type { Config } from '../config/config.ts'
import type { KeyStore, Ledger } from '../gateway/ports.ts'
import { createConversationStore } from '../storage/conversation-store.ts'
import type { RetainedConversations } from '../storage/conversations.ts'
import { createGenerationStore } from '../storage/generation-store.ts'
import type { GenerationList } from '../storage/generations.ts'
import { openSqliteLedger, type SqliteLedger, type SqliteLedgerOptions } from '../storage/ledger/ledger-sqlite.ts'
import { createResponseStore } from '../storage/response-store.ts'
import type { ResponseList } from '../storage/responses.ts'
import { databasePath } from '../storage/sqlite/connect-sqlite.ts'
import { assertDatabaseThere, watchDatabaseFile } from '../storage/sqlite/database-file.ts'
import { openSqlite, openSqliteInThread } from '../storage/sqlite/open-sqlite.ts'
import { proveQuotasOnSqlite } from '../storage/sqlite/prove-quotas.ts'
import { createStore, type Store } from '../storage/store.ts'
import { checkedStore } from './checked-store.ts'
import type { Runtime } from './runtime.ts'

/** All stored data, and the ledger that admits requests (contract 32.3). */
export interface Storage extends AsyncDisposable {
  readonly store: Store
  readonly ledger: Ledger
  /** Where keys are looked up. */
  readonly keys: KeyStore
  readonly responses: ResponseList
  readonly conversations: RetainedConversations
  readonly generations: GenerationList
  readonly ownNode: OwnNode
  /** Whether another process owns the database, and does what must be done once (contract 36.9). */
  readonly isOwnedElsewhere: boolean
  /** Rejects if a quota write is not visible on a new connection. */
  proveQuotas(): Promise<void>
  /** The wall clock that decides when keys end: the same for all nodes of a database (contract 36.14). Epoch milliseconds. */
  nowMs(): number
  /** The time by which months and the windows of budgets are counted (contract 5.13, 5.14): epoch milliseconds. */
  quotaNowMs(): number
  /** Whether requests can be recorded right now. */
  isHealthy(): boolean
  /** What waits for the database, by name: `ledger` counts requests whose record is not complete. */
  queues(): Readonly<Record<string, number>>
}

/** What a node reports with each heartbeat; undefined while it starts. */
export type NodeReporter = () => string | undefined

/** This process among the nodes that share the database. If it is the only one, it reports to nobody. */
export interface OwnNode {
  readonly id: string
  reportWith(source: NodeReporter): void
  /** Reports now, because something important changed. */
  reportNow(): void
}

const onlyProcess: OwnNode = {
  id: 'this process',
  reportWith: () => {},
  reportNow: () => {},
}

/** PostgreSQL's parts load only if it is used. */
const loadPostgres = (): Promise<typeof import('./storage-postgres.ts')> => import('./storage-postgres.ts')

/** Opens the database for one command, and checks that its keys were hashed with the configured pepper. @throws SetupError and errors of the engine */
export async function openStore(config: Config): Promise<Store> {
  const { dataDir, databaseUrl } = config
  if (databaseUrl !== undefined) return (await loadPostgres()).openPostgresStore(config, databaseUrl.reveal())
  assertDatabaseThere(databasePath(dataDir), dataDir)
  return checkedStore(await openSqlite(dataDir), config)
}

/** Whether there is a database to open: a command that reads one must not create it. */
export function hasStore({ dataDir, databaseUrl }: Config): boolean {
  return databaseUrl !== undefined || existsSync(databasePath(dataDir))
}

/** Rejects if a quota write is not visible on a new connection. */
export async function proveQuotas({ dataDir, databaseUrl }: Config): Promise<void> {
  if (databaseUrl === undefined) return proveQuotasOnSqlite(databasePath(dataDir))
  const { proveQuotasOnPostgres } = await import('../storage/postgres/prove-quotas.ts')
  return proveQuotasOnPostgres(databaseUrl.reveal())
}

/**
 * Opens the database and the ledger for the service. Calls `onDied` with a reason code if this process can never record
 * requests again. @throws DataFolderInUse, SetupError, and errors of the engine
 */
export async function openStorage(runtime: Runtime, onDied: (reason: string) => void): Promise<Storage> {
  const { databaseUrl } = runtime.config
  if (databaseUrl === undefined) return openSqliteStorage(runtime, onDied)
  return (await loadPostgres()).openPostgresStorage(runtime, databaseUrl.reveal())
}

/** See `openStorage`. Tests may start the database thread differently. */
export async function openSqliteStorage(
  { config, clock, log }: Runtime,
  onDied: (reason: string) => void,
  options: Pick<SqliteLedgerOptions, 'startThread'> = {},
): Promise<Storage & { readonly ledger: SqliteLedger }> {
  await using opened = new AsyncDisposableStack()
  const checked = await openStore(config)
  opened.defer(() => checked.close())
  const onFailing = (reason: string): void => log({ event: 'ledger_failing', reason })
  const onBadRow = (reason: string): void => log({ event: 'ledger_row_refused', reason })
  const ledger = await openSqliteLedger(config.dataDir, clock, { onFailing, onBadRow, onDied, ...options })
  opened.defer(() => ledger.close())
  const { thread } = ledger
  const store = createStore(openSqliteInThread(thread, 'store'))
  opened.defer(() => store.close())
  const answers = openSqliteInThread(thread, 'responses')
  const responses = createResponseStore(answers, config.limits.storedBytes)
  const conversations = createConversationStore(answers, config.limits.storedBytes)
  const generations = createGenerationStore(answers)
  // The process that ran them has ended, and so have its workers.
  await generations.abandonAll()
  opened.defer(() => responses.close())
  const file = watchDatabaseFile(databasePath(config.dataDir), clock, (reason) =>
    log({ event: 'store_failing', reason }),
  )
  opened.defer(() => file.end())
  const owned = opened.move()
  return {
    store,
    ledger,
    keys: { find: (digest) => store.find(digest), revision: () => store.revision() },
    responses,
    conversations,
    generations,
    ownNode: onlyProcess,
    isOwnedElsewhere: false,
    proveQuotas: async () => thread.call({ type: 'prove' }),
    nowMs: () => clock.nowMs(),
    quotaNowMs: () => ledger.nowMs(),
    isHealthy: () => ledger.healthy() && file.isUsable(),
    queues: () => ({ ledger: ledger.inFlight, database: thread.waitingCalls }),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  }
}
