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
  readonly failures: number
  readonly calls: number
  readonly atMs: number
}

const none: Weighted = { failures: 0, calls: 0, atMs: 0 }

/** The share of a backend's calls that fail, over a window with a half-life of 60 s (contract 7.22). */
export class ErrorRate {
  readonly #byAccount = new BoundedMap<string, Weighted>(maxAccounts)
  /** Of the accounts whose calls failed since the last success, the first two. */
  readonly #failingAccounts = new Set<string>()
  #failuresInARow = 0
  #lastFailureMs = 0
  /** The sum of what counts of each account. */
  #sum = none

  /** A call that began at `startedMs` ended. */
  record(account: string, isFailure: boolean, startedMs: number, nowMs: number): void {
    this.#countInARow(account, isFailure, startedMs, nowMs)
    const before = this.#byAccount.get(account)
    if (before === undefined && this.#byAccount.size === maxAccounts) this.#evictFirst(nowMs)
    const kept = before === undefined ? none : weigh(before, nowMs)
    const after = { failures: kept.failures + Number(isFailure), calls: kept.calls + 1, atMs: nowMs }
    this.#byAccount.set(account, after)
    this.#replace(kept, after, nowMs)
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
    const { failures, calls } = weigh(this.#sum, nowMs)
    return (failures + assumedFailures) / (calls + assumedCalls)
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
    this.#byAccount.delete(first[0])
    this.#replace(weigh(first[1], nowMs), none, nowMs)
  }

  /** Replaces what counts of one account in the sum. */
  #replace(before: Weighted, after: Weighted, nowMs: number): void {
    const sum = weigh(this.#sum, nowMs)
    const [left, entered] = [counted(before), counted(after)]
    const failures = Math.max(0, sum.failures - left.failures + entered.failures)
    const calls = Math.max(failures, sum.calls - left.calls + entered.calls)
    this.#sum = { failures, calls, atMs: nowMs }
  }
}

function weigh({ failures, calls, atMs }: Weighted, nowMs: number): Weighted {
  const kept = nowMs === atMs ? 1 : 2 ** ((atMs - nowMs) / halfLifeMs)
  return { failures: failures * kept, calls: calls * kept, atMs: nowMs }
}

function counted({ failures, calls }: Weighted): { readonly failures: number; readonly calls: number } {
  if (calls <= outcomesPerAccount) return { failures, calls }
  return { failures: (failures / calls) * outcomesPerAccount, calls: outcomesPerAccount }
}
