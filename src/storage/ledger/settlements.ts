import { type Kysely, sql } from 'kysely'
import type { Amounts } from '../../domain/budgets.ts'
import type { RequestOutcome } from '../../domain/requests.ts'
import type { Clock } from '../../runtime/clock.ts'
import { pause } from '../../runtime/pause.ts'
import { outcomeColumns } from '../requests.ts'
import type { Tables } from '../schema/schema.ts'
import { LedgerUnavailable } from './ledger-unavailable.ts'
import { rowFaultOf } from './row-fault.ts'

/** Settlements that wait; beyond it nothing more is admitted. */
const maxWaiting = 60_000
const maxBatch = 500
/** Settlements are written together if they arrive within this time: nothing waits for them. */
const gatherMs = 20
const firstRetryMs = 50
const longestRetryMs = 2_000
const closeTimeoutMs = 10_000
/** How long a request waits for what earlier ones of its account release. */
const releaseLimitMs = 1_000

/** How a request ends in the database. */
export interface Settlement {
  readonly id: string
  readonly state: 'done' | 'lost'
  readonly outcome: RequestOutcome
  /** What its budgets lose, or `unknown`; absent if none apply to it. */
  readonly spent?: Amounts | 'unknown' | undefined
  /** The account whose budgets this releases, if they are known here. */
  readonly accountId?: string
}

interface SettlementListener {
  /** The outcome of this request is in the database. */
  readonly onWritten: (id: string) => void
  /** Outcomes cannot be written, and are tried again: called once until a write succeeds. */
  readonly onFailed: (error: unknown) => void
  /** The database refused an outcome, which was settled with what is known. */
  readonly onBadRow: (reason: string) => void
}

/** Writes outcomes to PostgreSQL in the background, in batches, and retries each batch until it succeeds. */
export class SettlementQueue {
  readonly #db: Kysely<Tables>
  readonly #clock: Clock
  readonly #listener: SettlementListener
  readonly #waiting: Settlement[] = []
  #running: Promise<void> | undefined
  #isFailing = false
  #isClosing = false
  /** How many were written so far, and who waits for how many. */
  #written = 0
  #awaited: { readonly writtenAt: number; readonly resolve: () => void }[] = []
  #giveUpAtMs = Infinity

  constructor(db: Kysely<Tables>, clock: Clock, listener: SettlementListener) {
    this.#db = db
    this.#clock = clock
    this.#listener = listener
  }

  get isFull(): boolean {
    return this.#waiting.length >= maxWaiting
  }

  /** False from a failed write until the next successful one. */
  get isHealthy(): boolean {
    return !this.#isFailing
  }

  /** How many were written so far. */
  get written(): number {
    return this.#written
  }

  add(settlement: Settlement): void {
    this.#waiting.push(settlement)
    this.#running ??= this.#run().finally(() => {
      this.#running = undefined
    })
  }

  /**
   * Resolves when what this account's budgets have to get back is written, or could not be; undefined if nothing waits.
   */
  releasing(accountId: string): Promise<void> | undefined {
    const last = this.#waiting.findLastIndex((settlement) => settlement.accountId === accountId)
    if (last < 0) return undefined
    const writtenAt = this.#written + last + 1
    return new Promise((done) => {
      const limit = this.#clock.after(releaseLimitMs, done)
      const resolve = (): void => {
        limit.cancel()
        done()
      }
      this.#awaited.push({ writtenAt, resolve })
    })
  }

  /** Resolves when everything is written. @throws LedgerUnavailable if that takes too long */
  async close(): Promise<void> {
    this.#isClosing = true
    this.#giveUpAtMs = this.#clock.monotonicMs() + closeTimeoutMs
    await this.#running
    if (this.#waiting.length > 0) throw new LedgerUnavailable()
  }

  async #run(): Promise<void> {
    let retryMs = 0
    while (this.#waiting.length > 0) {
      if (retryMs > 0) await pause(this.#clock, retryMs)
      else if (!this.#isClosing && this.#waiting.length < maxBatch) await pause(this.#clock, gatherMs)
      const batch = this.#waiting.slice(0, maxBatch)
      try {
        await writeSettlements(this.#db, batch, this.#listener.onBadRow)
        this.#waiting.splice(0, batch.length)
        this.#written += batch.length
        this.#release(this.#written)
        for (const { id } of batch) this.#listener.onWritten(id)
        this.#isFailing = false
        retryMs = 0
      } catch (error) {
        if (!this.#isFailing) this.#listener.onFailed(error)
        this.#isFailing = true
        this.#release(Infinity)
        if (this.#clock.monotonicMs() >= this.#giveUpAtMs) return
        retryMs = Math.min(longestRetryMs, Math.max(firstRetryMs, retryMs * 2))
      }
    }
  }

  #release(written: number): void {
    for (const { writtenAt, resolve } of this.#awaited) if (writtenAt <= written) resolve()
    this.#awaited = this.#awaited.filter(({ writtenAt }) => writtenAt > written)
  }
}

/**
 * Safe to repeat: a request ends once, and its unused units are refunded in the same transaction. If the database refuses a
 * row, each request is settled by itself, and that one with everything that it held (contract 46.19).
 */
export async function writeSettlements(
  db: Kysely<Tables>,
  settlements: readonly Settlement[],
  onBadRow: (reason: string) => void = () => {},
): Promise<void> {
  try {
    return await writeTogether(db, settlements)
  } catch (error) {
    const reason = rowFaultOf(error)
    if (reason === undefined) throw error
    if (settlements.length === 1) {
      onBadRow(reason)
      return await settleBadRow(db, settlements[0]!)
    }
  }
  for (const settlement of settlements) await writeSettlements(db, [settlement], onBadRow)
}

async function settleBadRow(db: Kysely<Tables>, { id, state, outcome: { charged }, spent }: Settlement): Promise<void> {
  const settlement: Settlement = { id, state, outcome: { charged, attempts: [], totalMs: 0 } }
  try {
    await writeTogether(db, [spent === undefined ? settlement : { ...settlement, spent: 'unknown' }])
  } catch (again) {
    if (rowFaultOf(again) === undefined) throw again
    // What it holds cannot be read: the request ends without it.
    await sql`update requests set holds = null where id = ${id}`.execute(db)
    await writeTogether(db, [settlement]).catch((last: unknown) => {
      if (rowFaultOf(last) === undefined) throw last
    })
  }
}

async function writeTogether(db: Kysely<Tables>, settlements: readonly Settlement[]): Promise<void> {
  const rows = settlements.map(({ id, state, outcome }) => ({ id, state, ...outcomeColumns(outcome) }))
  const spendings = settlements.flatMap(({ id, spent }) => (spent === undefined ? [] : spendingJson(id, spent)))
  if (spendings.length === 0) await sql`select svc_router_settle_3(${JSON.stringify(rows)}::jsonb)`.execute(db)
  else
    await sql`select svc_router_settle_3(${JSON.stringify(rows)}::jsonb),
      svc_router_book_1(${JSON.stringify(spendings)}::jsonb)`.execute(db)
}

/** What a request spent as `svc_router_book_1` reads it. */
function spendingJson(id: string, spent: Amounts | 'unknown') {
  return spent === 'unknown'
    ? { id, nano_usd: null, tokens: null }
    : { id, nano_usd: spent.nanoUsd, tokens: spent.tokens }
}
