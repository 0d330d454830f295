import { existsSync, rmSync } from 'node:fs'
import { AccountMeter, type KeyRate, type Moment, type UsageSignals } from '../../domain/account-meter.ts'
import type { BucketSpending } from '../../domain/budget-meter.ts'
import { assertClaim, type BudgetClaim, noAmounts } from '../../domain/budgets.ts'
import type { Plan } from '../../domain/plans.ts'
import type { RequestOpening } from '../../domain/requests.ts'
import type { Admission, Ledger } from '../../gateway/ports.ts'
import type { Clock } from '../../runtime/clock.ts'
import { minuteMs } from '../../runtime/minute-log.ts'
import { markPath, workerFolder, workersWithFolder } from '../data-folder.ts'
import { connectSqlite, databasePath } from '../sqlite/connect-sqlite.ts'
import { lockDataFolder } from '../sqlite/data-folder-lock.ts'
import type { AccountCounters, WorkerStart } from '../sqlite/sqlite-messages.ts'
import { type DatabaseThread, SqliteThread, type ThreadListener } from '../sqlite/sqlite-thread.ts'
import {
  DeliveryMarks,
  firstMark,
  joinHistories,
  type MarkRing,
  markedIdLength,
  readBootId,
  readDeliveryHistory,
} from './delivery-marks.ts'
import { denialError } from './denial-error.ts'
import { LedgerJournal } from './journal.ts'
import { LedgerUnavailable } from './ledger-unavailable.ts'
import {
  accountOf,
  type AdmissionTerms,
  type EnteredRequest,
  HeldAdmission,
  type LedgerParts,
  MemoryAdmission,
  type MeteredAccount,
} from './memory-admission.ts'
import { MemoryBudgets } from './memory-budgets.ts'
import { QuotaCalendar } from './quota-calendar.ts'
import { recoverRequests } from './recovery.ts'

/** Maximum requests in flight. Below `markCapacity`, so that no mark is overwritten while it is needed. */
const maxInFlight = 60_000
/** Accounts whose counters are in memory, in addition to those with requests in flight. */
const defaultMaxMeters = 100_000
/** How many of the oldest accounts to check when evicting one. */
const evictionEffort = 32
const defaultBusyTimeoutMs = 5000
/** Maximum accounts whose counters are being read. */
const maxLoads = 5_000
/** Of an account that is read. */
const newCounts = {
  pending: 0,
  batchPeriodId: '',
  batchUnits: 0,
  budgets: undefined,
  budgetsLoading: undefined,
  budgetsAtMs: 0,
}
/** How long a worker may take to notice that its owner has died, and to end. */
const orphanEndMs = 5_000

const startOwnThread = (start: WorkerStart, listener: ThreadListener): Promise<DatabaseThread> =>
  SqliteThread.start(start, listener)

export interface SqliteLedgerOptions {
  /** Identifies the current boot of the machine; for tests. */
  readonly bootId?: string | undefined
  /** How long the worker waits for another writing process; for tests. */
  readonly busyTimeoutMs?: number
  /** Time since the machine's boot, with its sleep, milliseconds; for simulations. */
  readonly uptimeMs?: () => number
  /** Accounts whose counters are in memory; for tests. */
  readonly maxMeters?: number
  /** Starts the thread; for tests. */
  readonly startThread?: typeof startOwnThread
  /** Called when records can no longer be written, once per outage; `reason` is a code. */
  readonly onFailing?: (reason: string) => void
  /** Called for each row that the database refused, and that was left out or settled with what is known. */
  readonly onBadRow?: (reason: string) => void
  /** Called when the writer has ended: this ledger never becomes healthy again. */
  readonly onDied?: (reason: string) => void
}

