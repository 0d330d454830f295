import { BoundedMap } from './bounded-map.ts'
import { MinuteLog, type RecentAdmission } from './minute-log.ts'
import type { Plan } from './plans.ts'

/** Keys of one account whose own minutes are in memory; what is forgotten is made again from the account's. */
const maxKeyMinutes = 256

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

/** A limit of one key inside its account's minute: so many of its own admissions in any 60 s. */
export interface KeyRate {
  readonly keyId: string
  readonly perMinute: number
}

/**
 * What the caller is shown of the minute and the month, and what is enforced (contract 4.1, 4.5). The minute is that of
 * the account or, where the key has a limit that would refuse first, the key's: one of the two, never a mixture.
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
  | { readonly reason: 'minute'; readonly limit: number; readonly isOfKey: boolean; readonly retryAfterSeconds: number }
  | { readonly reason: 'month'; readonly resetsAt: number }

/** How one limit of the minute stands. */
interface Standing {
  readonly limit: number
  readonly remaining: number
  /** When one more becomes possible than now. */
  readonly freeAtMs: number
  readonly isOfKey: boolean
}

/**
 * The exact counters of one account (contract 4.2): a log of the admissions of the last 60 s, and the units of the
 * month, used and reserved. The limit of a key is decided on the same log, so that it holds from the moment in which it
 * is set. All times are epoch milliseconds of one clock that does not go back.
 */
export class AccountMeter {
  readonly #minute: MinuteLog
  /** Of keys that have a limit, each made from the account's when it is first asked for. */
  #keyMinutes: BoundedMap<string, MinuteLog> | undefined
  #period: Period
  #used: number
  /** Units of admitted requests of this period that are not settled yet. */
  #reserved = 0

  constructor(nowMs: number, recent: readonly RecentAdmission[], usedThisPeriod: number) {
    // What a wall clock that was set back left in the future would otherwise block for longer than a minute.
    const past = recent.map(({ atMs, keyId }) => ({ atMs: Math.min(atMs, nowMs), keyId }))
    this.#minute = new MinuteLog(past.sort((a, b) => a.atMs - b.atMs))
    this.#period = periodAt(nowMs)
    this.#used = usedThisPeriod
  }

  get periodId(): string {
    return this.#period.id
  }

  /** Takes one request of a key and its units of the month, or says why not. A refusal takes nothing. */
  admit(
    nowMs: number,
    plan: Plan,
    { keyId, units }: { readonly keyId: string; readonly units: number },
    rate?: KeyRate,
  ): Refusal | undefined {
    this.#advance(nowMs)
    const isKeySpent = rate !== undefined && this.#minuteOf(rate.keyId, nowMs).open >= rate.perMinute
    if (isKeySpent || this.#minute.open >= plan.requestsPerMinute) {
      const { limit, isOfKey, freeAtMs } = this.#tighter(nowMs, plan, rate)
      const seconds = Math.ceil((freeAtMs - nowMs) / 1000)
      return { reason: 'minute', limit, isOfKey, retryAfterSeconds: Math.min(60, Math.max(1, seconds)) }
    }
    if (this.#used + this.#reserved + units > plan.requestsPerMonth) {
      return { reason: 'month', resetsAt: Math.floor(this.#period.endMs / 1000) }
    }
    this.#minute.add(nowMs, keyId)
    if (this.#keyMinutes !== undefined) this.#noteKey(nowMs, keyId)
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

  signals(nowMs: number, plan: Plan, rate?: KeyRate): UsageSignals {
    this.#advance(nowMs)
    const { limit, remaining, freeAtMs } = this.#tighter(nowMs, plan, rate)
    const quotaUsed = Math.min(this.#used + this.#reserved, plan.requestsPerMonth)
    return {
      rateLimit: limit,
      rateRemaining: remaining,
      rateReset: Math.ceil(freeAtMs / 1000),
      quotaLimit: plan.requestsPerMonth,
      quotaUsed,
      quotaRemaining: plan.requestsPerMonth - quotaUsed,
      quotaReset: Math.floor(this.#period.endMs / 1000),
    }
  }

  /** Whether no request of the last minute and none in flight is counted here. */
  isIdle(nowMs: number): boolean {
    this.#advance(nowMs)
    return this.#reserved === 0 && this.#minute.open === 0
  }

  /** The limit that would refuse first. Of two that are alike the one that holds on longer: then both are free. */
  #tighter(nowMs: number, plan: Plan, rate: KeyRate | undefined): Standing {
    const account = standingOf(this.#minute, nowMs, plan.requestsPerMinute, false)
    if (rate === undefined) return account
    const key = standingOf(this.#minuteOf(rate.keyId, nowMs), nowMs, rate.perMinute, true)
    if (key.remaining !== account.remaining) return key.remaining < account.remaining ? key : account
    return key.freeAtMs >= account.freeAtMs ? key : account
  }

  #minuteOf(keyId: string, nowMs: number): MinuteLog {
    this.#keyMinutes ??= new BoundedMap(maxKeyMinutes)
    const known = this.#keyMinutes.get(keyId)
    if (known !== undefined) {
      known.advance(nowMs)
      return known
    }
    const minute = this.#minute.ofKey(keyId)
    this.#keyMinutes.set(keyId, minute)
    return minute
  }

  /** Also of a key that has no limit any more: it may get one again. */
  #noteKey(nowMs: number, keyId: string): void {
    const minute = this.#keyMinutes?.get(keyId)
    minute?.advance(nowMs)
    minute?.add(nowMs, keyId)
  }

  #advance(nowMs: number): void {
    this.#minute.advance(nowMs)
    if (nowMs >= this.#period.endMs) {
      this.#period = periodAt(nowMs)
      this.#used = 0
      this.#reserved = 0
    }
  }
}

function standingOf(minute: MinuteLog, nowMs: number, limit: number, isOfKey: boolean): Standing {
  return {
    limit,
    remaining: Math.max(0, limit - minute.open),
    freeAtMs: minute.freeAtMs(nowMs, limit),
    isOfKey,
  }
}
