import type { DatabaseSync, StatementSync } from 'node:sqlite'
import type { Clock } from '../domain/clock.ts'
import type { Plan } from '../domain/plans.ts'
import type { RequestOpening, RequestOutcome } from '../domain/requests.ts'
import { minuteMs } from '../domain/minute-log.ts'
import { AccountMeter, type KeyRate, type Moment, type UsageSignals } from '../domain/usage.ts'
import type { Admission, Delivery, Ledger } from '../gateway/ports.ts'
import { connectSqlite } from './connect-sqlite.ts'
import { lockDataFolder } from './data-folder-lock.ts'
import { DeliveryMarks, markedIdLength, readBootId, readDeliveryHistory } from './delivery-marks.ts'
import { LedgerJournal } from './ledger-journal.ts'
import type { ChargedAccount, JournalEntry } from './ledger-records.ts'
import { recoverRequests } from './ledger-recovery.ts'
import { refusalError } from './ledger-refusal.ts'
import { LedgerUnavailable } from './ledger-unavailable.ts'
import { LedgerWriter } from './ledger-writer.ts'
import { databasePath } from './open-sqlite.ts'
import { QuotaCalendar } from './quota-calendar.ts'

/** Requests under way at once. Below `markCapacity`, so that the mark of none of them is overwritten before it is needed. */
const maxInFlight = 60_000
/** Accounts whose counters are in memory, besides those with requests under way. */
const defaultMaxMeters = 100_000
/** How many of the oldest are looked at to make room for one. */
const evictionEffort = 32
const defaultBusyTimeoutMs = 5000

export interface SqliteLedgerOptions {
  /** What tells this run of the machine from others; for tests. */
  readonly bootId?: string | undefined
  /** How long the worker waits for another process that writes; for tests. */
  readonly busyTimeoutMs?: number
  /** Accounts whose counters are in memory; for tests. */
  readonly maxMeters?: number
  /** Told when records cannot be written any more, once until they can be again; `reason` is a code. */
  readonly onFailing?: (reason: string) => void
  /** Told when the writer is gone: this ledger never becomes healthy again. */
  readonly onDied?: (reason: string) => void
}

/** The ledger of one process over a data folder: decisions in memory, records on disk (architecture 5.5). */
export interface SqliteLedger extends Ledger {
  admit(opening: RequestOpening, plan: Plan, rate?: KeyRate): Admission
  signals(accountId: string, plan: Plan, rate?: KeyRate): UsageSignals
  /** Whether records can be written just now. */
  healthy(): boolean
  /**
   * Writes everything that was said, and gives the folder back. Requests that are not settled count as lost. Of a writer
   * that is gone `onDied` told: the next start decides what it left.
   * @throws LedgerUnavailable where not everything could be written in time
   */
  close(): Promise<void>
}

/**
 * Takes the data folder for this process, decides what an earlier one left open, and starts the writer. The database
 * must have been opened before with `openSqlite`, which makes its tables.
 * @throws DataFolderInUse
 */
export async function openSqliteLedger(
  folder: string,
  clock: Clock,
  options: SqliteLedgerOptions = {},
): Promise<SqliteLedger> {
  const { busyTimeoutMs = defaultBusyTimeoutMs } = options
  const bootId = 'bootId' in options ? options.bootId : readBootId()
  const ends: (() => void)[] = [lockDataFolder(folder)]
  try {
    const path = databasePath(folder)
    const database = connectSqlite(path, busyTimeoutMs)
    ends.push(() => database.close())
    const recoverFrom = recoverRequests(database, readDeliveryHistory(folder, bootId))
    const marks = DeliveryMarks.create(folder, bootId)
    ends.push(() => marks.close())
    const ledger = new MemoryLedger(clock, database, marks, recoverFrom, options)
    await ledger.start(path, busyTimeoutMs, () => {
      for (const end of ends.toReversed()) end()
    })
    return ledger
  } catch (error) {
    for (const end of ends.toReversed()) end()
    throw error
  }
}

/** One account's counters, and how many of its requests are not completely on disk. */
interface MeteredAccount extends ChargedAccount {
  readonly meter: AccountMeter
  pending: number
}

class MemoryLedger implements SqliteLedger {
  readonly #calendar: QuotaCalendar
  readonly #marks: DeliveryMarks
  readonly #journal: LedgerJournal
  readonly #accounts = new Map<string, MeteredAccount>()
  readonly #maxMeters: number
  readonly #readUsed: StatementSync
  readonly #readRecent: StatementSync
  readonly #finishAll: StatementSync
  readonly #onDied: (reason: string) => void
  #writer: LedgerWriter | undefined
  #isDead = false
  #release: () => void = () => {}

