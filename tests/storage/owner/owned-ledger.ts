import { mkdirSync } from 'node:fs'
import { duplexPair, type Duplex } from 'node:stream'
import type { Ledger } from '../../../src/gateway/ports.ts'
import { type Clock, systemClock } from '../../../src/runtime/clock.ts'
import { workerFolder } from '../../../src/storage/data-folder.ts'
import {
  DeliveryMarks,
  firstMark,
  readBootId,
  readDeliveryHistory,
} from '../../../src/storage/ledger/delivery-marks.ts'
import { openSqliteLedger, type SqliteLedger } from '../../../src/storage/ledger/ledger-sqlite.ts'
import { OwnerConnection } from '../../../src/storage/owner/owner-connection.ts'
import { RemoteLedger } from '../../../src/storage/owner/remote-ledger.ts'
import { WorkerConnection } from '../../../src/storage/owner/worker-connection.ts'
import { startReusedThread } from '../../reused-threads.ts'

export const maxMessageBytes = 1024 ** 2
const worker = 1

/** Both ends of a worker's connection in one process. */
export interface OwnedLedger extends Ledger {
  readonly owner: SqliteLedger
  readonly connection: OwnerConnection
  /** The owner's end of the stream between them: an owner that does not read it is stuck. */
  readonly ownerSide: Duplex
  readonly workerSide: Duplex
  readonly marks: DeliveryMarks
  /** Why each side gave the other up. */
  readonly troubles: string[]
  healthy(): boolean
  /** What the owner does when the worker's process ends; returns the requests whose answers it must delete. */
  workerDies(): readonly string[]
  close(): Promise<void>
}

interface Clocks {
  readonly worker?: Clock
  readonly owner?: Clock
}

/** Opens the ledger of a data folder whose tables exist, and a worker's view of it. */
export async function openOwnedLedger(
  folder: string,
  clock: Clock = systemClock(),
  clocks: Clocks = {},
  stores: Readonly<Record<string, object>> = {},
): Promise<OwnedLedger> {
  const ownFolder = workerFolder(folder, worker)
  mkdirSync(ownFolder, { recursive: true })
  const bootId = readBootId()
  const owner = await openSqliteLedger(folder, clock, { startThread: startReusedThread })
  const [ownerSide, workerSide] = duplexPair()
  const troubles: string[] = []
  const isHealthy = () => owner.healthy()
  const parts = { ledger: owner, stores, isHealthy, clock: clocks.owner ?? clock, maxMessageBytes }
  const served = new WorkerConnection(ownerSide, parts, (trouble) => void troubles.push(trouble))
  const marks = DeliveryMarks.continue(ownFolder, bootId, firstMark(worker))
  const lost = (): void => void troubles.push('lost')
  const connection = new OwnerConnection(workerSide, maxMessageBytes, clocks.worker ?? clock, lost)
  await connection.start()
  const ledger = new RemoteLedger(connection, marks, clocks.worker ?? clock)
  let isClosed = false
  const workerDies = (): readonly string[] => served.abandon(readDeliveryHistory(ownFolder, bootId, firstMark(worker)))
  return {
    admit: (opening, plan, rate, claim) => ledger.admit(opening, plan, rate, claim),
    signals: (accountId, plan, rate) => ledger.signals(accountId, plan, rate),
    owner,
    connection,
    ownerSide,
    workerSide,
    marks,
    troubles,
    healthy: () => connection.isHealthy,
    workerDies,
    async close() {
      if (isClosed) return
      isClosed = true
      await connection.ask({ do: 'flush' }, { limitMs: 20_000 }).catch(() => {})
      connection.close()
      workerDies()
      marks.close()
      await owner.close()
    },
  }
}
