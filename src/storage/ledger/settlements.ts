import { setTimeout as sleep } from 'node:timers/promises'
import { type Kysely, sql } from 'kysely'
import type { RequestOutcome } from '../../domain/requests.ts'
import { outcomeColumns } from '../requests.ts'
import type { Tables } from '../schema/schema.ts'
import { LedgerUnavailable } from './ledger-unavailable.ts'

/** Settlements that wait; beyond it nothing more is admitted. */
const maxWaiting = 60_000
const maxAtOnce = 4
const firstRetryMs = 50
const longestRetryMs = 2000
const closeTimeoutMs = 10_000

interface Settlement {
  readonly id: string
  readonly outcome: RequestOutcome
}

/** Writes outcomes to PostgreSQL in the background, and retries each until it succeeds. */
export class SettlementQueue {
  readonly #db: Kysely<Tables>
  readonly #waiting: Settlement[] = []
  #running = 0
  #retryMs = 0
  #isGivenUp = false

  constructor(db: Kysely<Tables>) {
    this.#db = db
  }

  get isFull(): boolean {
    return this.#waiting.length >= maxWaiting
  }

  /** False from a failed write until the next successful one. */
  get isHealthy(): boolean {
    return this.#retryMs === 0
  }

  add(id: string, outcome: RequestOutcome): void {
    this.#waiting.push({ id, outcome })
    if (this.#running < maxAtOnce) void this.#run()
  }

  /** Resolves when everything is written. @throws LedgerUnavailable if that takes too long */
  async close(): Promise<void> {
    const giveUpAtMs = performance.now() + closeTimeoutMs
    while (this.#running > 0 && performance.now() < giveUpAtMs) await sleep(5)
    this.#isGivenUp = true
    if (this.#waiting.length > 0 || this.#running > 0) throw new LedgerUnavailable()
  }

  async #run(): Promise<void> {
    this.#running += 1
    for (let next = this.#waiting.shift(); next !== undefined; next = this.#waiting.shift()) {
      try {
        await writeOutcome(this.#db, next)
        this.#retryMs = 0
      } catch {
        this.#waiting.unshift(next)
        if (this.#isGivenUp) break
        this.#retryMs = Math.min(longestRetryMs, Math.max(firstRetryMs, this.#retryMs * 2))
        await sleep(this.#retryMs)
      }
    }
    this.#running -= 1
  }
}

/** Safe to repeat: ends the request only if it is still open, and refunds its unused units in the same statement. */
async function writeOutcome(db: Kysely<Tables>, { id, outcome }: Settlement): Promise<void> {
  const row = outcomeColumns(outcome)
  await sql`
    with ended as (
      update requests set state = 'done', charged = ${row.charged}, attempts = ${row.attempts},
        input_tokens = ${row.input_tokens}, output_tokens = ${row.output_tokens},
        cached_tokens = ${row.cached_tokens}, reasoning_tokens = ${row.reasoning_tokens},
        usage_source = ${row.usage_source}, error_code = ${row.error_code},
        first_content_ms = ${row.first_content_ms}, total_ms = ${row.total_ms}, fusions = ${row.fusions},
        passed_by = ${row.passed_by}
      where id = ${id} and state = 'open'
      returning account_id, period_id, units - charged as back
    )
    update usage set used = used - ended.back from ended
    where usage.account_id = ended.account_id and usage.period_id = ended.period_id and ended.back <> 0`.execute(db)
}