  constructor(
    clock: Clock,
    database: DatabaseSync,
    marks: DeliveryMarks,
    recoverFrom: string,
    { maxMeters = defaultMaxMeters, onFailing = () => {}, onDied = () => {} }: SqliteLedgerOptions,
  ) {
    this.#calendar = new QuotaCalendar(clock)
    this.#maxMeters = maxMeters
    this.#onDied = onDied
    this.#marks = marks
    this.#readUsed = database.prepare('select used from usage where account_id = ? and period_id = ?')
    this.#readRecent = database.prepare(
      'select admitted_at_ms, key_id from requests where account_id = ? and admitted_at_ms > ?',
    )
    this.#finishAll = database.prepare('update requests set due_mark = null where id >= ? and due_mark is not null')
    this.#journal = new LedgerJournal(clock, recoverFrom, {
      onFinished: (entry) => {
        accountOf(entry).pending -= 1
      },
      onFailing,
      onVoided: (entry) => {
        const { charged } = entry.outcome!
        accountOf(entry).meter.settle(this.#calendar.now(), entry.periodId, 0, -charged)
      },
    })
  }

  async start(path: string, busyTimeoutMs: number, release: () => void): Promise<void> {
    this.#writer = await LedgerWriter.start(
      { path, busyTimeoutMs },
      {
        onCommitted: (number) => this.#journal.onCommitted(number),
        onFailed: (reason) => this.#journal.onFailed(reason),
        onDied: (reason) => {
          this.#isDead = true
          this.#journal.onFailed(reason)
          this.#journal.end()
          this.#onDied(reason)
        },
      },
    )
    this.#journal.use(this.#writer)
    this.#release = release
  }

  admit(opening: RequestOpening, plan: Plan, rate?: KeyRate): Admission {
    if (!this.healthy() || this.#journal.inFlight >= maxInFlight) throw new LedgerUnavailable()
    if (opening.id.length > markedIdLength) throw new RangeError('a request id is too long')
    const now = this.#calendar.now()
    const account = this.#account(opening.accountId, now)
    const refusal = account.meter.admit(now, plan, opening, rate)
    if (refusal !== undefined) throw refusalError(refusal, plan, account.meter.signals(now, plan))
    account.pending += 1
    const entry = this.#journal.open(opening, now.wallMs, account.meter.periodId, account)
    return new MemoryAdmission(entry, plan, rate, this.#calendar, this.#marks, this.#journal)
  }

  signals(accountId: string, plan: Plan, rate?: KeyRate): UsageSignals {
    const now = this.#calendar.now()
    return this.#account(accountId, now).meter.signals(now, plan, rate)
  }

  healthy(): boolean {
    return this.#writer !== undefined && this.#journal.isHealthy
  }

  async close(): Promise<void> {
    const writer = this.#writer
    if (writer === undefined) return
    this.#writer = undefined
    let isComplete = false
    let isGone = true
    try {
      if (!this.#isDead) {
        await this.#journal.flush()
        isComplete = true
      }
    } finally {
      isGone = this.#isDead || (await writer.close())
      this.#journal.end()
      // Every answer that was due has left: the next start has nothing to decide.
      if (isComplete && isGone) this.#finishAll.run(this.#journal.recoverFrom)
      // What hangs may still write: then the folder is given back by the end of the process alone.
      if (isGone) this.#release()
    }
    if (!isGone) throw new LedgerUnavailable()
  }

  #account(id: string, now: Moment): MeteredAccount {
    const known = this.#accounts.get(id)
    if (known?.meter.covers(now.period)) return known
    if (this.#accounts.size >= this.#maxMeters) this.#evict(now)
    const used = Number(this.#readUsed.get(id, now.period.id)?.used ?? 0)
    const recent = this.#readRecent.all(id, Math.floor(now.wallMs - minuteMs))
    const meter = new AccountMeter(
      now,
      recent.map((row) => ({ atMs: Number(row.admitted_at_ms), keyId: String(row.key_id) })),
      used,
    )
    const account = { id, meter, pending: 0, batchPeriodId: '', batchUnits: 0 }
    this.#accounts.set(id, account)
    return account
  }

  /** Forgets one account that can be read again from the store: everything about it is on disk. */
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

class MemoryAdmission implements Admission {
  readonly #entry: JournalEntry
  readonly #plan: Plan
  readonly #rate: KeyRate | undefined
  readonly #calendar: QuotaCalendar
  readonly #marks: DeliveryMarks
  readonly #journal: LedgerJournal
  #isDelivered = false

  constructor(
    entry: JournalEntry,
    plan: Plan,
    rate: KeyRate | undefined,
    calendar: QuotaCalendar,
    marks: DeliveryMarks,
    journal: LedgerJournal,
  ) {
    this.#entry = entry
    this.#plan = plan
    this.#rate = rate
    this.#calendar = calendar
    this.#marks = marks
    this.#journal = journal
  }

  signals(): UsageSignals {
    return accountOf(this.#entry).meter.signals(this.#calendar.now(), this.#plan, this.#rate)
  }

  durable(): Promise<void> | undefined {
    return this.#journal.durable(this.#entry)
  }

  deliver(): void {
    const entry = this.#entry
    if (this.#isDelivered) return
    if (entry.isVoid || !entry.batch.isDurable) throw new LedgerUnavailable()
    this.#marks.add(entry.opening.id)
    this.#isDelivered = true
    // A whole answer is settled at once; of a stream the disk should know before its mark is overwritten.
    if (entry.opening.stream && entry.outcome === undefined) this.#journal.markDelivered(entry)
  }

  settle(outcome: RequestOutcome, delivery: Delivery): void {
    const entry = this.#entry
    if (entry.outcome !== undefined) throw new Error('a request was settled twice')
    const { opening, periodId } = entry
    accountOf(entry).meter.settle(this.#calendar.now(), periodId, opening.units, outcome.charged)
    const isDue = delivery === 'due' && outcome.charged > 0
    this.#journal.settle(entry, outcome, isDue ? this.#marks.next : null)
  }
}

function accountOf(entry: JournalEntry): MeteredAccount {
  return entry.account as MeteredAccount
}
