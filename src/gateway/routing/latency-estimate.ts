import { BoundedMap } from '../../runtime/bounded-map.ts'
import { LinkedEntry, LinkedSet } from '../../runtime/linked-set.ts'
import { SlowThreshold } from './slow-threshold.ts'

/** The estimate follows the accounts that were measured last, this many. */
const maxAccounts = 5
/** Accounts whose own threshold of slow answers is stored; the one added longest ago is evicted first. */
const maxThresholds = 64
/** A faster answer lowers an account's estimate with this time constant; a slower one raises it at once. */
const fallMs = 10_000
/** An account moves the threshold of the others at most once in this time. */
const betweenSharedMs = 1_000
/** A measurement is current for this long; after that the estimate drifts to the prior, */
const currentMs = 90_000
/** halfway, on a logarithmic scale, in this time. */
const driftHalfLifeMs = 300_000

/** Of many attempts that wait, the longest-waiting ones are looked at. */
const mostLookedAt = 32
const agreeingAccounts = 3

/** An attempt without content so far. */
export abstract class WaitingAttempt extends LinkedEntry {
  abstract readonly account: string
  /** Monotonic milliseconds. */
  abstract readonly startedMs: number
}

interface OfAccount {
  ms: number
  atMs: number
}

/** What else is known of a measurement. */
interface Circumstances {
  /** There was no content by then, and another backend was faster. */
  readonly isAbandoned: boolean
  /** It was a second call, whose slow answers are abandoned: it says nothing of what is slow. */
  readonly isSecond: boolean
}

const usual: Circumstances = { isAbandoned: false, isSecond: false }

/**
 * The time to first content of one backend for one kind of prompt: for each account a peak EWMA, and of the last
 * five the lower quartile. One account's slow prompts therefore never make a backend look slow to others (contract 7.22).
 */
export class LatencyEstimate {
  /** At most `maxAccounts`; changed in place, because every answer is recorded here. */
  readonly #byAccount = new Map<string, OfAccount>()
  /** Of accounts with too few answers for one of their own. */
  readonly #sharedSlow = new SlowThreshold()
  readonly #slowByAccount = new BoundedMap<string, SlowThreshold>(maxThresholds)
  /** The longest-waiting one first. */
  readonly #waiting = new LinkedSet<WaitingAttempt>()
  #typicalMs = 0
  #atMs = 0

  /** An attempt waits for its first content, until `stopWaiting`. */
  wait(attempt: WaitingAttempt): void {
    this.#waiting.add(attempt)
  }

  stopWaiting(attempt: WaitingAttempt): void {
    this.#waiting.delete(attempt)
  }

  /** After this time an answer to the account is slow, milliseconds; undefined if too little is known. */
  slowMs(account: string): number | undefined {
    return this.#slowByAccount.get(account)?.ms ?? this.#sharedSlow.ms
  }

  record(account: string, ms: number, nowMs: number, { isAbandoned, isSecond }: Circumstances = usual): void {
    const known = this.#byAccount.get(account)
    if (!isSecond) this.#noteSlow(account, ms, isAbandoned, nowMs - (known?.atMs ?? 0) >= betweenSharedMs)
    const isFaster = known !== undefined && ms < known.ms
    // An abandoned answer would have taken longer than it was waited for.
    if (isFaster && isAbandoned) return
    const kept = isFaster ? Math.exp((known.atMs - nowMs) / fallMs) : 0
    const estimateMs = isFaster ? known.ms * kept + ms * (1 - kept) : ms
    if (known === undefined) this.#addAccount(account, { ms, atMs: nowMs })
    else {
      known.ms = estimateMs
      known.atMs = nowMs
    }
    this.#typicalMs = this.#byAccount.size === 1 ? estimateMs : this.#lowerQuartile(nowMs)
    this.#atMs = nowMs
  }

  /** Evicts the account that was measured longest ago if there are too many. */
  #addAccount(account: string, measured: OfAccount): void {
    if (this.#byAccount.size === maxAccounts) {
      let oldest: string | undefined
      let oldestMs = Infinity
      for (const [id, { atMs }] of this.#byAccount) if (atMs < oldestMs) [oldest, oldestMs] = [id, atMs]
      if (oldest !== undefined) this.#byAccount.delete(oldest)
    }
    this.#byAccount.set(account, measured)
  }

  #noteSlow(account: string, ms: number, isAbandoned: boolean, isShared: boolean): void {
    let own = this.#slowByAccount.get(account)
    if (own === undefined) this.#slowByAccount.set(account, (own = new SlowThreshold()))
    own.record(ms, isAbandoned)
    if (isShared) this.#sharedSlow.record(ms, isAbandoned)
  }

  /**
   * The estimate now, milliseconds; undefined if nothing is known. It is at least as long as attempts have waited, so
   * that a backend that suddenly hangs is avoided before the first of them times out.
   */
  read(nowMs: number, priorMs: number): number | undefined {
    const waitedMs = this.#waiting.isEmpty ? 0 : this.#longestWait(nowMs)
    const measuredMs = this.#byAccount.size === 0 ? undefined : this.#measured(nowMs, priorMs)
    return waitedMs > (measuredMs ?? priorMs) ? waitedMs : measuredMs
  }

  /** How long attempts have waited, as far as three accounts agree, or as many as there are. */
  #longestWait(nowMs: number): number {
    const needed = Math.min(agreeingAccounts, Math.max(1, this.#byAccount.size))
    const accounts = new Set<string>()
    let looked = 0
    for (const { account, startedMs } of this.#waiting) {
      accounts.add(account)
      if (accounts.size === needed) return nowMs - startedMs
      looked += 1
      if (looked === mostLookedAt) return 0
    }
    return 0
  }

  #measured(nowMs: number, priorMs: number): number {
    const idleMs = nowMs - this.#atMs - currentMs
    if (idleMs <= 0) return this.#typicalMs
    const kept = 2 ** (-idleMs / driftHalfLifeMs)
    return this.#typicalMs ** kept * priorMs ** (1 - kept)
  }

  /** Of the current measurements: of two to four accounts the lowest, of five the second lowest. */
  #lowerQuartile(nowMs: number): number {
    const current: number[] = []
    for (const { ms, atMs } of this.#byAccount.values()) if (nowMs - atMs <= currentMs) current.push(ms)
    current.sort((a, b) => a - b)
    return current[(current.length - 1) >> 2]!
  }
}
