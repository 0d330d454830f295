import { BoundedMap } from '../runtime/bounded-map.ts'
import { MinuteLog, type RecentAdmission } from '../runtime/minute-log.ts'
import type { Plan } from './plans.ts'

/** Maximum number of keys per account whose own minute is in memory. Others are recreated from the account's. */
const maxKeyMinutes = 256

/** A calendar month in UTC (contract 5.7). `id` is `2026-11`; `endMs` is exclusive. Epoch milliseconds. */
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

/** A point in time, for the counters of an account. */
export interface Moment {
  /** For display. */
  readonly wallMs: number
  /** For the sliding minute: see `Clock.monotonicMs`. */
  readonly monotonicMs: number
  /** The month to charge. */
  readonly period: Period
}

/** The moment `nowMs` of a clock that never jumps. */
export function momentAt(nowMs: number): Moment {
  return { wallMs: nowMs, monotonicMs: nowMs, period: periodAt(nowMs) }
}

/** The limit of one key within its account's minute: its own admissions in any 60 s. */
export interface KeyRate {
  readonly keyId: string
  readonly perMinute: number
}

/**
 * The figures of the minute and the month that clients see and that are enforced (contract 3.17, 5.5, 5.6, 5.13). The
 * figures of the minute are the account's or, if the key's own limit would reject first, the key's, but never a
 * mixture. `quotaUsed + quotaRemaining = quotaLimit`, always. Resets are Unix seconds.
 */
export interface UsageSignals {
  readonly rateLimit: number
  readonly rateRemaining: number
  /** When at least one more request becomes possible than now (contract 5.11). */
  readonly rateReset: number
  readonly quotaLimit: number
  readonly quotaUsed: number
  readonly quotaRemaining: number
  readonly quotaReset: number
}

export type QuotaDenial =
  | { readonly reason: 'minute'; readonly limit: number; readonly isOfKey: boolean; readonly retryAfterSeconds: number }
  | { readonly reason: 'month'; readonly resetsAt: number }

/** The state of one limit of the minute. */
export interface Standing {
  readonly limit: number
  readonly remaining: number
  /** When one more becomes possible than now. */
  readonly freeAtMs: number
  readonly isOfKey: boolean
}

/**
 * The limit of the minute that would reject first: the account's, or that of the key. If two are equal, the one that
 * lasts longer, because then both are free (contract 3.17).
 */
export function tighterStanding(account: Standing, key: Standing | undefined): Standing {
  if (key === undefined) return account
  if (key.remaining !== account.remaining) return key.remaining < account.remaining ? key : account
  return key.freeAtMs >= account.freeAtMs ? key : account
}

/** Why a limit of the minute rejects a request. */
export function minuteDenial(nowMs: number, { limit, isOfKey, freeAtMs }: Standing): QuotaDenial {
  const seconds = Math.ceil((freeAtMs - nowMs) / 1000)
  return { reason: 'minute', limit, isOfKey, retryAfterSeconds: Math.min(60, Math.max(1, seconds)) }
}

/** Why the month rejects a request. */
export function monthDenial({ endMs }: Period): QuotaDenial {
  return { reason: 'month', resetsAt: Math.floor(endMs / 1000) }
}

/** `used`: units of the month, including those of running requests. */
export function usageSignals(
  now: Moment,
  { limit, remaining, freeAtMs }: Standing,
  { requestsPerMonth }: Plan,
  used: number,
): UsageSignals {
  const quotaUsed = Math.min(used, requestsPerMonth)
  return {
    rateLimit: limit,
    rateRemaining: remaining,
    rateReset: Math.ceil((now.wallMs + freeAtMs - now.monotonicMs) / 1000),
    quotaLimit: requestsPerMonth,
    quotaUsed,
    quotaRemaining: requestsPerMonth - quotaUsed,
    quotaReset: Math.floor(now.period.endMs / 1000),
  }
}

/**
 * The exact counters of one account, whichever of its keys is used (contract 3.12, 5.10): a log of the admissions of
 * the last 60 s, and the used and reserved units of the month. A key's limit is applied to the same log, so it takes
 * effect immediately. When the month changes, in either direction, the counters of the previous month are kept, so that
 * correcting a wrong clock restores them.
 */
