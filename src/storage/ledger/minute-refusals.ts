import { type KeyRate, minuteDenial, type Standing, type UsageSignals } from '../../domain/account-meter.ts'
import type { ServiceError } from '../../domain/errors.ts'
import type { Plan } from '../../domain/plans.ts'
import { BoundedMap } from '../../runtime/bounded-map.ts'
import type { Clock } from '../../runtime/clock.ts'
import { denialError } from './denial-error.ts'

/** How long a node refuses without asking again. Until then, what it shows of the month does not change. */
const memoMs = 1_000
/** Maximum accounts, and keys with limits of their own, whose refusals are remembered. */
const maxRefusals = 10_000

/** The minute of an account or a key was full by the database's clock. */
export interface FullMinute {
  /** Milliseconds from the decision until one more request becomes possible. */
  readonly freeInMs: number
  readonly standing: Standing
  readonly signals: UsageSignals
}

/** Whose request it is, and the limits that it has. */
export interface Caller {
  readonly accountId: string
  readonly plan: Plan
  readonly rate: KeyRate | undefined
}

interface Refusal extends FullMinute {
  readonly perMinute: number
  readonly keyPerMinute: number | undefined
  /** Until when the node refuses, and when one more request becomes possible at the latest. Monotonic. */
  readonly untilMs: number
  readonly freeMs: number
}

/**
 * Refuses, for a second, further requests of an account whose minute the database has found full, so that an account that
 * ignores refusals does not cost the database a decision for each request (contract 36.2). Never longer than the minute is
 * full, and not after its limits change.
 */
export class MinuteRefusals {
  readonly #clock: Clock
  readonly #refusals = new BoundedMap<string, Refusal>(maxRefusals)

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Remembers a refusal that was asked for at `askedMs`, monotonic. */
  note({ accountId, plan, rate }: Caller, askedMs: number, full: FullMinute): void {
    this.#refusals.setLast(rate?.keyId ?? accountId, {
      ...full,
      perMinute: plan.requestsPerMinute,
      keyPerMinute: rate?.perMinute,
      // The database decided at some time since `askedMs`.
      untilMs: askedMs + Math.min(memoMs, full.freeInMs),
      freeMs: this.#clock.monotonicMs() + full.freeInMs,
    })
  }

  /** The error that refuses a request; undefined if the database must decide. */
  errorFor(caller: Caller): ServiceError | undefined {
    const refusal = this.#find(caller)
    if (refusal === undefined) return undefined
    const standing = { ...refusal.standing, freeAtMs: refusal.freeMs }
    return denialError(minuteDenial(this.#clock.monotonicMs(), standing), caller.plan, refusal.signals)
  }

  /** The counters that the last refusal showed; undefined if they must be read. */
  signalsFor(caller: Caller): UsageSignals | undefined {
    return this.#find(caller)?.signals
  }

  #find({ accountId, plan, rate }: Caller): Refusal | undefined {
    const refusal = this.#refusals.get(rate?.keyId ?? accountId)
    if (refusal === undefined) return undefined
    const hasSameLimits =
      refusal.perMinute === plan.requestsPerMinute &&
      refusal.keyPerMinute === rate?.perMinute &&
      refusal.signals.quotaLimit === plan.requestsPerMonth
    return hasSameLimits && this.#clock.monotonicMs() < refusal.untilMs ? refusal : undefined
  }
}
