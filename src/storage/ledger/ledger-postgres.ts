import { type Kysely, sql } from 'kysely'
import { AccountMeter, type KeyRate, type Moment, momentAt, type UsageSignals } from '../../domain/account-meter.ts'
import type { Plan } from '../../domain/plans.ts'
import type { RequestOpening, RequestOutcome } from '../../domain/requests.ts'
import type { Admission, Ledger } from '../../gateway/ports.ts'
import { minuteMs } from '../../runtime/minute-log.ts'
import type { Tables } from '../schema/schema.ts'
import { denialError } from './denial-error.ts'
import { LedgerUnavailable } from './ledger-unavailable.ts'
import { SettlementQueue } from './settlements.ts'

/** Maximum admissions of one account that are decided in one transaction. */
const maxGroup = 200
/** Maximum requests of this node that wait for a decision. */
const maxWaiting = 20_000
/** Separates our advisory locks from those of other programs that use the same database. */
const lockSeed = 7_308_413

/**
 * The ledger of any number of nodes on one PostgreSQL database, which decides one account at a time (contract 35.6).
 */
export interface PostgresLedger extends Ledger {
  admit(opening: RequestOpening, plan: Plan, rate?: KeyRate): Promise<Admission>
  signals(accountId: string, plan: Plan, rate?: KeyRate): Promise<UsageSignals>
  /** Whether the last write succeeded. */
  healthy(): boolean
  /** Writes all waiting settlements. Does not close the database. */
  close(): Promise<void>
}

/** Creates the ledger on a database opened with `openPostgres`. */
export function createPostgresLedger(db: Kysely<Tables>): PostgresLedger {
  return new DatabaseLedger(db)
}

interface Waiting {
  readonly opening: RequestOpening
  readonly plan: Plan
  readonly rate: KeyRate | undefined
  readonly resolve: (admission: Admission) => void
  readonly reject: (error: unknown) => void
}

interface Counters {
  readonly now: Moment
  readonly meter: AccountMeter
}

class DatabaseLedger implements PostgresLedger {
  readonly #db: Kysely<Tables>
  readonly #settlements: SettlementQueue
  /** By account: requests that wait for the running transaction to end. */
  readonly #waiting = new Map<string, Waiting[]>()
  #waitingCount = 0
  #isHealthy = true
  #isClosed = false

  constructor(db: Kysely<Tables>) {
    this.#db = db
    this.#settlements = new SettlementQueue(db)
  }

  admit(opening: RequestOpening, plan: Plan, rate?: KeyRate): Promise<Admission> {
    if (this.#isClosed || this.#settlements.isFull || this.#waitingCount >= maxWaiting) {
      return Promise.reject(new LedgerUnavailable())
    }
    this.#waitingCount += 1
    return new Promise((resolve, reject) => {
      const waiting = { opening, plan, rate, resolve, reject }
      const line = this.#waiting.get(opening.accountId)
      if (line !== undefined) {
        line.push(waiting)
        return
      }
      this.#waiting.set(opening.accountId, [waiting])
      void this.#serve(opening.accountId)
    })
  }

  async signals(accountId: string, plan: Plan, rate?: KeyRate): Promise<UsageSignals> {
    const { now, meter } = await readCounters(this.#db, accountId, plan.requestsPerMinute, rate !== undefined)
    return meter.signals(now, plan, rate)
  }

  healthy(): boolean {
    return !this.#isClosed && this.#isHealthy && this.#settlements.isHealthy
  }

  async close(): Promise<void> {
    this.#isClosed = true
    await this.#settlements.close()
  }

  /** Decides the waiting admissions of an account, one group after another, until none are left. */
  async #serve(accountId: string): Promise<void> {
    for (;;) {
      const line = this.#waiting.get(accountId) ?? []
      const group = line.splice(0, maxGroup)
      if (group.length === 0) {
        this.#waiting.delete(accountId)
        return
      }
      this.#waitingCount -= group.length
      try {
        const decisions = await this.#decide(accountId, group)
        this.#isHealthy = true
        for (const [index, { resolve, reject }] of group.entries()) {
          const decision = decisions[index]!
          if (decision instanceof Error) reject(decision)
          else resolve(decision)
        }
      } catch (error) {
        this.#isHealthy = false
        const unavailable = new LedgerUnavailable(error)
        for (const { reject } of group) reject(unavailable)
      }
    }
  }

