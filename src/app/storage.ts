import type { Config } from '../config/config.ts'
import type { Clock } from '../runtime/clock.ts'
import type { EventLog } from '../domain/events.ts'
import type { Ledger } from '../gateway/ports.ts'
import { databasePath } from '../storage/sqlite/connect-sqlite.ts'
import { assertDatabaseThere, watchDatabaseFile } from '../storage/sqlite/database-file.ts'
import { openSqliteLedger } from '../storage/ledger/ledger-sqlite.ts'
import { openSqlite, openSqliteInThread } from '../storage/sqlite/open-sqlite.ts'
import { checkPepper } from '../storage/pepper-check.ts'
import { createConversationStore, type RetainedConversations } from '../storage/conversation-store.ts'
import { createResponseStore, type ResponseList } from '../storage/response-store.ts'
import { createStore, type Store } from '../storage/store.ts'

/** What is kept and what decides admissions: SQLite in the data folder. */
export interface Storage extends AsyncDisposable {
  readonly store: Store
  readonly ledger: Ledger
  readonly responses: ResponseList
  readonly conversations: RetainedConversations
  /** Rejects where a write to the quotas is not found again behind a fresh connection. */
  proveQuotas(): Promise<void>
  /** Whether requests can be recorded just now. */
  isHealthy(): boolean
}

export interface StorageDeps {
  readonly clock: Clock
  readonly log: EventLog
  /** Told when requests can never be recorded again by this process; `reason` is a code. */
  readonly onDied: (reason: string) => void
}

/** Opens the database of the data folder under the configured pepper, for one command. @throws SetupError and the engine's own errors */
export async function openStore({ dataDir, secrets }: Config): Promise<Store> {
  assertDatabaseThere(databasePath(dataDir), dataDir)
  const db = await openSqlite(dataDir)
  try {
    const { pepper, previousPepper } = secrets
    await checkPepper(db, previousPepper === undefined ? [pepper] : [pepper, previousPepper])
    return createStore(db)
  } catch (error) {
    await db.destroy()
    throw error
  }
}

/** Opens the database and the ledger of this process. @throws DataFolderInUse and the engine's own errors */
export async function openStorage(config: Config, { clock, log, onDied }: StorageDeps): Promise<Storage> {
  await using opened = new AsyncDisposableStack()
  const checked = await openStore(config)
  opened.defer(() => checked.close())
  const onFailing = (reason: string): void => log({ event: 'ledger_failing', reason })
  const ledger = await openSqliteLedger(config.dataDir, clock, { onFailing, onDied })
  opened.defer(() => ledger.close())
  const { thread } = ledger
  const store = createStore(openSqliteInThread(thread, 'store'))
  opened.defer(() => store.close())
  const answers = openSqliteInThread(thread, 'responses')
  const responses = createResponseStore(answers, config.limits.storedBytes)
  const conversations = createConversationStore(answers, config.limits.storedBytes)
  opened.defer(() => responses.close())
  const file = watchDatabaseFile(databasePath(config.dataDir), clock, () =>
    log({ event: 'store_failing', reason: 'database_file_lost' }),
  )
  opened.defer(() => file.end())
  const owned = opened.move()
  return {
    store,
    ledger,
    responses,
    conversations,
    proveQuotas: async () => thread.call({ type: 'prove' }),
    isHealthy: () => ledger.healthy() && file.isThere(),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  }
}
