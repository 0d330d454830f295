import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Kysely, sql } from 'kysely'
import type { KeyRate, UsageSignals } from '../../domain/account-meter.ts'
import {
  type Amounts,
  assertAmounts,
  assertClaim,
  bookable,
  type BudgetClaim,
  noAmounts,
} from '../../domain/budgets.ts'
import type { Plan } from '../../domain/plans.ts'
import type { RequestOpening, RequestOutcome } from '../../domain/requests.ts'
import type { Admission, DeliveryState, HeldBudgets, Ledger } from '../../gateway/ports.ts'
import type { Clock } from '../../runtime/clock.ts'
import { randomBase62 } from '../../runtime/ids.ts'
import { systemRandom } from '../../runtime/random.ts'
import { SharedReads } from '../../runtime/shared-reads.ts'
import { deleteAnswersTo } from '../responses.ts'
import type { Tables } from '../schema/schema.ts'
import { lockDataFolder } from '../sqlite/data-folder-lock.ts'
import {
  type Admitted,
  type Asking,
  budgetsJson,
  type Decided,
  decideAlone,
  decideBatch,
  readSignals,
} from './admission-batches.ts'
import { AdmissionQueue, decideLimitMs } from './admission-queue.ts'
import { BudgetRefusals } from './budget-refusals.ts'
import { DatabaseClock } from './database-clock.ts'
import {
  type DeliveryHistory,
  DeliveryMarks,
  markedIdLength,
  mayHaveBeenDelivered,
  readBootId,
  readDeliveryHistory,
} from './delivery-marks.ts'
import { LedgerUnavailable } from './ledger-unavailable.ts'
import { MinuteRefusals } from './minute-refusals.ts'
import { NodeLease } from './node-lease.ts'
import { storedContent } from './recovery.ts'
import { SettlementQueue, writeSettlements } from './settlements.ts'

/** Maximum requests in flight. Below `markCapacity`, so that no mark is overwritten while it is needed. */
const maxInFlight = 60_000
/** Requests of an earlier process that are decided per statement. */
const recoveredAtOnce = 500
const nodeIdLength = 16
/** The file in the data folder with the id of the last node that used it. */
const nodeIdFile = 'node-id'

export interface PostgresLedgerOptions {
  /** Identifies the current boot of the machine; for tests. */
  readonly bootId?: string | undefined
  /** Called when admissions or outcomes cannot be written, once per outage; `reason` is a code. */
  readonly onFailing?: (reason: string) => void
  /** Called for each row that the database refused, and that was left out or settled with what is known. */
  readonly onBadRow?: (reason: string) => void
  /** What this node reports with each heartbeat; undefined while it starts. */
  readonly report?: () => string | undefined
}

/**
 * The ledger of any number of nodes on one PostgreSQL database, which decides every admission (contract 35.6, 36.2).
 * Each node has a data folder of its own for its delivery marks.
 */
export interface PostgresLedger extends Ledger {
  admit(opening: RequestOpening, plan: Plan, rate?: KeyRate, claim?: BudgetClaim): Promise<Admission>
  signals(accountId: string, plan: Plan, rate?: KeyRate): Promise<UsageSignals>
  /** Whether the last write succeeded. */
  healthy(): boolean
  /** Requests whose outcome is not written yet. */
  readonly inFlight: number
  /** The node's row in `nodes`. */
  readonly nodeId: string
  /** Writes a heartbeat now, because the report changed. */
  reportNow(): void
  /** The database's wall clock, epoch milliseconds. */
  nowMs(): number
  /** Writes all waiting settlements and releases the folder. Does not close the database. @throws LedgerUnavailable */
  close(): Promise<void>
}

/**
 * Locks the data folder for this process, decides the requests that an earlier one left open, and registers the node.
 * `db` comes from `openPostgres`, with a short time limit. @throws DataFolderInUse, or the driver's error
 */