  #decide(accountId: string, group: readonly Waiting[]): Promise<readonly (Admission | Error)[]> {
    return this.#db.transaction().execute(async (transaction) => {
      // A separate statement: later ones see everything that earlier holders of the lock committed, and read the time
      // after the wait.
      await sql`select pg_advisory_xact_lock(hashtextextended(${accountId}, ${lockSeed}))`.execute(transaction)
      const limit = Math.max(...group.map(({ plan }) => plan.requestsPerMinute))
      const byKey = group.some(({ rate }) => rate !== undefined)
      const { now, meter } = await readCounters(transaction, accountId, limit, byKey)
      const admitted: RequestOpening[] = []
      const decisions = group.map(({ opening, plan, rate }) => {
        const denial = meter.admit(now, plan, opening, rate)
        if (denial !== undefined) return denialError(denial, plan, meter.signals(now, plan))
        admitted.push(opening)
        return new DatabaseAdmission(opening.id, meter.signals(now, plan, rate), this.#settlements)
      })
      if (admitted.length === 0) return decisions
      const periodId = meter.periodId
      await transaction
        .insertInto('requests')
        .values(
          admitted.map((opening) => ({
            id: opening.id,
            account_id: accountId,
            key_id: opening.keyId,
            profile: opening.profile,
            format: opening.format,
            stream: opening.stream ? 1 : 0,
            units: opening.units,
            period_id: periodId,
            // Rounded up, so that the minute never becomes shorter.
            admitted_at_ms: Math.ceil(now.wallMs),
            state: 'open',
            charged: 0,
          })),
        )
        .execute()
      // Charged now and refunded at settlement: units charged by a node that dies stay charged.
      const units = admitted.reduce((sum, opening) => sum + opening.units, 0)
      await transaction
        .insertInto('usage')
        .values({ account_id: accountId, period_id: periodId, used: units })
        .onConflict((conflict) =>
          conflict.columns(['account_id', 'period_id']).doUpdateSet((row) => ({
            used: row('usage.used', '+', row.ref('excluded.used')),
          })),
        )
        .execute()
      return decisions
    })
  }
}

class DatabaseAdmission implements Admission {
  readonly #id: string
  readonly #signals: UsageSignals
  readonly #settlements: SettlementQueue
  #isSettled = false

  constructor(id: string, signals: UsageSignals, settlements: SettlementQueue) {
    this.#id = id
    this.#signals = signals
    this.#settlements = settlements
  }

  /** The values at the time of admission. */
  signals(): UsageSignals {
    return this.#signals
  }

  /** The charge was on disk before this admission was returned. */
  durable(): undefined {
    return undefined
  }

  deliver(): void {}

  settle(outcome: RequestOutcome): void {
    if (this.#isSettled) throw new Error('a request was settled twice')
    this.#isSettled = true
    this.#settlements.add(this.#id, outcome)
  }
}

/**
 * An account's counters by the database's clock. `limit` admissions of the last minute are enough: if there are more,
 * nothing is admitted until only that many are left. `byKey` also returns the key of each.
 */
async function readCounters(db: Kysely<Tables>, accountId: string, limit: number, byKey: boolean): Promise<Counters> {
  const entry = byKey ? sql`json_build_array(admitted_at_ms, key_id)` : sql`admitted_at_ms`
  const { rows } = await sql<{
    now_ms: number
    used: number
    recent: readonly (number | [atMs: number, keyId: string])[]
  }>`
    with clock as materialized (select clock_timestamp() as now),
    at as materialized (
      select (extract(epoch from now) * 1000)::float8 as now_ms,
        to_char(now at time zone 'UTC', 'YYYY-MM') as period_id
      from clock
    )
    select at.now_ms,
      coalesce((select used from usage where account_id = ${accountId} and period_id = at.period_id), 0) as used,
      (select coalesce(json_agg(${entry}), '[]') from (
        select admitted_at_ms, key_id from requests
        where account_id = ${accountId} and admitted_at_ms > floor(at.now_ms - ${minuteMs})::bigint
        order by admitted_at_ms desc limit ${limit}
      ) as latest) as recent
    from at`.execute(db)
  const row = rows[0]
  if (row === undefined) throw new Error('the database gave no counters')
  const recent = row.recent.map((given) => {
    const [atMs, keyId] = typeof given === 'number' ? [given, ''] : given
    return { atMs, keyId }
  })
  const now = momentAt(row.now_ms)
  return { now, meter: new AccountMeter(now, recent, row.used) }
}
