import type { Config } from '../config/config.ts'
import { createFolder } from '../runtime/create-folder.ts'
import { createConversationStore } from '../storage/conversation-store.ts'
import { createGenerationStore } from '../storage/generation-store.ts'
import { openPostgresLedger } from '../storage/ledger/ledger-postgres.ts'
import { checkPepper } from '../storage/pepper-check.ts'
import { connectPostgres, openPostgres, readRevisionOnPrimary } from '../storage/postgres/open-postgres.ts'
import { proveQuotasOnPostgres } from '../storage/postgres/prove-quotas.ts'
import { createResponseStore } from '../storage/response-store.ts'
import { createStore, type Store } from '../storage/store.ts'
import { checkedStore } from './checked-store.ts'
import { peppersIn, type Runtime } from './runtime.ts'
import type { NodeReporter, Storage } from './storage.ts'

/** Connections of one node: for its ledger, so that pages and lists cannot delay admissions, and for everything else. */
const ledgerConnections = 4
const storeConnections = 10
/** A batch of admissions or outcomes without an answer after this long has failed. */
const ledgerTimeoutMs = 3_000

/** Opens the database for one command. @throws SchemaMismatch, SetupError, StoreUnavailable */
export async function openPostgresStore(config: Config, url: string): Promise<Store> {
  // For what belongs to this node alone, such as its delivery marks and the last audit checkpoint that it saw.
  createFolder(config.dataDir)
  return checkedStore(await openPostgres(url, { maxConnections: storeConnections }), config)
}

/** Opens the database and the node's ledger for the service (contract 36.1). @throws DataFolderInUse, SchemaMismatch, SetupError, StoreUnavailable */
export async function openPostgresStorage({ config, clock, log }: Runtime, url: string): Promise<Storage> {
  await using opened = new AsyncDisposableStack()
  createFolder(config.dataDir)
  // Applies migrations before anything else is opened.
  const db = await openPostgres(url, { maxConnections: storeConnections })
  opened.defer(() => db.destroy())
  await checkPepper(db, peppersIn(config))
  const ledgerDb = connectPostgres(url, { maxConnections: ledgerConnections, queryTimeoutMs: ledgerTimeoutMs })
  opened.defer(() => ledgerDb.destroy())
  const onFailing = (reason: string): void => log({ event: 'ledger_failing', reason })
  const onBadRow = (reason: string): void => log({ event: 'ledger_row_refused', reason })
  let report: NodeReporter = () => undefined
  const ledger = await openPostgresLedger(ledgerDb, config.dataDir, clock, {
    onFailing,
    onBadRow,
    report: () => report(),
  })
  opened.defer(() => ledger.close())
  const owned = opened.move()
  const store = createStore(db)
  return {
    store,
    ledger,
    ownNode: {
      id: ledger.nodeId,
      reportWith(source) {
        report = source
        ledger.reportNow()
      },
      reportNow: () => ledger.reportNow(),
    },
    keys: { find: (digest) => store.find(digest), revision: () => readRevisionOnPrimary(db) },
    responses: createResponseStore(db, config.limits.storedBytes),
    conversations: createConversationStore(db, config.limits.storedBytes),
    generations: createGenerationStore(db),
    isOwnedElsewhere: false,
    proveQuotas: () => proveQuotasOnPostgres(url),
    nowMs: () => ledger.nowMs(),
    quotaNowMs: () => ledger.nowMs(),
    isHealthy: () => ledger.healthy(),
    queues: () => ({ ledger: ledger.inFlight }),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  }
}