export async function openPostgresLedger(
  db: Kysely<Tables>,
  folder: string,
  clock: Clock,
  options: PostgresLedgerOptions = {},
): Promise<PostgresLedger> {
  const bootId = 'bootId' in options ? options.bootId : readBootId()
  const ends: (() => void)[] = [lockDataFolder(folder)]
  try {
    // In this order: a process that dies in between leaves the ring and the id that belong together.
    await recover(db, readNodeId(folder), readDeliveryHistory(folder, bootId), options.onBadRow)
    const marks = DeliveryMarks.create(folder, bootId)
    ends.push(() => marks.close())
    const nodeId = randomBase62(nodeIdLength, systemRandom())
    writeFileSync(join(folder, nodeIdFile), nodeId, { mode: 0o600 })
    const ledger = new NodeLedger(db, nodeId, marks, clock, options, () => {
      for (const end of ends.toReversed()) end()
    })
    await ledger.start()
    return ledger
  } catch (error) {
    for (const end of ends.toReversed()) end()
    throw error
  }
}

function readNodeId(folder: string): string | undefined {
  try {
    return readFileSync(join(folder, nodeIdFile), 'latin1')
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined
    throw error
  }
}

/** Charges what an earlier process on this folder delivered, and refunds the rest (contract 6.13). */
async function recover(
  db: Kysely<Tables>,
  nodeId: string | undefined,
  history: DeliveryHistory,
  onBadRow?: (reason: string) => void,
): Promise<void> {
  if (nodeId === undefined) return
  for (;;) {
    const { rows } = await sql<{ id: string; units: number; due_mark: number | null; is_stored: boolean }>`
      select id, units, due_mark, ${sql.raw(storedContent)} as is_stored from requests where node_id = ${nodeId} and state in ('open', 'lost')
      order by id limit ${recoveredAtOnce}`.execute(db)
    if (rows.length === 0) return
    const settlements = rows.map((row) => {
      const isDelivered = row.is_stored || mayHaveBeenDelivered(row.id, row.due_mark, history)
      const charged = isDelivered ? row.units : 0
      // What their upstream calls cost is unknown.
      const outcome = { charged, attempts: [], totalMs: 0 }
      return { id: row.id, state: 'lost' as const, outcome, spent: 'unknown' as const }
    })
    const uncharged = settlements.filter(({ outcome }) => outcome.charged === 0)
    await deleteAnswersTo(
      db,
      uncharged.map(({ id }) => id),
    )
    await writeSettlements(db, settlements, onBadRow)
  }
}

class NodeLedger implements PostgresLedger {
  readonly nodeId: string
  readonly #db: Kysely<Tables>
  readonly #marks: DeliveryMarks
  readonly #clock: Clock
  readonly #queue: AdmissionQueue
  readonly #refusals: MinuteRefusals
  readonly #reads = new SharedReads<UsageSignals>()
  readonly #budgetRefusals: BudgetRefusals
  readonly #settlements: SettlementQueue
  readonly #lease: NodeLease
  readonly #databaseClock: DatabaseClock
  readonly #onFailing: (reason: string) => void
  readonly #release: () => void
  /** Requests whose end is not in the database yet. */
  readonly #inFlight = new Set<string>()
  #isFailing = false
  #isClosed = false

