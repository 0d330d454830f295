import type { Plan } from './plans.ts'

/** The length of the sliding minute (contract 4.2). */
export const minuteMs = 60_000

/** A calendar month in UTC (contract 4.1). `id` is `2026-11`; the two ends are epoch milliseconds, `endMs` not included. */
export interface Period {
  readonly id: string
  readonly startMs: number
  readonly endMs: number
}

export function periodAt(nowMs: number): Period {
  const now = new Date(nowMs)
  const year = now.getUTCFullYear()
  const month = now.getUTCMonth()
  return {
    id: `${year}-${String(month + 1).padStart(2, '0')}`,
    startMs: Date.UTC(year, month, 1),
    endMs: Date.UTC(year, month + 1, 1),
  }
}

/**
 * What the caller is shown of the minute and the month, and what is enforced (contract 4.1, 4.5).
 * `quotaUsed + quotaRemaining = quotaLimit`, always. Resets are Unix seconds.
 */
export interface UsageSignals {
  readonly rateLimit: number
  readonly rateRemaining: number
  /** When at least one more request becomes possible than is possible now. */
  readonly rateReset: number
  readonly quotaLimit: number
  readonly quotaUsed: number
  readonly quotaRemaining: number
  readonly quotaReset: number
}

export type Refusal =
  | { readonly reason: 'minute'; readonly retryAfterSeconds: number }
  | { readonly reason: 'month'; readonly resetsAt: number }

/**
 * The exact counters of one account (contract 4.2): a log of the admissions of the last 60 s, and the units of the
 * month, used and reserved. All times are epoch milliseconds of one clock that does not go back.
 */
export class AccountMeter {
  /** Admission times in rising order; those before `#first` have left the window. */
  #log: number[]
  #first = 0
  #period: Period
  #used: number
  /** Units of admitted requests of this period that are not settled yet. */
  #reserved = 0

  constructor(nowMs: number, recentAdmissionsMs: readonly number[], usedThisPeriod: number) {
    // What a wall clock that was set back left in the future would otherwise block for longer than a minute.
    this.#log = recentAdmissionsMs.map((timeMs) => Math.min(timeMs, nowMs)).sort((a, b) => a - b)
    this.#period = periodAt(nowMs)
    this.#used = usedThisPeriod
  }

  get periodId(): string {
    return this.#period.id
  }

  /** Takes one request and `units` of the month, or says why not. A refusal takes nothing. */
  admit(nowMs: number, plan: Plan, units: number): Refusal | undefined {
    this.#advance(nowMs)
    if (this.#log.length - this.#first >= plan.requestsPerMinute) {
      const seconds = Math.ceil((this.#nextFreeMs(nowMs, plan) - nowMs) / 1000)
      return { reason: 'minute', retryAfterSeconds: Math.min(60, Math.max(1, seconds)) }
    }
    if (this.#used + this.#reserved + units > plan.requestsPerMonth) {
      return { reason: 'month', resetsAt: Math.floor(this.#period.endMs / 1000) }
    }
    this.#log.push(nowMs)
    this.#reserved += units
    return undefined
  }

  /** Settles an admission of period `periodId`: `charged` of its `reserved` units stay used. */
  settle(nowMs: number, periodId: string, reserved: number, charged: number): void {
    this.#advance(nowMs)
    if (periodId !== this.#period.id) return
    this.#reserved -= reserved
    this.#used += charged
  }

  signals(nowMs: number, plan: Plan): UsageSignals {
    this.#advance(nowMs)
    const open = this.#log.length - this.#first
    const quotaUsed = Math.min(this.#used + this.#reserved, plan.requestsPerMonth)
    return {
      rateLimit: plan.requestsPerMinute,
      rateRemaining: Math.max(0, plan.requestsPerMinute - open),
      rateReset: Math.ceil((open === 0 ? nowMs : this.#nextFreeMs(nowMs, plan)) / 1000),
      quotaLimit: plan.requestsPerMonth,
      quotaUsed,
      quotaRemaining: plan.requestsPerMonth - quotaUsed,
      quotaReset: Math.floor(this.#period.endMs / 1000),
    }
  }

  /** Whether no request of the last minute and none in flight is counted here. */
  isIdle(nowMs: number): boolean {
    this.#advance(nowMs)
    return this.#reserved === 0 && this.#log.length === this.#first
  }

  /** When one more request becomes possible than now: after a lowered limit several have to leave the window first. */
  #nextFreeMs(nowMs: number, plan: Plan): number {
    const index = Math.max(this.#first, this.#log.length - plan.requestsPerMinute)
    return (this.#log[index] ?? nowMs) + minuteMs
  }

  #advance(nowMs: number): void {
    // Written as in `#nextFreeMs`, so that fractions are rounded alike and who waits as told finds it free.
    while (this.#first < this.#log.length && this.#log[this.#first]! + minuteMs <= nowMs) this.#first += 1
    if (this.#first > 1024 && this.#first * 2 > this.#log.length) {
      this.#log = this.#log.slice(this.#first)
      this.#first = 0
    }
    if (nowMs >= this.#period.endMs) {
      this.#period = periodAt(nowMs)
      this.#used = 0
      this.#reserved = 0
    }
  }
}
