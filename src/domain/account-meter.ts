import { BoundedMap } from '../runtime/bounded-map.ts'
import { MinuteLog, type RecentAdmission } from '../runtime/minute-log.ts'
import type { Plan } from './plans.ts'

/** Maximum number of keys per account whose own minute is in memory. Others are recreated from the account's. */
const maxKeyMinutes = 256
/** Past months whose counters are in memory: the last one ends with its requests, others return only if a wrong clock is set right. */
const maxPastMonths = 3

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

/** What an account has used of a month, as stored. */
export interface MonthUsage {
  readonly periodId: string
  readonly used: number
}

interface MonthCounter {
  readonly periodId: string
  used: number
  /** Units of admitted requests of this month that are not settled yet. */
  reserved: number
}

/** Shared by all meters that count only one month. */
const noMonths: readonly MonthCounter[] = []

/**
 * The exact counters of one account, whichever of its keys is used (contract 3.12, 5.10): a log of the admissions of
 * the last 60 s, and the used and reserved units of the month. A key's limit is applied to the same log, so it takes
 * effect immediately. A clock that was set can lead to any other month, also to a later one that was charged before. So a
 * meter knows what is stored of all later months, and it is told what is stored of an earlier one before it enters it
 * (contract 5.12, 5.14).
 */
export class AccountMeter {
  readonly #minute: MinuteLog
  /** For keys with a limit, created from the account's log when first needed. */
  #keyMinutes: BoundedMap<string, MinuteLog> | undefined
  #period: Period
  #month: MonthCounter
  /** Other months, in their order: past ones, and later ones if the clock was set back. */
  #others: readonly MonthCounter[] = noMonths
  /** Of this month and all later ones, everything that is stored is counted here. */
  #sinceId: string

  /** `recent` has wall times; `stored` is what was used of the month of `now`, and of all later ones. */
  constructor(now: Moment, recent: readonly RecentAdmission[], stored: readonly MonthUsage[]) {
    // If the wall clock was set back, entries in the future would otherwise count for longer than a minute.
    const past = recent.map(({ atMs, keyId }) => ({
      atMs: now.monotonicMs - Math.max(0, now.wallMs - atMs),
      keyId,
    }))
    this.#minute = new MinuteLog(past.sort((a, b) => a.atMs - b.atMs))
    this.#period = now.period
    this.#sinceId = now.period.id
    const used = stored.find(({ periodId }) => periodId === now.period.id)?.used ?? 0
    this.#month = { periodId: now.period.id, used, reserved: 0 }
    this.#count(stored.filter(({ periodId }) => periodId > now.period.id))
  }

  get periodId(): string {
    return this.#period.id
  }

  /** Whether this counts a month. Otherwise what is stored of it is still to be told: until then, the month does not change. */
  covers({ id }: Period): boolean {
    return id >= this.#sinceId
  }

  /** Adds what is stored of `period` and all later months, as far as this does not count it itself. */
  extend({ id }: Period, stored: readonly MonthUsage[]): void {
    if (id >= this.#sinceId) return
    this.#count(stored.filter(({ periodId }) => periodId < this.#sinceId))
    this.#sinceId = id
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
    const { used, reserved } = this.#month
    if (used + reserved + units > plan.requestsPerMonth) return monthDenial(this.#period)
    this.#minute.add(now.monotonicMs, keyId)
    if (this.#keyMinutes !== undefined) this.#noteKey(now.monotonicMs, keyId)
    this.#month.reserved += units
    return undefined
  }

  /** Settles an admission of period `periodId`: of its `reserved` units, `charged` stay used. */
  settle(periodId: string, reserved: number, charged: number): void {
    const isCurrent = periodId === this.#month.periodId
    const month = isCurrent ? this.#month : this.#others.find((other) => other.periodId === periodId)
    if (month === undefined) return
    month.reserved -= reserved
    month.used += charged
  }

  signals(now: Moment, plan: Plan, rate?: KeyRate): UsageSignals {
    this.#advance(now)
    const { wallMs, monotonicMs } = now
    const { used, reserved } = this.#month
    const shown = { wallMs, monotonicMs, period: this.#period }
    return usageSignals(shown, this.#tighter(monotonicMs, plan, rate), plan, used + reserved)
  }

  /** Whether nothing is counted: no request in the last minute and none in flight. */
  isIdle({ monotonicMs }: Moment): boolean {
    this.#minute.advance(monotonicMs)
    return this.#month.reserved === 0 && this.#minute.open === 0
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
    if (period.id !== this.#period.id && this.covers(period)) this.#enter(period)
  }

  #enter(period: Period): void {
    const known = this.#others.find(({ periodId }) => periodId === period.id)
    const others = this.#others.filter((month) => month !== known)
    this.#others = [...others, this.#month].sort(byMonth)
    this.#period = period
    this.#month = known ?? { periodId: period.id, used: 0, reserved: 0 }
    const isTooMany = (this.#others[maxPastMonths]?.periodId ?? period.id) < period.id
    if (!isTooMany) return
    this.#others = this.#others.slice(1)
    this.#sinceId = this.#others[0]!.periodId
  }

  #count(stored: readonly MonthUsage[]): void {
    if (stored.length === 0) return
    this.#others = [...this.#others, ...stored.map((month) => ({ ...month, reserved: 0 }))].sort(byMonth)
  }
}

function byMonth(one: MonthCounter, other: MonthCounter): number {
  return one.periodId < other.periodId ? -1 : 1
}

function standingOf(minute: MinuteLog, nowMs: number, limit: number, isOfKey: boolean): Standing {
  return {
    limit,
    remaining: Math.max(0, limit - minute.open),
    freeAtMs: minute.freeAtMs(nowMs, limit),
    isOfKey,
  }
}