/** The ledger of one process over a data folder: decisions in memory, records on disk (contract 35.6). */
export interface SqliteLedger extends Ledger {
  prepare(accountId: string, hasClaim: boolean): Promise<void> | undefined
  /** The thread that writes the ledger and also runs other queries on the same database. */
  readonly thread: DatabaseThread
  /** Whether records can be written right now. */
  healthy(): boolean
  /** The time by which months and windows are counted: epoch milliseconds of a clock that does not jump. */
  nowMs(): number
  /** Requests that are admitted and not completely on disk. */
  readonly inFlight: number
  /** Decides like `admit`, for another process, which delivers the answer. */
  admitHeld(
    opening: RequestOpening,
    plan: Plan,
    rate?: KeyRate,
    claim?: BudgetClaim,
  ): HeldAdmission | Promise<HeldAdmission>
  /** Resolves when everything recorded so far is on disk. @throws LedgerUnavailable if that fails or takes too long */
  flush(): Promise<void>
  /**
   * Writes all pending records and releases the folder. Unsettled requests count as lost. If the writer has ended,
   * `onDied` has reported it, and the next start decides those requests. @throws LedgerUnavailable if not everything
   * could be written in time
   */
  close(): Promise<void>
}

/**
 * Locks the data folder for this process, decides the requests that an earlier one left open, and starts the writer.
 * Call `openSqlite` first: it creates the tables. @throws DataFolderInUse
 */
export async function openSqliteLedger(
  folder: string,
  clock: Clock,
  options: SqliteLedgerOptions = {},
): Promise<SqliteLedger> {
  const { busyTimeoutMs = defaultBusyTimeoutMs, startThread = startOwnThread } = options
  const bootId = 'bootId' in options ? options.bootId : readBootId()
  const ends: (() => void)[] = [lockDataFolder(folder)]
  try {
    const path = databasePath(folder)
    const recoverFrom = recover(folder, { ...options, busyTimeoutMs }, bootId)
    const marks = DeliveryMarks.create(folder, bootId)
    ends.push(() => marks.close())
    const ledger = new MemoryLedger(clock, marks, recoverFrom, options)
    await ledger.start(
      (listener) => startThread({ path, busyTimeoutMs }, listener),
      () => {
        for (const end of ends.toReversed()) end()
      },
    )
    return ledger
  } catch (error) {
    for (const end of ends.toReversed()) end()
    throw error
  }
}

/**
 * Decides the requests that an earlier process and its workers left open, before the service starts; see
 * `recoverRequests`. @throws DataFolderInUse if one of those workers still runs
 */
function recover(
  folder: string,
  { busyTimeoutMs = defaultBusyTimeoutMs, onBadRow = () => {} }: SqliteLedgerOptions,
  bootId: string | undefined,
): string {
  const workers = workersWithFolder(folder)
  const releases: (() => void)[] = []
  try {
    for (const worker of workers) releases.push(lockDataFolder(workerFolder(folder, worker), orphanEndMs))
    const histories = workers
      .filter((worker) => existsSync(markPath(workerFolder(folder, worker))))
      .map((worker) => readDeliveryHistory(workerFolder(folder, worker), bootId, firstMark(worker)))
    using database = connectSqlite(databasePath(folder), busyTimeoutMs)
    const history = joinHistories([readDeliveryHistory(folder, bootId), ...histories])
    const recoverFrom = recoverRequests(database, history, onBadRow)
    // Everything is decided: these rings would make a later history incomplete.
    for (const worker of workers) rmSync(markPath(workerFolder(folder, worker)), { force: true })
    return recoverFrom
  } finally {
    for (const release of releases) release()
  }
}

/** See `openSqliteLedger`, which opens its parts. A simulation has its own. */
export class MemoryLedger implements SqliteLedger {
  readonly #calendar: QuotaCalendar
  readonly #journal: LedgerJournal
  readonly #parts: LedgerParts
  readonly #accounts = new Map<string, MeteredAccount>()
  readonly #maxMeters: number
  /** Accounts whose counters are being read, each once. */
  readonly #loads = new Map<string, Promise<MeteredAccount>>()
  readonly #onDied: (reason: string) => void
  readonly #onBadRow: (reason: string) => void
  #thread: DatabaseThread | undefined
  #isClosed = false
  #isDead = false
  #release: () => void = () => {}

