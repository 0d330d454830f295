import type { DatabaseSync, StatementSync } from 'node:sqlite'
import type { Timer } from '../../../src/runtime/clock.ts'
import { StoreUnavailable } from '../../../src/runtime/store-unavailable.ts'
import type { DeliveryHistory, MarkRing } from '../../../src/storage/ledger/delivery-marks.ts'
import { spendingReader } from '../../../src/storage/sqlite/budget-spending.ts'
import type { Batch } from '../../../src/storage/sqlite/ledger-batch.ts'
import { LedgerCommits } from '../../../src/storage/sqlite/ledger-commits.ts'
import type { Call, ConnectionName } from '../../../src/storage/sqlite/sqlite-messages.ts'
import { SqliteStatements } from '../../../src/storage/sqlite/sqlite-statements.ts'
import type { DatabaseThread, ThreadListener } from '../../../src/storage/sqlite/sqlite-thread.ts'
import type { Dice } from '../dice.ts'
import type { ProcessClock } from './process-clock.ts'
import { RewindingDatabase } from './rewinding-database.ts'
import type { Timeline } from './timeline.ts'

/** As in `SqliteThread`. */
const answerLimitMs = 5_000
/** How long a failed commit waits before it is tried again. */
const retryMs = 50
/** How long the end of the thread is awaited before it is terminated, as by the real one. */
const closeTimeoutMs = 10_000

/** How the disk works at the moment. `failing`: every write and read is an error. `hung`: nothing is answered. */
export type DiskState = 'fast' | 'slow' | 'failing' | 'hung'

/** A disk full, as SQLite reports it. */
class DiskFull extends StoreUnavailable {
  readonly code = 'ERR_SQLITE_ERROR'
  readonly errcode = 13
}

/**
 * What outlives a process: the database, and the delivery marks of the page cache. Each write of the database is one
 * event: it is on disk as a whole or, if the process or the machine ends before, not at all.
 */
export class Disk {
  readonly database: DatabaseSync
  readonly readSpending: ReturnType<typeof spendingReader>
  #onState: () => void = () => {}
  #state: DiskState = 'fast'
  readonly #statements: SqliteStatements
  readonly #search: StatementSync
  #marks: string[] = []
  /** Whether every mark since the last start is still known: not after a crash of the machine. */
  #isComplete = true

  /** `nowMs`: the time of the database, epoch milliseconds. */
  constructor(content: Uint8Array, nowMs: () => number) {
    const { database, statements, search, readSpending, rewind } = (opened ??= openDatabase(content))
    rewind()
    clock.nowMs = nowMs
    this.database = database
    this.readSpending = readSpending
    this.#statements = statements
    this.#search = search
  }

  get state(): DiskState {
    return this.#state
  }

  set state(state: DiskState) {
    this.#state = state
    this.#onState()
  }

  /** `run` is called when the disk works differently. */
  onState(run: () => void): void {
    this.#onState = run
  }

  get statements(): SqliteStatements {
    return this.#statements
  }

  /** The rows of all tables that contain one of two texts, as text. */
  rowsWith(one: string, other: string): string[] {
    return this.#search.all({ one, other }).map(({ text }) => String(text))
  }