  constructor(
    db: Kysely<Tables>,
    nodeId: string,
    marks: DeliveryMarks,
    clock: Clock,
    { onFailing = () => {}, onBadRow = () => {}, report = () => undefined }: PostgresLedgerOptions,
    release: () => void,
  ) {
    this.nodeId = nodeId
    this.#db = db
    this.#marks = marks
    this.#clock = clock
    this.#refusals = new MinuteRefusals(clock)
    this.#budgetRefusals = new BudgetRefusals(clock)
    this.#onFailing = onFailing
    this.#release = release
    const onFailed = (error: unknown): void => this.#fail(error)
    const onWritten = (id: string): boolean => this.#inFlight.delete(id)
    this.#settlements = new SettlementQueue(db, clock, { onWritten, onFailed, onBadRow })
    const databaseClock = new DatabaseClock(clock)
    this.#databaseClock = databaseClock
    const decide = (batch: readonly Asking[]): Promise<readonly Decided[]> => {
      const expiresMs = databaseClock.earliestMs() + decideLimitMs
      const isExpired = (): boolean => databaseClock.nowMs() >= expiresMs
      return decideAlone((some) => decideBatch(db, { nodeId, expiresMs }, some), batch, { onBadRow, isExpired })
    }
    this.#queue = new AdmissionQueue(decide, clock, {
      onFailed,
      onDecided: () => {
        this.#isFailing = false
      },
    })
    this.#lease = new NodeLease(
      db,
      nodeId,
      { clock, databaseClock },
      {
        onBeat: () => {
          this.#isFailing = false
          this.#queue.recover()
        },
        onFailed,
        inFlight: () => this.#inFlight,
        onOwnRequests: (ids) => this.#giveUpUnknown(ids),
        onBadRow,
        report,
      },
    )
  }

  start(): Promise<void> {
    return this.#lease.start()
  }

  async admit(opening: RequestOpening, plan: Plan, rate?: KeyRate, claim?: BudgetClaim): Promise<Admission> {
    if (this.#isClosed || this.#settlements.isFull || this.#inFlight.size >= maxInFlight) throw new LedgerUnavailable()
    if (opening.id.length > markedIdLength) throw new RangeError('a request id is too long')
    if (claim !== undefined) assertClaim(claim)
    const caller = { accountId: opening.accountId, plan, rate }
    const refusal =
      this.#refusals.errorFor(caller) ?? (claim && this.#budgetRefusals.errorFor(opening.accountId, claim))
    if (refusal !== undefined) throw refusal
    const askedMs = this.#clock.monotonicMs()
    this.#inFlight.add(opening.id)
    try {
      const decided = await this.#decide({ opening, plan, rate, claim })
      if ('error' in decided) {
        if (decided.fullMinute !== undefined) this.#refusals.note(caller, askedMs, decided.fullMinute)
        throw decided.error
      }
      if ('standings' in decided) throw this.#budgetRefusals.note(opening.accountId, claim!, decided)
      return new NodeAdmission({ opening, claim }, decided, this.#marks, this.#settlements, {
        more: (amounts) => this.#holdMore(opening, claim!, amounts),
        ended: (totalMs) => this.#budgetRefusals.ended(opening.accountId, totalMs),
      })
    } catch (error) {
      this.#inFlight.delete(opening.id)
      throw error
    }
  }

  /**
   * Asks once more if budgets refuse a request while earlier ones of the account that have ended still hold some of
   * them: a client that sends one request after the other must not be refused because of itself.
   */
  async #decide(asking: Omit<Asking, 'dueMark'>): Promise<Decided> {
    const { written } = this.#settlements
    const decided = await this.#queue.add({ ...asking, dueMark: this.#marks.next })
    if (!('standings' in decided)) return decided
    const released = this.#settlements.releasing(asking.opening.accountId)
    if (released === undefined && this.#settlements.written === written) return decided
    await released
    return await this.#queue.add({ ...asking, dueMark: this.#marks.next })
  }

  signals(accountId: string, plan: Plan, rate?: KeyRate): Promise<UsageSignals> {
    // An error after a failed admission must not wait for the database once more.
    if (!this.healthy()) return Promise.reject(new LedgerUnavailable())
    const known = this.#refusals.signalsFor({ accountId, plan, rate })
    if (known !== undefined) return Promise.resolve(known)
    // Thousands of retries of one request can ask at once.
    const name = JSON.stringify([accountId, plan, rate])
    return this.#reads.read(name, () => readSignals(this.#db, accountId, plan, rate))
  }

  reportNow(): void {
    this.#lease.beatNow()
  }

  get inFlight(): number {
    return this.#inFlight.size
  }

  nowMs(): number {
    return this.#databaseClock.nowMs()
  }

  healthy(): boolean {
    return !this.#isClosed && !this.#isFailing && this.#queue.isHealthy && this.#settlements.isHealthy
  }

  async close(): Promise<void> {
    if (this.#isClosed) return
    this.#isClosed = true
    try {
      await this.#lease.close()
      await this.#settlements.close()
      // Others forget the node within a minute anyway.
      await this.#lease.leave().catch(() => {})
    } finally {
      this.#release()
    }
  }

  #fail(error: unknown): void {
    if (!this.#isFailing) this.#onFailing(reasonOf(error))
    this.#isFailing = true
    this.#lease.hurry()
  }

  /** See `HeldBudgets.more`. @throws the driver's error */
  async #holdMore({ id, accountId }: RequestOpening, { budgets }: BudgetClaim, amounts: Amounts): Promise<boolean> {
    assertAmounts(amounts)
    const { rows } = await sql<{ held: boolean }>`select svc_router_hold_more_1(${id}, ${accountId},
      ${JSON.stringify(budgetsJson(budgets))}::jsonb, ${amounts.nanoUsd}, ${amounts.tokens}) as held`.execute(this.#db)
    return rows[0]?.held === true
  }

  /** Refunds admissions whose commit was not confirmed: their callers got an error, and nothing was sent (contract 36.16). */
  #giveUpUnknown(ids: readonly string[]): void {
    for (const id of ids) {
      if (this.#inFlight.has(id)) continue
      this.#inFlight.add(id)
      this.#settlements.add({ id, state: 'lost', outcome: { charged: 0, attempts: [], totalMs: 0 }, spent: noAmounts })
    }
  }
}