export class AccountMeter {
  readonly #minute: MinuteLog
  /** For keys with a limit, created from the account's log when first needed. */
  #keyMinutes: BoundedMap<string, MinuteLog> | undefined
  #period: Period
  #used: number
  /** Units of admitted requests of this period that are not settled yet. */
  #reserved = 0
  #other: { readonly periodId: string; used: number; reserved: number } | undefined

  /** `recent` has wall times. */
  constructor(now: Moment, recent: readonly RecentAdmission[], usedThisPeriod: number) {
    // If the wall clock was set back, entries in the future would otherwise count for longer than a minute.
    const past = recent.map(({ atMs, keyId }) => ({
      atMs: now.monotonicMs - Math.max(0, now.wallMs - atMs),
      keyId,
    }))
    this.#minute = new MinuteLog(past.sort((a, b) => a.atMs - b.atMs))
    this.#period = now.period
    this.#used = usedThisPeriod
  }

  get periodId(): string {
    return this.#period.id
  }

  /** Whether this has the counters of a month, or the month is later and starts at zero. */
  covers({ id, startMs }: Period): boolean {
    return startMs >= this.#period.startMs || id === this.#other?.periodId
  }

  /** Takes one request of a key and its units of the month, or returns why not. A denial takes nothing. */
  admit(
    now: Moment,
    plan: Plan,
    { keyId, units }: { readonly keyId: string; readonly units: number },
    rate?: KeyRate,
  ): QuotaDenial | undefined {
    this.#advance(now)
    const isKeySpent = rate !== undefined && this.#minuteOf(rate.keyId, now.monotonicMs).open >= rate.perMinute
    if (isKeySpent || this.#minute.open >= plan.requestsPerMinute) {
      return minuteDenial(now.monotonicMs, this.#tighter(now.monotonicMs, plan, rate))
    }
    if (this.#used + this.#reserved + units > plan.requestsPerMonth) return monthDenial(this.#period)
    this.#minute.add(now.monotonicMs, keyId)
    if (this.#keyMinutes !== undefined) this.#noteKey(now.monotonicMs, keyId)
    this.#reserved += units
    return undefined
  }

  /** Settles an admission of period `periodId`: of its `reserved` units, `charged` stay used. */
  settle(now: Moment, periodId: string, reserved: number, charged: number): void {
    this.#advance(now)
    if (periodId === this.#period.id) {
      this.#reserved -= reserved
      this.#used += charged
    } else if (periodId === this.#other?.periodId) {
      this.#other.reserved -= reserved
      this.#other.used += charged
    }
  }

  signals(now: Moment, plan: Plan, rate?: KeyRate): UsageSignals {
    this.#advance(now)
    return usageSignals(now, this.#tighter(now.monotonicMs, plan, rate), plan, this.#used + this.#reserved)
  }

  /** Whether nothing is counted: no request in the last minute and none in flight. */
  isIdle(now: Moment): boolean {
    this.#advance(now)
    return this.#reserved === 0 && this.#minute.open === 0
  }

  #tighter(nowMs: number, plan: Plan, rate: KeyRate | undefined): Standing {
    const account = standingOf(this.#minute, nowMs, plan.requestsPerMinute, false)
    const key = rate && standingOf(this.#minuteOf(rate.keyId, nowMs), nowMs, rate.perMinute, true)
    return tighterStanding(account, key)
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

  /** Also for a key without a limit, because it may get one again. */
  #noteKey(nowMs: number, keyId: string): void {
    const minute = this.#keyMinutes?.get(keyId)
    minute?.advance(nowMs)
    minute?.add(nowMs, keyId)
  }

  #advance({ monotonicMs, period }: Moment): void {
    this.#minute.advance(monotonicMs)
    if (period.id === this.#period.id) return
    const left = { periodId: this.#period.id, used: this.#used, reserved: this.#reserved }
    const entered = this.#other?.periodId === period.id ? this.#other : undefined
    this.#period = period
    this.#used = entered?.used ?? 0
    this.#reserved = entered?.reserved ?? 0
    this.#other = left
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