  constructor(
    clock: Clock,
    marks: MarkRing,
    recoverFrom: string,
    {
      uptimeMs,
      maxMeters = defaultMaxMeters,
      onFailing = () => {},
      onBadRow = () => {},
      onDied = () => {},
    }: SqliteLedgerOptions,
  ) {
    this.#calendar = new QuotaCalendar(clock, uptimeMs)
    this.#maxMeters = maxMeters
    this.#onDied = onDied
    this.#onBadRow = onBadRow
    this.#journal = new LedgerJournal(clock, recoverFrom, {
      onFinished: (entry) => {
        accountOf(entry).pending -= 1
      },
      onFailing,
      onVoided: (entry) => {
        const { charged } = entry.outcome!
        accountOf(entry).meter.settle(entry.periodId, 0, -charged)
      },
    })
    const readSpending = (accountId: string, sinceMs: number): Promise<readonly BucketSpending[]> =>
      this.thread.call({ type: 'spending', accountId, sinceMs })
    const budgets = new MemoryBudgets(readSpending, () => this.#calendar.nowMs())
    this.#parts = { calendar: this.#calendar, journal: this.#journal, marks, budgets }
  }

  /** `release` is called when it is closed and its thread has ended. */
  async start(startThread: (listener: ThreadListener) => Promise<DatabaseThread>, release: () => void): Promise<void> {
    this.#thread = await startThread({
      onCommitted: (number) => this.#journal.onCommitted(number),
      onFailed: (reason) => this.#journal.onFailed(reason),
      onBadRow: this.#onBadRow,
      onDied: (reason) => {
        this.#isDead = true
        this.#journal.onFailed(reason)
        this.#journal.end()
        this.#onDied(reason)
      },
    })
    this.#journal.use(this.#thread)
    this.#release = release
  }

  get thread(): DatabaseThread {
    if (this.#thread === undefined) throw new Error('the ledger was not started')
    return this.#thread
  }

  prepare(accountId: string, hasClaim: boolean): Promise<void> | undefined {
    this.#assertRecording()
    const now = this.#calendar.now()
    const known = this.#known(accountId, now)
    if (known !== undefined) return hasClaim ? this.#parts.budgets.load(known) : undefined
    return this.#load(accountId, now).then((account) => (hasClaim ? this.#parts.budgets.load(account) : undefined))
  }

  admit(opening: RequestOpening, plan: Plan, rate?: KeyRate, claim?: BudgetClaim): Admission | Promise<Admission> {
    const terms = { plan, rate, claim }
    const entered = this.#enter(opening, terms)
    if (!(entered instanceof Promise)) return new MemoryAdmission(this.#parts, entered, terms)
    return entered.then((request) => new MemoryAdmission(this.#parts, request, terms))
  }

  admitHeld(
    opening: RequestOpening,
    plan: Plan,
    rate?: KeyRate,
    claim?: BudgetClaim,
  ): HeldAdmission | Promise<HeldAdmission> {
    const terms = { plan, rate, claim }
    const entered = this.#enter(opening, terms)
    if (!(entered instanceof Promise)) return new HeldAdmission(this.#parts, entered, terms)
    return entered.then((request) => new HeldAdmission(this.#parts, request, terms))
  }

  flush(): Promise<void> {
    return this.#journal.flush()
  }

  signals(accountId: string, plan: Plan, rate?: KeyRate): UsageSignals | Promise<UsageSignals> {
    const now = this.#calendar.now()
    const account = this.#known(accountId, now) ?? this.#load(accountId, now)
    if (!(account instanceof Promise)) return account.meter.signals(now, plan, rate)
    return account.then(({ meter }) => meter.signals(this.#calendar.now(), plan, rate))
  }

  get inFlight(): number {
    return this.#journal.inFlight
  }

  nowMs(): number {
    return this.#calendar.nowMs()
  }

  healthy(): boolean {
    return this.#thread !== undefined && !this.#isClosed && this.#journal.isHealthy
  }

  async close(): Promise<void> {
    const thread = this.#thread
    if (thread === undefined || this.#isClosed) return
    this.#isClosed = true
    let isComplete = false
    let isGone = true
    try {
      if (!this.#isDead) {
        await this.#journal.flush()
        isComplete = true
      }
    } finally {
      // If nothing is in flight after a complete flush, every charged answer has been delivered: the next start has nothing to
      // decide. A request that is in flight may still be settled, and written, before the thread ends.
      const isDecided = isComplete && this.#journal.inFlight === 0
      isGone = this.#isDead || (await thread.close(isDecided ? this.#journal.recoverFrom : undefined))
      this.#journal.end()
      // A hung thread may still write, so only the end of the process releases the folder.
      if (isGone) this.#release()
    }
    if (!isGone) throw new LedgerUnavailable()
  }

  #assertRecording(): void {
    if (!this.healthy() || this.#journal.inFlight >= maxInFlight) throw new LedgerUnavailable()
  }

  /** Decides a request. @throws ServiceError, LedgerUnavailable */
  #enter(opening: RequestOpening, terms: AdmissionTerms): EnteredRequest | Promise<EnteredRequest> {
    const { plan, rate, claim } = terms
    this.#assertRecording()
    if (opening.id.length > markedIdLength) throw new RangeError('a request id is too long')
    if (claim !== undefined) assertClaim(claim)
    const now = this.#calendar.now()
    const account = this.#known(opening.accountId, now) ?? this.#load(opening.accountId, now)
    if (account instanceof Promise) return account.then(() => this.#enter(opening, terms))
    if (claim !== undefined) {
      const loading = this.#parts.budgets.load(account)
      if (loading !== undefined) return loading.then(() => this.#enter(opening, terms))
    }
    const granted = claim === undefined ? undefined : this.#parts.budgets.claim(account, claim)
    const denial = account.meter.admit(now, plan, opening, rate)
    if (denial !== undefined) {
      if (granted !== undefined) account.budgets?.settle(granted.holds, noAmounts)
      throw denialError(denial, plan, account.meter.signals(now, plan, rate))
    }
    account.pending += 1
    const entry = this.#journal.open(opening, now.wallMs, account.meter.periodId, account, granted?.holds)
    return { entry, outputTokens: granted?.outputTokens }
  }

  #known(id: string, now: Moment): MeteredAccount | undefined {
    const known = this.#accounts.get(id)
    return known?.meter.covers(now.period) ? known : undefined
  }

  /** Reads the counters of an account, once for all concurrent callers. @throws StoreUnavailable, LedgerUnavailable */
  #load(id: string, now: Moment): Promise<MeteredAccount> {
    const running = this.#loads.get(id)
    if (running !== undefined) return running
    if (this.#loads.size >= maxLoads) throw new LedgerUnavailable()
    const load = this.#read(id, now).finally(() => this.#loads.delete(id))
    this.#loads.set(id, load)
    return load
  }

  async #read(id: string, now: Moment): Promise<MeteredAccount> {
    const { usage, recent } = await this.thread.call<AccountCounters>({
      type: 'counters',
      accountId: id,
      periodId: now.period.id,
      sinceMs: Math.floor(now.wallMs - minuteMs),
    })
    const known = this.#accounts.get(id)
    if (known !== undefined) {
      // An earlier month, because the clock was set back: what is in memory counts on.
      known.meter.extend(now.period, usage)
      return known
    }
    if (this.#accounts.size >= this.#maxMeters) this.#evict(now)
    const account = { id, meter: new AccountMeter(now, recent, usage), ...newCounts }
    this.#accounts.set(id, account)
    return account
  }

  /** Evicts one account that can be read again from the store because everything about it is on disk. */
  #evict(now: Moment): void {
    let fallback: string | undefined
    let effort = 0
    for (const [id, account] of this.#accounts) {
      if (effort++ >= evictionEffort) break
      if (account.pending === 0 && account.meter.isIdle(now)) {
        this.#accounts.delete(id)
        return
      }
      if (account.pending === 0) fallback ??= id
      this.#accounts.delete(id)
      this.#accounts.set(id, account)
    }
    if (fallback !== undefined) this.#accounts.delete(fallback)
  }
}