/** What an admission does with the budgets of its claim. */
interface NodeBudgets {
  more(amounts: Amounts): Promise<boolean>
  /** The request has ended. */
  ended(totalMs: number): void
}

class NodeAdmission implements Admission {
  readonly held: HeldBudgets | undefined
  readonly #opening: RequestOpening
  readonly #signals: UsageSignals
  readonly #marks: DeliveryMarks
  readonly #settlements: SettlementQueue
  readonly #budgets: NodeBudgets
  #isDelivered = false
  #isSettled = false

  constructor(
    { opening, claim }: Pick<Asking, 'opening' | 'claim'>,
    admitted: Admitted,
    marks: DeliveryMarks,
    settlements: SettlementQueue,
    budgets: NodeBudgets,
  ) {
    this.#opening = opening
    this.#signals = admitted
    this.#marks = marks
    this.#settlements = settlements
    this.#budgets = budgets
    const { outputTokens = 0 } = admitted
    if (claim !== undefined) this.held = { outputTokens, more: (amounts) => budgets.more(amounts) }
  }

  /** The values at the time of admission. */
  signals(): UsageSignals {
    return this.#signals
  }

  /** The charge was on disk before this admission was returned. */
  durable(): undefined {
    return undefined
  }

  deliver(): void {
    if (this.#isDelivered) return
    this.#marks.add(this.#opening.id)
    this.#isDelivered = true
  }

  settle(outcome: RequestOutcome, _delivery: DeliveryState, spent?: Amounts): void {
    if (this.#isSettled) throw new Error('a request was settled twice')
    this.#isSettled = true
    const { id, accountId } = this.#opening
    if (this.held === undefined) return this.#settlements.add({ id, state: 'done', outcome })
    this.#budgets.ended(outcome.totalMs)
    this.#settlements.add({ id, state: 'done', outcome, spent: bookable(spent) ?? 'unknown', accountId })
  }
}

/** A code of PostgreSQL (SQLSTATE) or of the network; never a text. */
function reasonOf(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  return typeof code === 'string' && /^[A-Z0-9_]{1,40}$/.test(code) ? code : 'database'
}