  /** What the last process left, for the next one; a new ring begins. */
  takeMarks(): DeliveryHistory {
    const history = { complete: this.#isComplete, ids: new Set(this.#marks), next: [this.#marks.length + 1] }
    this.#marks = []
    this.#isComplete = true
    return history
  }

  /** The ring of the process that starts now: an instance of a class, because V8 holds the getters of object literals until it collects its old generation. */
  get marks(): MarkRing {
    return new Marks(this.#marks, () => this.state === 'failing')
  }

  /** The process ended: a transaction that it began is gone. After a crash of the machine, marks may be, too. */
  crash(what: 'process' | 'machine', dice: Dice): void {
    this.#statements.rollback()
    if (what === 'process') return
    this.#marks = this.#marks.filter(() => dice.chance(0.5))
    this.#isComplete = false
  }
}

class Marks implements MarkRing {
  readonly #marks: string[]
  readonly #isFailing: () => boolean

  constructor(marks: string[], isFailing: () => boolean) {
    this.#marks = marks
    this.#isFailing = isFailing
  }

  get next(): number {
    return this.#marks.length + 1
  }

  add(requestId: string): void {
    if (this.#isFailing()) throw new DiskFull('the disk is full')
    this.#marks.push(requestId)
  }
}

interface OpenDatabase {
  readonly database: DatabaseSync
  readonly statements: SqliteStatements
  /** Finds the rows of all tables that contain one of two texts: the database's file lacks what a schedule has written. */
  readonly search: StatementSync
  readonly readSpending: ReturnType<typeof spendingReader>
  readonly rewind: () => void
}

/** Of the current schedule. */
const clock = { nowMs: (): number => 0 }

/** One database for all schedules of this process, one after another: opening one costs more than most schedules. */
let opened: OpenDatabase | undefined

function openDatabase(content: Uint8Array): OpenDatabase {
  const { database, rewind } = RewindingDatabase.open(content)
  // SQLite's own function asks the machine.
  database.function('unixepoch', { varargs: true }, () => clock.nowMs() / 1_000)
  const statements = new SqliteStatements(database)
  return { database, statements, search: prepareSearch(database), readSpending: spendingReader(database), rewind }
}

/** SQLite compares, so that hardly any row becomes an object. */
function prepareSearch(database: DatabaseSync): StatementSync {
  const tables = database.prepare("select name from sqlite_master where type = 'table'").all()
  const searches = tables.map(({ name }) => {
    const columns = database.prepare(`select name from pragma_table_info('${String(name)}')`).all()
    const text = `concat_ws(' ', ${columns.map((column) => `"${String(column['name'])}"`).join(', ')})`
    return `select ${text} as text from "${String(name)}" where instr(${text}, $one) or instr(${text}, $other)`
  })
  return database.prepare(searches.join(' union all '))
}

interface Waiting {
  readonly call: Call
  readonly expiresAtMs: number
  readonly settle: ((error: Error | undefined, value?: unknown) => void) | undefined
}

/** Stands in for the database thread: the same statements in the same order, at simulated times. */
export class SimulatedThread implements DatabaseThread {
  readonly #disk: Disk
  readonly #timeline: Timeline
  readonly #clock: ProcessClock
  readonly #dice: Dice
  readonly #listener: ThreadListener
  readonly #commits: LedgerCommits
  /** As the text that is sent to the real thread. */
  readonly #batches: string[] = []
  readonly #calls: Waiting[] = []
  #isBusy = false
  #overdue = 0
  #unanswered = 0
  /** The connection whose transaction is open. */
  #owner: ConnectionName | undefined
  /** Statements so far that may have changed the database. */
  #writes = 0
  #isClosing = false
  #hasEnded = false
  #onIdle: (() => void) | undefined
  /** What it has said and the process has not heard yet. */
  #reports = 0
  #onReported: (() => void) | undefined

  constructor(
    { disk, timeline, dice }: { readonly disk: Disk; readonly timeline: Timeline; readonly dice: Dice },
    clock: ProcessClock,
    listener: ThreadListener,
  ) {
    this.#disk = disk
    this.#timeline = timeline
    this.#clock = clock
    this.#dice = dice
    this.#listener = listener
    disk.onState(() => this.#pump())
    this.#commits = new LedgerCommits(
      disk.database,
      0,
      (message) => {
        if (message.type !== 'committed') throw new Error(`the ledger's commit ended as ${JSON.stringify(message)}`)
        const { number } = message
        this.#report(() => this.#listener.onCommitted(number))
      },
      () => {},
    )
  }

  get waitingCalls(): number {
    return this.#unanswered
  }

  /** Asked again while this is the same number, every question has the same answer. undefined: a call would wait or fail. */
  get unchangedSince(): number | undefined {
    const isIdle = !this.#isBusy && !this.#isClosing && this.#unanswered === 0 && this.#owner === undefined
    return isIdle && this.#batches.length === 0 && this.#disk.state === 'fast' ? this.#writes : undefined
  }

  post(batch: Batch): void {
    if (this.#hasEnded) return
    this.#batches.push(JSON.stringify(batch))
    this.#pump()
  }

  call<Value>(call: Call): Promise<Value> {
    if (this.#isClosing) throw new StoreUnavailable('the database thread has ended')
    if (this.#overdue > 0) throw new StoreUnavailable('the database does not answer')
    this.#unanswered += 1
    return new Promise((resolve, reject) => {
      let isOverdue = false
      const limit: Timer = this.#clock.after(answerLimitMs, () => {
        isOverdue = true
        this.#overdue += 1
        reject(new StoreUnavailable('the database does not answer'))
      })
      const settle = (error: Error | undefined, value?: unknown): void => {
        this.#unanswered -= 1
        limit.cancel()
        if (isOverdue) this.#overdue -= 1
        else if (error === undefined) resolve(value as Value)
        else reject(error)
      }
      this.#calls.push({ call, expiresAtMs: this.#timeline.nowMs + answerLimitMs, settle })
      this.#pump()
    })
  }

  send(call: Call): void {
    this.#calls.push({ call, expiresAtMs: Number.POSITIVE_INFINITY, settle: undefined })
    this.#pump()
  }

  async close(finishFrom: string | undefined): Promise<boolean> {
    this.#isClosing = true
    if (this.#isBusy)
      await new Promise<void>((resolve) => {
        this.#onIdle = resolve
        this.#timeline.after(closeTimeoutMs, () => {
          // It is terminated: what is not written is lost.
          this.#hasEnded = true
          resolve()
        })
      })
    if (this.#hasEnded) return true
    this.#hasEnded = true
    if (finishFrom !== undefined)
      this.#disk.database
        .prepare('update requests set due_mark = null where id >= ? and due_mark is not null')
        .run(finishFrom)
    // The process hears everything else before it hears of the end.
    if (this.#reports > 0) await new Promise<void>((resolve) => (this.#onReported = resolve))
    return true
  }

  #pump(): void {
    if (this.#isBusy || this.#hasEnded || this.#clock.isDead || this.#disk.state === 'hung') return
    const isBlocked = this.#owner !== undefined
    const isCommit = this.#batches.length > 0 && !isBlocked
    const at = this.#calls.findIndex(({ call }) => !isBlocked || connectionOf(call) === this.#owner)
    if (!isCommit && at < 0) {
      this.#onIdle?.()
      return
    }
    this.#isBusy = true
    this.#timeline.after(this.#durationMs(), () => {
      if (this.#hasEnded || this.#clock.isDead) return
      this.#isBusy = false
      if (isCommit) this.#commit()
      else this.#run(this.#calls.splice(at, 1)[0]!)
      this.#pump()
    })
  }

  #durationMs(): number {
    return this.#disk.state === 'slow' ? this.#dice.ms(400) : this.#dice.between(0.1, 1.5)
  }

  #commit(): void {
    if (this.#disk.state === 'failing') {
      this.#report(() => this.#listener.onFailed('disk_full'))
      this.#isBusy = true
      this.#timeline.after(retryMs, () => {
        this.#isBusy = false
        this.#pump()
      })
      return
    }
    for (const batch of this.#batches.splice(0)) this.#commits.add(batch)
    this.#commits.write()
  }

  #run({ call, expiresAtMs, settle }: Waiting): void {
    let value: unknown
    let failure: Error | undefined
    try {
      if (this.#disk.state === 'failing' && call.type !== 'rollback') this.#failStatement()
      if (this.#timeline.nowMs > expiresAtMs) throw new StoreUnavailable('the call arrived after its time limit')
      value = this.#answer(call)
    } catch (error) {
      failure = error as Error
    }
    if (call.type === 'execute' || call.type === 'rollback')
      this.#owner = this.#disk.database.isTransaction ? (this.#owner ?? call.connection) : undefined
    if (settle !== undefined) this.#report(() => settle(failure, value))
  }

  /** Sometimes SQLite rolls back by itself. A rollback needs no disk. */
  #failStatement(): never {
    if (this.#dice.chance(0.5)) this.#disk.statements.rollback()
    throw new DiskFull('the disk is full')
  }

  #answer(call: Call): unknown {
    const { statements } = this.#disk
    if (call.type === 'execute') {
      if (!call.sql.startsWith('select')) this.#writes += 1
      return statements.execute(call.sql, call.parameters)
    }
    if (call.type === 'rollback') return statements.rollback()
    if (call.type === 'prove') return undefined
    if (call.type === 'spending') return this.#disk.readSpending(call.accountId, call.sinceMs)
    const { accountId, periodId, sinceMs } = call
    const usage = statements.execute('select period_id, used from usage where account_id = ? and period_id >= ?', [
      accountId,
      periodId,
    ])
    const recent = statements.execute(
      'select admitted_at_ms, key_id from requests where account_id = ? and admitted_at_ms > ?',
      [accountId, sinceMs],
    )
    return {
      usage: usage.rows.map((row) => {
        const { period_id: id, used } = row as Record<string, unknown>
        return { periodId: String(id), used: Number(used) }
      }),
      recent: recent.rows.map((row) => {
        const { admitted_at_ms: atMs, key_id: keyId } = row as Record<string, unknown>
        return { atMs: Number(atMs), keyId: String(keyId) }
      }),
    }
  }

  /** What the thread says reaches the process later, unless the process ends before: then it is done and unknown. */
  #report(run: () => void): void {
    this.#reports += 1
    const heard = (): void => {
      this.#reports -= 1
      run()
      if (this.#reports === 0) this.#onReported?.()
    }
    this.#timeline.after(this.#dice.between(0.02, 0.5), () => this.#clock.deliver(heard))
  }
}

function connectionOf(call: Call): ConnectionName | undefined {
  return call.type === 'execute' || call.type === 'rollback' ? call.connection : undefined
}
