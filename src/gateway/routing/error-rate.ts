import { BoundedMap } from '../../runtime/bounded-map.ts'

/** Accounts whose outcomes are stored per backend; the one added longest ago is evicted first. */
const maxAccounts = 32
/** Outcomes lose half of their weight in this time. */
const halfLifeMs = 60_000
/** Of one account at most this many outcomes count, so that no account decides alone. */
const outcomesPerAccount = 8
/** What is assumed before there are outcomes: this many failures of this many calls. */
const assumedFailures = 0.5
const assumedCalls = 25

/** Failures and calls at one moment; later they weigh less. */
interface Weighted {
  failures: number
  calls: number
  atMs: number
}

/**
 * The share of a backend's calls that fail, over a window with a half-life of 60 s (contract 7.22). Changed in place,
 * because the end of every call is recorded here.
 */
export class ErrorRate {
  readonly #byAccount = new BoundedMap<string, Weighted>(maxAccounts)
  /** Of the accounts whose calls failed since the last success, the first two. */
  readonly #failingAccounts = new Set<string>()
  #failuresInARow = 0
  #lastFailureMs = 0
  /** The sum of what counts of each account. */
  readonly #sum: Weighted = { failures: 0, calls: 0, atMs: 0 }

  /** A call that began at `startedMs` ended. */
  record(account: string, isFailure: boolean, startedMs: number, nowMs: number): void {
    this.#countInARow(account, isFailure, startedMs, nowMs)
    const sum = this.#sum
    decay(sum, nowMs)
    let known = this.#byAccount.get(account)
    if (known === undefined) {
      if (this.#byAccount.size === maxAccounts) this.#evictFirst(nowMs)
      this.#byAccount.set(account, (known = { failures: 0, calls: 0, atMs: nowMs }))
    } else decay(known, nowMs)
    add(sum, known, -1)
    known.failures += Number(isFailure)
    known.calls += 1
    add(sum, known, 1)
  }

  /**
   * Failures since the last success. Of one account at most one counts, unless no other account uses the backend: one
   * account's requests may fail for a reason of their own.
   */
  get inARow(): number {
    const isAlone = this.#byAccount.size <= 1
    return this.#failingAccounts.size > 1 || isAlone ? this.#failuresInARow : Math.min(1, this.#failuresInARow)
  }

  /** Between 0 and 1. */
  read(nowMs: number): number {
    const { failures, calls, atMs } = this.#sum
    const kept = shareKept(atMs, nowMs)
    return (failures * kept + assumedFailures) / (calls * kept + assumedCalls)
  }

  #countInARow(account: string, isFailure: boolean, startedMs: number, nowMs: number): void {
    if (isFailure) {
      this.#failuresInARow += 1
      this.#lastFailureMs = nowMs
      if (this.#failingAccounts.size < 2) this.#failingAccounts.add(account)
    } else if (this.#failuresInARow > 0 && startedMs >= this.#lastFailureMs) {
      // An answer that began before the backend failed says nothing of now.
      this.#failuresInARow = 0
      this.#failingAccounts.clear()
    }
  }

  #evictFirst(nowMs: number): void {
    const [first] = this.#byAccount
    if (first === undefined) return
    const [account, outcomes] = first
    this.#byAccount.delete(account)
    decay(outcomes, nowMs)
    add(this.#sum, outcomes, -1)
  }
}

/** The share of a weight at `atMs` that is left now. */
function shareKept(atMs: number, nowMs: number): number {
  return nowMs === atMs ? 1 : 2 ** ((atMs - nowMs) / halfLifeMs)
}

function decay(weighted: Weighted, nowMs: number): void {
  const kept = shareKept(weighted.atMs, nowMs)
  weighted.failures *= kept
  weighted.calls *= kept
  weighted.atMs = nowMs
}

/** Adds what counts of one account's outcomes to the sum, or takes it away. Rounding must not make the sum negative. */
function add(sum: Weighted, { failures, calls }: Weighted, sign: 1 | -1): void {
  const share = calls > outcomesPerAccount ? outcomesPerAccount / calls : 1
  sum.failures = Math.max(0, sum.failures + sign * failures * share)
  sum.calls = Math.max(sum.failures, sum.calls + sign * calls * share)
}
